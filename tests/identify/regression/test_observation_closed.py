"""Closed machines through the stream: factors, fits and validation are those of the projected regressor."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from identify.undiagnosed import identify
from veridyn.errors import DataError
from veridyn.identify.base import generic_motion
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import predicted, validate
from veridyn.machines import palletizer
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import LEGS, hexapod, truth


def measured(machine: Machine, samples: int, noise: float, seed: int = 3) -> Motion:
    m = generic_motion(machine, samples)
    forces = np.full(m.q.shape, np.nan)
    gamma = inverse_dynamics(machine, m)
    forces[:, list(machine.independent)] = gamma + noise * np.random.default_rng(seed).normal(size=gamma.shape)
    return replace(m, forces=forces)


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_factors_are_those_of_the_projected_regressor(engine: str) -> None:
    machine = hexapod()
    m = measured(truth(), 200, 0.1)
    found = observation(machine, m, settings=IdentifySettings(engine=engine))  # pyright: ignore[reportArgumentType]
    D = regressor(machine, m) @ machine.parameters.estimated_matrix()
    known = regressor(machine, m) @ (np.nan_to_num(machine.parameters.values) * _known(machine))
    for k, f in enumerate(found.rows):
        A = np.column_stack([D[:, k, list(f.columns)], m.forces[:, machine.independent[k]] - known[:, k]])
        assert np.abs(f.R.T @ f.R - A.T @ A).max() < 1e-8 * np.abs(A.T @ A).max()
        assert f.row == LEGS[k] and f.samples == 200


def _known(machine: Machine) -> np.ndarray:
    """1 for known parameters, and what is tied to one."""
    p = machine.parameters
    return np.array([float(p.states[k] == "known") for k in range(len(p))])


def test_hexapod_is_identified() -> None:
    """24 of 24 to rounding from exact forces, and within their deviations from noisy ones; in threads the same."""
    exact = identify(hexapod(), measured(truth(), 400, 0.0), "ols")
    assert exact.base.count == 24
    wanted = exact.base.reduce(truth().parameters.values)
    assert np.abs(exact.values - wanted).max() < 1e-6
    noisy = measured(truth(), 1500, 2.0)
    fit = identify(hexapod(), noisy)
    assert (np.abs(fit.values - wanted) < 4.0 * fit.sigma).all()
    with ThreadPoolExecutor(2) as pool:
        again = identify(hexapod(), noisy, executor=pool)
    assert again.values == pytest.approx(fit.values, rel=1e-9)
    check = validate(fit, measured(truth(), 500, 2.0, seed=5))
    assert [r.row for r in check.rows] == list(LEGS)
    assert all(1.8 < r.rms < 2.2 for r in check.rows)
    names, forces, model = predicted(fit, noisy)
    assert names == LEGS and np.std(forces - model) == pytest.approx(2.0, rel=0.05)


def test_rows_outside_the_loop_stay_as_they_are() -> None:
    machine = palletizer()
    m = measured(machine, 300, 0.0)
    fit = identify(machine, m, "ols")
    assert fit.base.count == 25
    assert validate(fit, m).relative_error < 1e-9


def test_dead_zones_of_passive_joints() -> None:
    """A passive joint at standstill takes its samples from every row that feels its friction."""
    machine = hexapod()
    m = measured(truth(), 500, 0.0)
    slow = np.abs(m.qd[:, machine.coordinates.index("a2")]) < 0.5
    for key in ("a2", "ra_2"):
        found = observation(machine, m, settings=IdentifySettings(sampling=Sampling(dead_zone={key: 0.5})))
        assert {f.samples for f in found.rows} == {500 - int(slow.sum())}
    own = observation(machine, m, settings=IdentifySettings(sampling=Sampling(dead_zone={"l2": 0.5})))
    assert [f.samples == 500 for f in own.rows] == [True, False, True, True, True, True]


def test_open_motions_are_refused() -> None:
    m = measured(truth(), 20, 0.0)
    q = m.q.copy()
    q[:, 3] += 0.1
    with pytest.raises(DataError, match="does not keep its loops closed"):
        identify(hexapod(), replace(m, q=q))
