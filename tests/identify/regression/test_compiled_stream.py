"""Jobs in one call of machine code are what blocks of equations give one by one, whatever is left out, known or measured beside."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from identify.undiagnosed import identify
from strangers.cars import TEN_ROWS, car_20, estimated_33
from strangers.machines import any_motion, branched_arm, free_machine
from veridyn.identify.regression.compiled_stream import (
    BUFFER_DOUBLES,
    SymbolTables,
    Wanted,
    absorb_samples,
    kept_tables,
)
from veridyn.identify.regression.equation_plan import EquationPlan
from veridyn.identify.regression.factor import RowFactors
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.equations import structure
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import Tie
from veridyn.signals.butterworth import Butterworth


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERIDYN_CACHE", str(tmp_path_factory.mktemp("objects")))
        yield


@cache
def tied_arm() -> Machine:
    """Known values, one of them zero, a tie, and a tie to what is known."""
    machine = branched_arm()
    p = machine.parameters.known({"ZZ1": machine.parameters["ZZ1"], "off_q2": 0.7, "XY2": 0.0})
    return machine.with_parameters(p.tied({"YY2": Tie("XX2", 2.0), "MX4": Tie("ZZ1", -0.5), "h_q1": "k_bar"}))


@cache
def tied_machine() -> Machine:
    machine = free_machine()
    names = machine.parameters.names
    p = machine.parameters.known([names[0], names[12], names[-1]])
    return machine.with_parameters(p.tied({names[5]: Tie(names[3], 1.5)}))


TREES: dict[str, Callable[[], Machine]] = {"arm": tied_arm, "free machine": tied_machine}


def wanted_of(machine: Machine) -> Wanted:
    """(column, column it counts for, factor, known value or NaN), known zeros left out."""
    p, out = machine.parameters, []
    for c, name in enumerate(p.names):
        tie = p.ties.get(name, Tie(name))
        to = p.index(tie.to)
        value = p.values[to] if p.states[to] == "known" else np.nan
        if value != 0.0:
            out.append((c, to, tie.factor, float(value)))
    return tuple(out)


def columns_of(machine: Machine, rows: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    fate = {c: (to, value) for c, to, _, value in wanted_of(machine)}
    felt = structure(tree_of(machine))
    return tuple(tuple(sorted({fate[c][0] for c in felt[r] if c in fate and np.isnan(fate[c][1])})) for r in rows)


def tables(machine: Machine, rows: tuple[int, ...], compile: bool, largest: int = 200, margin: int = 0) -> SymbolTables:
    return SymbolTables(machine, rows, columns_of(machine, rows), wanted_of(machine), compile, largest, margin)


def expected(machine: Machine, motion: Motion, row: int) -> np.ndarray:
    """[W_j | what wrenches and known parameters ask], from the whole regressor."""
    p = machine.parameters
    D = regressor(machine, motion, engine="numpy")[:, row]
    known = list(p.select("known"))
    T = p.tie_matrix()
    off = D @ T[:, known] @ p.values[known] + external_rows(machine, motion)[:, row]
    W = (D @ p.estimated_matrix())[:, list(columns_of(machine, (row,))[0])]
    return np.column_stack([W, off])


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-12) -> bool:
    return a.shape == b.shape and bool(
        np.abs(a - b).max(initial=0.0) <= tolerance * max(1.0, np.abs(b).max(initial=0.0))
    )


@pytest.mark.parametrize("compile", [True, False])
@pytest.mark.parametrize("name", TREES)
def test_tables_are_the_equations(name: str, compile: bool) -> None:
    """Blocks of changing length through one buffer, with wrenches, without, and with them again."""
    machine = TREES[name]()
    rows = tuple(range(len(machine.rows)))
    made = tables(machine, rows, compile)
    motion = any_motion(machine, 200)
    unloaded = replace(motion, wrenches={})
    for part in (motion, motion[:1], unloaded[3:70], motion[7:71], unloaded):
        found = list(made.fill(part))
        for r, A in zip(rows, found, strict=True):
            assert close(A, expected(machine, part, r))
            assert A.strides[0] == 8  # in column order, as the factors take them


@pytest.mark.parametrize("name", TREES)
def test_rows_may_be_chosen_in_any_order(name: str) -> None:
    machine = TREES[name]()
    rows = (len(machine.rows) - 1, 0, 2)
    motion = any_motion(machine, 90)
    for a, b, r in zip(
        tables(machine, rows, True).fill(motion), tables(machine, rows, False).fill(motion), rows, strict=True
    ):
        assert close(a, b) and close(a, expected(machine, motion, r))


def test_a_table_may_be_used_up() -> None:
    """What a factor leaves behind in the buffer does not show in the next block, columns that are always zero included."""
    machine = tied_arm()
    rows = tuple(range(len(machine.rows)))
    for compile in (True, False):
        made = tables(machine, rows, compile)
        motion = any_motion(machine, 64)
        for A in made.fill(motion):
            A[:] = 1e9
        assert all(close(A, expected(machine, motion, r)) for r, A in zip(rows, made.fill(motion), strict=True))


def test_the_buffer_stays_in_cache() -> None:
    """Its room or the least block, and never more than is asked for."""
    machine = tied_machine()
    rows = tuple(range(len(machine.rows)))
    made = tables(machine, rows, True, largest=10**6)
    assert made.block >= 128 and made.buffer.size < 1.1 * BUFFER_DOUBLES
    assert tables(machine, rows, True, largest=50).block == 50
    assert tables(machine, rows, True, largest=50, margin=300).block == 600


@cache
def logged(name: str, samples: int = 1500) -> tuple[Machine, Motion]:
    """A smooth log with wrenches, signals and noisy forces."""
    machine = TREES[name]() if name in TREES else estimated_33(car_20(elements=True))
    rng = np.random.default_rng(2)
    motion = any_motion(machine, samples, wrenches=name != "car")
    t = np.arange(samples) / 200.0
    w, a, phase = rng.uniform(1, 8, machine.n), 0.3 * rng.normal(size=machine.n), rng.uniform(0, 6, machine.n)
    x = t[:, None] * w + phase
    motion = replace(motion, t=t, q=a * np.sin(x), qd=a * w * np.cos(x), qdd=-a * w * w * np.sin(x), forces=None)
    if name == "car":
        return machine, motion
    first = len(machine.rows) - machine.n
    gamma = inverse_dynamics(machine, motion, engine="numpy")[:, first:]
    return machine, replace(motion, forces=gamma + 0.01 * rng.normal(size=gamma.shape))


def same(a: RowFactors, b: RowFactors, tolerance: float = 1e-10) -> None:
    """Rows, columns, counts, and RᵀR to a tolerance relative to the lengths of the columns."""
    assert [(f.row, f.columns, f.samples) for f in a.rows] == [(f.row, f.columns, f.samples) for f in b.rows]
    for x, y in zip(a.rows, b.rows, strict=True):
        size = np.maximum(np.linalg.norm(y.R, axis=0), 1e-300)
        assert (np.abs(x.R.T @ x.R - y.R.T @ y.R) <= tolerance * np.outer(size, size)).all()


TABLE_SAMPLINGS = {
    "plain": Sampling(),
    "small blocks": Sampling(block=37),
    "one block": Sampling(block=10**6),
    "filter": Sampling(filter=Butterworth(20.0, 4), decimate=4, trim=30, block=300),
    "thinned": Sampling(decimate=3, trim=11, block=111),
}


@pytest.mark.parametrize("how", TABLE_SAMPLINGS)
@pytest.mark.parametrize("name", [*TREES, "car"])
def test_both_engines_stream_the_same_factors(name: str, how: str) -> None:
    """To 1e-10 of the columns' lengths; the car with the rows and the 33 parameters of paper 000."""
    machine, motion = logged(name)
    rows = TEN_ROWS if name == "car" else "all"
    a, b = (
        observation(machine, motion, rows, IdentifySettings(sampling=TABLE_SAMPLINGS[how], engine=e))
        for e in ("compiled", "numpy")
    )
    same(a, b)


def test_gram_sums_too() -> None:
    """A row with few parameters, well conditioned."""
    machine, motion = logged("arm")
    keep = {"fs_q4", "Ia_q4", "M6"}
    names = [n for n in machine.parameters.names if n not in keep and n not in machine.parameters.ties]
    few = machine.with_parameters(machine.parameters.known(names))
    a, b = (
        observation(few, motion, ["q4"], IdentifySettings(sampling=Sampling(method="gram"), engine=e))
        for e in ("compiled", "numpy")
    )
    same(a, b)


def test_dead_zones_and_gaps() -> None:
    machine, motion = logged("arm")
    forces = motion.forces.copy()
    forces[40:77, 1] = np.nan
    how = Sampling(dead_zone={"q1": 0.3, "fs_q4": 0.2}, block=100)
    a, b = (
        observation(machine, replace(motion, forces=forces), "all", IdentifySettings(sampling=how, engine=e))
        for e in ("compiled", "numpy")
    )
    assert a.rows[1].samples == len(motion) - 37 and a.rows[0].samples < len(motion)
    same(a, b)


def test_threads_and_several_logs() -> None:
    machine, motion = logged("free machine", 40_000)
    parts = [motion[:20_000], motion[20_000:25_001], motion[25_001:]]
    parts[1] = replace(parts[1], wrenches={})  # one of them without wrenches: another kernel
    alone = observation(machine, parts, settings=IdentifySettings(engine="compiled"))
    with ThreadPoolExecutor(2) as pool:
        same(observation(machine, parts, settings=IdentifySettings(engine="compiled"), executor=pool), alone, 1e-12)
    same(observation(machine, parts, settings=IdentifySettings(engine="numpy")), alone)


def test_identification_does_not_depend_on_the_engine() -> None:
    """Values to 1e-8 of their deviations: what the engines differ by is rounding."""
    machine, motion = logged("arm")
    a, b = (identify(machine, motion, settings=IdentifySettings(engine=e)) for e in ("compiled", "numpy"))
    assert a.names == b.names
    assert (np.abs(a.values - b.values) <= 1e-6 * b.sigma).all()
    assert a.sigma == pytest.approx(b.sigma, rel=1e-8)


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
