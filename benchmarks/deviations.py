"""What default deviations cost over those for white noise: fits of the four-joint arm of the calibration, noise of first order."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import veridyn as vd
from benchmarks.calibration_foreign import Waves, drawing, first_order, model
from benchmarks.clock import best_of
from benchmarks.foreign.machines import ARM
from veridyn.errors import VeridynWarning

SAMPLES = (600, 10_000, 100_000)
STEP = 0.02  # s
MEMORY = 0.9


@dataclass(frozen=True)
class Cost:
    """Processor seconds of ``identify`` with so many samples: a fit with `default` deviations and with those for `white` noise, both
    without checks of the data (``diagnose="off"``), and `checked`, everything as it is by default."""

    samples: int
    parameters: int
    default: float
    white: float
    checked: float


def recorded(samples: int) -> vd.Motion:
    """A motion of the arm with torques by Pinocchio and noise on them."""
    rng = np.random.default_rng(0)
    t = np.asarray(STEP * np.arange(samples), dtype=np.float64)
    q, qd, qdd = Waves.drawn(rng, ARM.reach, (0.1, 1.2)).at(t)
    noise = first_order(rng, samples, ARM.noise, MEMORY)
    return vd.Motion(t, q, qd, qdd, forces=ARM.torques(drawing("arm"), q, qd, qdd) + noise)


def costs(samples: Sequence[int] = SAMPLES) -> list[Cost]:
    """The fits of each length."""
    found, machine = [], model("arm")
    for count in samples:
        motion = recorded(count)

        def seconds(motion: vd.Motion = motion, **asked: Any) -> float:
            return best_of(lambda: vd.identify(machine, motion, **asked)).cpu

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VeridynWarning)
            parameters = len(vd.identify(machine, motion).values)
            default, white = (
                seconds(diagnose="off"),
                seconds(diagnose="off", settings=vd.IdentifySettings(covariance="white")),
            )
            found.append(Cost(count, parameters, default, white, seconds()))
    return found


def line(found: Sequence[Cost]) -> str:
    """The costs in a sentence."""
    each = "; ".join(
        f"{c.samples:,} samples {1e3 * c.default:.1f} ms, {c.default / c.white:.2f} times (with checks {1e3 * c.checked:.0f} ms)"
        for c in found
    )
    return (
        f"- Deviations auto over white: a fit of the four-joint arm ({found[0].parameters} base parameters, first-order noise, "
        f'`diagnose="off"`) with default deviations, and that over `covariance="white"`: {each}.'
    )
