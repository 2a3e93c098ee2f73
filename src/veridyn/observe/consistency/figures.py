"""An observation in numbers, named as in `result.json`: how innovations compare with what is stated, and what became of readings."""

from __future__ import annotations

import numpy as np

from veridyn.observe.consistency.judge import rejected_readings
from veridyn.observe.consistency.predictions import check_figures
from veridyn.observe.consistency.withheld import withheld_figures
from veridyn.observe.observation import Observation


def observation_figures(found: Observation) -> dict[str, float]:
    """All of them, from where the run has settled."""
    return {
        "samples": float(len(found)),
        "duration": float(found.t[-1] - found.t[0]),
        "states": float(len(found.states)),
        "nis": found.nis().mean,
        **consistency_figures(found),
        **withheld_figures(found.estimates),
        **check_figures(found.predictions),
        **_model_error_figures(found),
    }


def consistency_figures(found: Observation, skip: int | None = None) -> dict[str, float]:
    """How innovations from sample `skip` on compare with what the filter states, and what became of readings."""
    (low, high), white = found.nis(skip).band, [w.is_white for w in found.whiteness(skip).values()]
    rejected = rejected_readings(found)
    return {
        "nis_low": low,
        "nis_high": high,
        "consistent": float(found.nis(skip).consistent),
        "share_white": float(np.mean(white)) if white else float("nan"),
        "white": float(bool(white) and all(white)),
        "rejected": float(sum(rejected.values())),
        **{f"rejected_{name}": float(count) for name, count in rejected.items()},
    }


def _model_error_figures(found: Observation) -> dict[str, float]:
    """The model error by coordinate (rad/s^2 or m/s^2 rms), and as the largest share of a coordinate's own acceleration."""
    error = found.model_error
    if error is None:
        return {}
    shares = [rms / moves for rms, moves in zip(error.rms.tolist(), error.moves.tolist(), strict=True) if moves > 0.0]
    return {
        "share_model_error": max(shares, default=0.0),
        **{f"model_error_{name}": rms for name, rms in zip(error.coordinates, error.rms.tolist(), strict=True)},
    }
