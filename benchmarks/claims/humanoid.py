"""Paper 004: ``veridyn demo humanoid``, and errors of the plain fit beside those of the drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from veridyn.papers.humanoid.study import BEND, FORCES, MOMENTS, PLAIN, WALK, humanoid_study

Figures = Mapping[str, float]


def humanoid(seed: int, quick: bool = False) -> dict[str, float]:
    """Figures of the demonstration, and improvements over the drawing by plain least squares."""
    study = humanoid_study(np.random.default_rng(seed), quick=quick)
    figures = dict(study.figures)
    for motion, word in ((WALK, "walking"), (BEND, "bending")):
        for rows, what in ((FORCES, "force"), (MOMENTS, "moment")):
            drawn, plain = study.rms("cad", motion, rows), study.rms(PLAIN, motion, rows)
            figures |= {f"rms_{what}_{word}_plain": plain, f"improvement_{what}_{word}_plain": drawn / plain}
    return figures


CASES: dict[str, Callable[[int, bool], Figures]] = {"humanoid": humanoid}
