"""What must not change a load that is weighed: names, orders, clocks, units, axes, worlds, scales, logs in another order, formulations."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import veridyn as vd
from metamorphic.comparing import largest
from metamorphic.formats import in_other_units
from metamorphic.machines import INERTIA, NOISE, RATE, arm, log_of, recorded, sweep
from metamorphic.relations import ALL, MOST, Back, Related, mostly_slow, rebuilt
from veridyn.identify.payload import LoadEstimate, carrying, load_estimate, with_payload
from veridyn.spatial.inertia import INERTIAL, INERTIAL_UNITS, from_centre

# What is named is not at stake here.
pytestmark = pytest.mark.filterwarnings("ignore::veridyn.errors.IdentificationWarning")
SAME = Back()
LOAD = from_centre(1.2, (0.03, -0.02, 0.08), np.diag([0.004, 0.005, 0.003]))
# In deviations of the load: two fits one after the other, and of the second the search for a load that a body can have, which ends at a
# gap of 1e-8 in χ² and so at some 1e-4 of a deviation; without consistency, rounding.
ROUNDING, CONSISTENT = 1e-8, 2e-4


@cache
def loaded() -> vd.Experiment:
    """The log of the arm that carries the load on its second body: their ten parameters add."""
    links = [replace(k, inertia=INERTIA["2"] + LOAD) if k.name == "2" else k for k in arm().links]
    t = np.arange(0.0, 8.0, 1.0 / RATE)
    q, qd, qdd = sweep(t, 2, 11)
    forces = vd.inverse_dynamics(rebuilt(arm(), links=links), vd.Motion(t, q, qd, qdd))
    forces = forces + NOISE * np.random.default_rng(11).normal(size=q.shape)
    return log_of(t, {"q": q, "force": forces}, arm())


def weighed(empty: Related, carried: vd.Experiment, formulation: str = "tree") -> LoadEstimate:
    """Both fits, and the load."""
    body = next(k for k in empty.machine.body_names if empty.back.name(k) == "2")
    machine = rebuilt(empty.machine, formulation=formulation)
    bare = vd.identify(machine, vd.motion(machine, empty.log))  # cut-offs that a log is tried at are so many Hz
    unknown = with_payload(bare, body)
    return load_estimate(vd.identify(unknown, vd.motion(unknown, carried)), body, empty=bare)


@cache
def first() -> LoadEstimate:
    return weighed(Related(arm(), recorded(), SAME), loaded())


def check_load(first: LoadEstimate, other: LoadEstimate, back: Back, tolerance: float) -> None:
    """Ten parameters with their covariance, which of them are determined, and where the deviation of the mass comes from."""
    scale = np.array([back.sign(s) * back.scale(u) for s, u in zip(INERTIAL, INERTIAL_UNITS, strict=True)])
    known = first.determined
    assert np.array_equal(other.determined, known)
    assert known[[6, 7, 8, 9]].all()
    sigma = np.sqrt(np.diag(first.covariance))[known]
    assert largest((other.free / scale - first.free)[known] / sigma) < tolerance
    C = (other.covariance / np.outer(scale, scale))[np.ix_(known, known)]
    assert largest((C - first.covariance[np.ix_(known, known)]) / np.outer(sigma, sigma)) < tolerance
    assert largest((other.values / scale - first.values)[known] / sigma) < max(tolerance, CONSISTENT)
    assert other.shift == pytest.approx(first.shift, abs=CONSISTENT)
    assert list(other.mass_budget) == list(first.mass_budget)
    for source, sigma in first.mass_budget.items():
        assert other.mass_budget[source] / back.mass == pytest.approx(sigma, rel=tolerance)


@pytest.mark.parametrize("name", mostly_slow(ALL))
def test_logs_described_another_way(name: str) -> None:
    empty, carried = ALL[name](arm(), recorded()), ALL[name](arm(), loaded()).log
    check_load(first(), weighed(empty, carried), empty.back, ROUNDING)


def test_columns_in_degrees_and_milliseconds() -> None:
    check_load(first(), weighed(Related(arm(), in_other_units(recorded()), SAME), in_other_units(loaded())), SAME, 1e-7)


def test_both_formulations() -> None:
    check_load(first(), weighed(Related(arm(), recorded(), SAME), loaded(), "natural"), SAME, ROUNDING)


def test_another_name_of_the_load() -> None:
    bare = vd.identify(arm(), vd.motion(arm(), recorded()))
    fit = vd.identify(with_payload(bare, "2", name="荷物"), vd.motion(arm(), loaded()))
    check_load(first(), load_estimate(fit, "2", "荷物", empty=bare), SAME, ROUNDING)


@pytest.mark.parametrize("name", mostly_slow(ALL, MOST))
def test_forces_of_a_known_load(name: str) -> None:
    """The load as a wrench on the body and as a part of the body are one thing in every description."""
    machine, log, back = ALL[name](arm(), loaded())
    body = next(k for k in machine.body_names if back.name(k) == "2")
    scale = np.array([back.sign(s) * back.scale(u) for s, u in zip(INERTIAL, INERTIAL_UNITS, strict=True)])
    motion = replace(vd.motion(machine, log), forces=None)
    links = [replace(k, inertia=k.ten + scale * LOAD) if k.name == body else k for k in machine.links]
    by_wrench = vd.inverse_dynamics(machine, carrying(machine, motion, body, scale * LOAD))
    by_body = vd.inverse_dynamics(rebuilt(machine, links=links), motion)
    assert largest(by_wrench - by_body) < 1e-12 * largest(by_body)


@pytest.mark.parametrize("split", [0.25, 0.5])
def test_a_load_of_two_parts(split: float) -> None:
    """A load in two pieces, one after the other on the same body, pulls as the whole does."""
    motion = replace(vd.motion(arm(), loaded()), forces=None)
    whole = vd.inverse_dynamics(arm(), carrying(arm(), motion, "2", LOAD))
    first_part = carrying(arm(), motion, "2", split * LOAD)
    both = vd.inverse_dynamics(arm(), carrying(arm(), first_part, "2", (1.0 - split) * LOAD))
    assert largest(both - whole) < 1e-13 * largest(whole)
