"""Jobs in one call of machine code are what blocks of equations give one by one, whatever is left out, known or measured beside."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from strangers.machines import any_motion, branched_arm, free_machine
from veridyn.identify.regression.compiled_stream import absorb_samples, kept_tables
from veridyn.identify.regression.equation_plan import EquationPlan
from veridyn.identify.regression.sampling import Sampling
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth

SAMPLES = 5003  # more than one block, and no multiple of eight


def known_arm() -> Machine:
    machine = branched_arm()
    return machine.with_parameters(machine.parameters.known({"ZZ1": machine.parameters["ZZ1"], "off_q2": 0.7}))


def known_free_machine() -> Machine:
    machine = free_machine()
    names = machine.parameters.names
    return machine.with_parameters(machine.parameters.known([names[0], names[12], names[-1]]))


def driven_arm() -> Machine:
    """A known parameter beside a known drive gain, whose torque is measured."""
    machine = branched_arm()
    return machine.with_parameters(machine.parameters.known({"K_q2": 2.0, "off_q2": 0.7}))


MACHINES: dict[str, Callable[[], Machine]] = {
    "arm": branched_arm,
    "arm, some known": known_arm,
    "arm, known gain": driven_arm,
    "free machine": free_machine,
    "free machine, some known": known_free_machine,
}
SAMPLINGS = {
    "all": Sampling(),
    "thinned": Sampling(decimate=3, trim=11),
    "small blocks": Sampling(block=111, decimate=2),
    "dead zone": Sampling(dead_zone={"q1": 0.3}),
    "dropped": Sampling(drop={"q2": np.arange(SAMPLES) % 5 < 2}),
}


@cache
def recorded(name: str) -> tuple[Machine, Motion]:
    """A log with wrenches, signals, noisy forces and gaps in them."""
    machine, rng = MACHINES[name](), np.random.default_rng(2)
    motion = any_motion(machine, SAMPLES, wrenches=True)
    first = len(machine.rows) - machine.n
    forces = inverse_dynamics(machine, replace(motion, forces=None), engine="numpy")[:, first:]
    forces = forces + 0.01 * rng.normal(size=forces.shape)
    forces[40:77, 1] = np.nan
    return machine, replace(motion, forces=forces)


def plan_of(machine: Machine, how: Sampling) -> EquationPlan:
    return EquationPlan(machine, machine.select_rows("all"), how, compile=True)


@pytest.mark.parametrize("how", SAMPLINGS)
@pytest.mark.parametrize("name", MACHINES)
def test_one_call_gives_what_blocks_give(monkeypatch: pytest.MonkeyPatch, name: str, how: str) -> None:
    """Counts to the last, moments and RᵀR to 1e-12: sums are taken in another order."""
    machine, motion = recorded(name)
    plan = plan_of(machine, SAMPLINGS[how])
    job = next(plan.jobs(motion))
    assert plan.in_one_call
    found = plan.factors(job)
    monkeypatch.setattr(EquationPlan, "in_one_call", False)
    for a, b in zip(found, plan_of(machine, SAMPLINGS[how]).factors(job), strict=True):
        assert (a.row, a.columns, a.samples) == (b.row, b.columns, b.samples)
        assert (a.measured.samples, a.measured.triples) == (b.measured.samples, b.measured.triples)
        assert a.measured.mean == pytest.approx(b.measured.mean, rel=1e-12, abs=1e-12 * b.measured.std)
        assert a.measured.scatter == pytest.approx(b.measured.scatter, rel=1e-12)
        assert a.measured.roughness == pytest.approx(b.measured.roughness, rel=1e-12)
        size = np.linalg.norm(b.R, axis=0)
        assert (np.abs(a.R.T @ a.R - b.R.T @ b.R) <= 1e-12 * np.outer(size, size)).all()


def test_what_comes_back_to_python_stays_there() -> None:
    """Filters, sums of products, rows along a path, and the reference."""
    machine, _ = recorded("arm")
    for how in (Sampling(filter=Butterworth(20.0)), Sampling(method="gram"), Sampling(along={"q1": {"q2": "s"}})):
        assert not plan_of(machine, how).in_one_call
    assert not replace(plan_of(machine, Sampling()), compile=False).in_one_call


def test_no_sample_and_no_row() -> None:
    machine, motion = recorded("arm")
    tables = plan_of(machine, Sampling()).tables(0)
    assert absorb_samples(tables, None, False, motion[:0], [], 64) == []


def test_tables_stay_with_their_thread_and_owner() -> None:
    """Kept from job to job; another plan, and another thread, have their own, and a plan that is gone is not kept alive."""
    machine, _ = recorded("arm")
    plan = plan_of(machine, Sampling())
    tables = kept_tables(plan, lambda: plan.tables(0))
    assert kept_tables(plan, lambda: plan.tables(0)) is tables
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(kept_tables(plan, lambda: plan.tables(0))))
    thread.start()
    thread.join()
    assert found[0] is not tables
    others = [plan_of(machine, Sampling())]
    assert kept_tables(others[0], others[0]._tables_in_cache) is not tables
    gone = weakref.ref(others.pop())
    assert gone() is None
