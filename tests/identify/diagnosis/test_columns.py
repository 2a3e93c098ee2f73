"""Columns of a diagnosis against inverse dynamics, by machine code as by the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from studies.bench_evidence import bench_evidence
from studies.bench_robot import JOINTS, robot
from veridyn.identify.base import base_parameters
from veridyn.identify.diagnosis.columns import columns_of, fit_forces
from veridyn.identify.estimate import identify
from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.parameters import Tie


def test_independent_columns_and_known_side_are_the_dynamics() -> None:
    machine, m = robot(), bench_evidence().motion
    base, forces = base_parameters(machine), inverse_dynamics(machine, m, list(JOINTS)).T
    found = columns_of(machine, m, JOINTS)
    np.testing.assert_allclose(found.W @ base.reduce(machine.parameters.values), forces, atol=1e-11)
    assert not found.known.any() and not found.parts.any()
    half = machine.with_parameters(machine.parameters.known(["h_q1", "ZZ3"]))
    found = columns_of(half, m, JOINTS, every=True)
    values = half.parameters.values[found.numbers]
    np.testing.assert_allclose(found.W @ values + found.known, forces, atol=1e-11)


def test_columns_that_cannot_act_on_a_row_are_zero_there() -> None:
    found = columns_of(robot(), bench_evidence().motion, JOINTS)
    for W, own in zip(found.W, found.acting, strict=True):
        assert not np.delete(W, own, axis=1).any()
        assert np.any(W[:, own] != 0.0, axis=0).sum() > 0.8 * len(own)


def test_machine_code_that_is_there_gives_the_numbers_of_the_reference() -> None:
    machine, m = robot(), bench_evidence().motion
    observation(machine, [m] * 200, JOINTS, settings=IdentifySettings(engine="compiled"))
    by_machine_code, by_reference = (columns_of(machine, m, JOINTS, every=every) for every in (False, True))
    same = by_reference.W[:, :, np.searchsorted(by_reference.numbers, by_machine_code.numbers)]
    assert not np.array_equal(by_machine_code.W, same)  # to the last bit they differ
    np.testing.assert_allclose(by_machine_code.W, same, atol=1e-12)


def test_tied_columns_are_added_to_the_one_they_are_tied_to() -> None:
    machine = robot()
    tied = machine.with_parameters(replace(machine.parameters, ties={"h_q2": Tie("h_q1", 2.0)}))
    m = bench_evidence().motion
    alone, both = (columns_of(t, m, JOINTS, every=True) for t in (machine, tied))
    names = machine.parameters.names
    place = {names[c]: k for k, c in enumerate(alone.numbers)}
    expected = alone.W[:, :, place["h_q1"]] + 2.0 * alone.W[:, :, place["h_q2"]]
    own = [names[c] for c in both.numbers].index("h_q1")
    np.testing.assert_allclose(both.W[:, :, own], expected, atol=1e-12)


def test_forces_of_a_fit_are_its_inverse_dynamics() -> None:
    """For all rows and for some, in another order; with and without machine code from the fit; beside known parameters."""
    machine, m = robot(), bench_evidence().motion
    half = machine.with_parameters(machine.parameters.known(["h_q1", "ZZ3"]))
    for known in (machine, half):
        fit = identify(known, m, rows=list(JOINTS), diagnose="off")
        for rows in (list(JOINTS), [JOINTS[2], JOINTS[0]]):
            wanted = inverse_dynamics(known, m, rows, fit.standard, engine="numpy")
            np.testing.assert_allclose(fit_forces(fit, m, rows), wanted, atol=1e-9)
        observation(known, [m] * 200, JOINTS, settings=IdentifySettings(engine="compiled"))
        np.testing.assert_allclose(fit_forces(fit, m, rows), wanted, atol=1e-9)
