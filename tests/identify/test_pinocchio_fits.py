"""Whole fits of logs made with Pinocchio: true values lie where the deviations say, and correct logs raise no suspicion.

The quick tests take the first seeds of those of the slow ones, with limits that follow from their number.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import veridyn as vd
from strangers.pinocchio_logs import Arm, machine, recording, three_joints, truth
from veridyn.identify.result import Fit

Array = NDArray[np.float64]
FIRST_SEED = 3100
QUICK, ALL = 6, 100
INSIDE = 0.9545  # of a normal variable, within two deviations
SLOW_LIMITS = (0.91, 0.985)  # share of true values within 2σ over 100 logs
TRIM_S = 0.2  # four periods of the cut-off: what a filter knows less of is another test's business


def fits(arm: Arm, tree: vd.model.Tree, seeds: Iterable[int]) -> list[tuple[Fit, list[str]]]:
    """The fit of each log as the README makes it, and its warnings."""
    out = []
    for seed in seeds:
        log = recording(arm, np.random.default_rng(seed)).log
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            motion = vd.motion(tree, log, vd.Signals(lowpass=20.0, trim=TRIM_S))
            fit = vd.identify(tree, motion, "wls", rows="all")
        out.append((fit, [str(w.message) for w in caught]))
    return out


def errors(fit: Fit, values: dict[str, float]) -> Array:
    """Errors of the base parameters in deviations."""
    true = fit.base.reduce([values[name] for name in fit.base.parameters.names])
    return (fit.values - true) / fit.sigma


def quick_limits(count: int, parameters: int) -> tuple[float, float]:
    """Between which the share of so few logs lies in 999 of 1000 trials; the parameters of a fit count as half as many independent ones."""
    number = count * parameters // 2
    low, high = binom.ppf([0.0005, 0.9995], number, INSIDE) / number
    return float(low), float(high)


def check_calm(made: list[tuple[Fit, list[str]]], values: dict[str, float], limits: tuple[float, float]) -> None:
    """No trace of damage is claimed, and as many true values lie within 2σ as should; what was found is printed."""
    z = np.concatenate([errors(fit, values) for fit, _ in made])
    share = float(np.mean(np.abs(z) < 2.0))
    claimed = [text for _, said in made for text in said if "deviations; it moves" in text]
    print(f"{len(made)} logs: {100 * share:.1f} % of {len(z)} true values within 2σ, {len(claimed)} false traces")
    assert not claimed
    assert limits[0] <= share <= limits[1]


def test_correct_logs_have_no_false_zero() -> None:
    """The zero of q3 turns its own body alone: no log can show it, and none is claimed."""
    arm = three_joints()
    made = fits(arm, machine(arm), range(FIRST_SEED, FIRST_SEED + QUICK))
    check_calm(made, truth(arm), quick_limits(QUICK, len(made[0][0].values)))
    for fit, said in made:
        if not said:  # nothing else was found, so that traces were looked for
            assert any("not checked: zeros of the positions of 'q1', 'q3'" in note for note in fit.notes)


@pytest.mark.slow
def test_a_hundred_correct_logs_have_no_false_zero() -> None:
    arm = three_joints()
    check_calm(fits(arm, machine(arm), range(FIRST_SEED, FIRST_SEED + ALL)), truth(arm), SLOW_LIMITS)
