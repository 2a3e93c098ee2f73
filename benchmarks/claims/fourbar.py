"""Paper 003, chapter 3: every filter on the four-bar, over twenty logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from veridyn.papers.fourbar import fourbar_study

Figures = Mapping[str, float]


def fourbar(seed: int, quick: bool = False) -> dict[str, float]:
    """Errors of x1 and of the crank, and consistency, of every filter; ratios to the EKF; and of the model alone."""
    study = fourbar_study(seed, quick=quick)
    x1, phi = study.column("x1"), study.column("phi")
    figures: dict[str, float] = {"rms_x1_plain": study.plain_rms("x1"), "max_x1_plain": study.plain_largest("x1")}
    for name, score in study.scores.items():
        figures |= {
            f"rms_x1_{name}": float(score.rms[x1]),
            f"max_x1_{name}": float(score.largest[x1]),
            f"rms_phi_dot_{name}": float(score.rms_rate[phi]),
            f"nees_{name}": score.nees,
            f"share_white_{name}": score.share_white,
        }
    for name in ("ukf", "error_ekf"):
        figures[f"{name}_over_ekf_x1"] = figures[f"rms_x1_{name}"] / figures["rms_x1_ekf"]
    return figures


CASES: dict[str, Callable[[int, bool], Figures]] = {"fourbar": fourbar}
