"""Whole fits of logs made with Pinocchio: true values lie where the deviations say, and correct logs raise no suspicion.

The quick tests take the first seeds of those of the slow ones, with limits that follow from their number.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import veridyn as vd
from strangers.pinocchio_logs import Arm, ArmLink, elements, machine, recording, three_joints, truth, urdf
from veridyn.errors import DataWarning
from veridyn.identify.result import Fit

Array = NDArray[np.float64]
FIRST_SEED = 3100
QUICK, ALL = 6, 100
INSIDE = 0.9545  # of a normal variable, within two deviations
SLOW_LIMITS = (0.91, 0.985)  # share of true values within 2σ over 100 logs
TRIM_S = 0.2  # four periods of the cut-off: what a filter knows less of is another test's business


def fits(arm: Arm, machine: vd.Machine | vd.Machine, seeds: Iterable[int]) -> list[tuple[Fit, list[str]]]:
    """The fit of each log as the README makes it, and its warnings."""
    out = []
    for seed in seeds:
        log = recording(arm, np.random.default_rng(seed)).log
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            motion = vd.motion(machine, log, vd.Signals(lowpass=20.0, trim=TRIM_S))
            fit = vd.identify(machine, motion, "wls", rows="all")
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


FARTHEST_SIGMAS = 5.0  # of one value in a hundred logs: 4 by chance, and noise of the positions biases it by one
GHOST_SIZES = 10.0  # times the largest inertia of the arm: no part of it has that


def with_rotors() -> list[ArmLink]:
    rotors = (0.5, 0.4, 0.1)
    return [replace(link, rotor=rotor) for link, rotor in zip(three_joints(), rotors, strict=True)]


def rounded(arm: Arm, folder: Path) -> vd.Machine:
    """The arm of a URDF file whose angles have four digits, with friction and rotors."""
    file = folder / "arm.urdf"
    file.write_text(urdf(arm, 4), encoding="utf-8")
    with pytest.warns(DataWarning, match=r"joint 'q2'[\s\S]*1.5708 is π/2"):
        return vd.load_model(file).with_elements(elements(arm))


def check_ghosts(made: list[tuple[Fit, list[str]]], values: dict[str, float]) -> None:
    """ZZ of link 2 and the rotor of its joint are one parameter, known to a hundredth; nothing is larger than the arm."""
    for fit, _ in made:
        assert len(fit.values) == 22
        relation = next(line for line in fit.base.relations() if line.startswith("ZZ_link2R"))
        assert relation == "ZZ_link2R = ZZ_link2 + 0.16*M_link3 + Ia_q2"
        assert np.abs(fit.values).max() < GHOST_SIZES
        assert fit.sigma.max() < GHOST_SIZES
        k = fit.names.index("ZZ_link2R")
        assert fit.relative_sigma[k] < 1.0
        assert abs(errors(fit, values)[k]) < FARTHEST_SIGMAS


def test_rounded_angles_make_no_ghosts(tmp_path: Path) -> None:
    arm = with_rotors()
    made = fits(arm, rounded(arm, tmp_path), range(FIRST_SEED, FIRST_SEED + QUICK))
    check_calm(made, truth(arm), quick_limits(QUICK, len(made[0][0].values)))
    check_ghosts(made, truth(arm))


@pytest.mark.slow
def test_rounded_angles_make_no_ghosts_in_a_hundred_logs(tmp_path: Path) -> None:
    arm = with_rotors()
    made = fits(arm, rounded(arm, tmp_path), range(FIRST_SEED, FIRST_SEED + ALL))
    check_calm(made, truth(arm), SLOW_LIMITS)
    check_ghosts(made, truth(arm))


def test_axes_that_are_nearly_perpendicular_make_none_either() -> None:
    """Four microradians off, and not rounded by anyone: noise decides the rank, and the fit says so."""
    arm = with_rotors()
    arm[1] = replace(arm[1], rpy=(np.pi / 2 + 3.67e-6, 0.0, 0.0))
    made = fits(arm, machine(arm), range(FIRST_SEED, FIRST_SEED + 2))
    check_ghosts(made, truth(arm))
    for fit, _ in made:
        assert any("noise leaves 1 more combination of parameters open" in note for note in fit.notes)
