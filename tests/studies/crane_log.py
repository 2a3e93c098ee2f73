"""The log of the example examples/studies/crane.yaml, simulated from the crane's own file, and the truth behind it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from strangers.walks import CRANE, walked
from veridyn.machines import crane
from veridyn.mechanics.natural.steps.integrate import NaturalMotion

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "studies" / "crane.yaml"
MECHANISM = REPOSITORY / "src" / "veridyn" / "machines" / "crane.yaml"
LOG = MECHANISM.with_name("crane.csv")
SEED = 4
# The example as a user has it who brings a log of his own.
TEXT = EXAMPLE.read_text(encoding="utf-8").replace("veridyn:crane.csv", "crane.csv")


@lru_cache(maxsize=8)
def crane_log(seed: int = SEED) -> tuple[NaturalMotion, np.ndarray]:
    """The true motion, and time (s), travel (mm) and tilt (deg), one row a sample."""
    truth, log = walked(crane(), CRANE, np.random.default_rng(seed))
    return truth, np.column_stack([truth.t, 1e3 * log["travel"].values, np.rad2deg(log["tilt"].values)])


def table(rows: np.ndarray) -> str:
    """Rows as the text of the example's log."""
    lines = [f"{t:.3f},{travel:.3f},{tilt:.4f}" for t, travel, tilt in rows]
    return "\n".join(["time,trolley,angle", *lines]) + "\n"


def written(folder: Path, text: str | None = None, rows: np.ndarray | None = None) -> Path:
    """The study in a folder with its log."""
    study = folder / "study.yaml"
    study.write_text(TEXT if text is None else text, encoding="utf-8")
    (folder / "crane.csv").write_text(table(crane_log()[1] if rows is None else rows), encoding="utf-8")
    return study
