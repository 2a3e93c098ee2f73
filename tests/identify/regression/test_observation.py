"""Samples streamed into row factors: against dense least squares, shared out, and in bounded memory."""

from __future__ import annotations

import multiprocessing
import resource
import subprocess
import sys
import textwrap
import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import veridyn.identify.regression.observation as module
from identify.dense_equations import RIGHT, arm, check, dense, log
from identify.undiagnosed import identify
from strangers.cars import TEN_ROWS, car_20, estimated_33
from strangers.random_trees import random_motion, random_open_machine
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.equation_plan import EquationPlan, Job
from veridyn.identify.regression.factor import RowFactor, RowFactors
from veridyn.identify.regression.observation import dependence, observation, worthwhile
from veridyn.identify.regression.sampling import Sampling, driven
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.model.elements.element import damper, drive_gain
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import Tie
from veridyn.signals.butterworth import Butterworth
from veridyn.spatial.rotations import MDH


@pytest.mark.parametrize("seed", range(6))
def test_streaming_equals_the_dense_solution(seed: int) -> None:
    """Random block sizes: values to 1e-10 of the largest, σ, σ_j and residuals to 1e-9 of themselves."""
    machine, motion = arm(), log(900, seed)
    block = int(np.random.default_rng(seed).integers(1, 400))
    s = solve(observation(machine, motion, settings=IdentifySettings(sampling=Sampling(block=block))))
    assert len(s.columns) >= 10
    check(machine, s, dense(machine, motion, machine.rows))


def test_rows_may_be_chosen() -> None:
    machine, motion = arm(), log(600)
    s = solve(observation(machine, motion, ["q3", "q2"]))
    assert [f.row for f in s.observation.rows] == ["q3", "q2"]
    check(machine, s, dense(machine, motion, ["q3", "q2"]))


@cache
def long_log() -> tuple[Motion, RowFactors]:
    motion = log(40000)
    return motion, observation(arm(), motion)


def identical(a: RowFactors, b: RowFactors) -> None:
    """To the last bit: jobs do not depend on who does them, and are merged in their order."""
    for x, y in zip(a.rows, b.rows, strict=True):
        assert (x.row, x.columns, x.samples, x.measured) == (y.row, y.columns, y.samples, y.measured)
        assert np.array_equal(x.R, y.R)


def test_compiling_many_joints_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of 200 joints compiled for minutes without a word."""
    machine, tasks = arm(), list[str]()
    motion, how = log(400), IdentifySettings(engine="compiled")
    observation(machine, motion, settings=how, progress=lambda task, done, total: tasks.append(task))
    assert not any("compiling" in task for task in tasks)
    monkeypatch.setattr(module, "LONG_TO_COMPILE", machine.n)
    observation(machine, motion, settings=how, progress=lambda task, done, total: tasks.append(task))
    assert module.compiling(machine.n) in tasks
    assert module.compiling(48).endswith("48 joints, about 11 s the first time")  # docs/limits.md
    assert module.compiling(200).endswith("200 joints, about 5 min the first time")


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_any_number_of_threads_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """By an executor, and by the setting where the processors allow it; the motion is longer than one job."""
    motion, alone = long_log()
    with ThreadPoolExecutor(workers) as pool:
        identical(observation(arm(), motion, executor=pool), alone)
    monkeypatch.setattr(module, "usable_threads", lambda wanted=None: 16 if wanted is None else wanted)
    for engine in ("compiled", "numpy"):
        one, several = (
            observation(arm(), motion, settings=IdentifySettings(engine=engine, threads=n)) for n in (1, workers)
        )
        identical(several, one)


@pytest.mark.parametrize("workers", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3, 5))])
def test_any_number_of_processes_gives_the_same_numbers(workers: int) -> None:
    """Spawned, so that everything that travels is pickled. Each takes a second to begin: other numbers of them are slow."""
    motion, alone = long_log()
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        identical(observation(arm(), motion, executor=pool), alone)


def test_threads_by_default_where_a_long_log_goes_through_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most four where blocks come back to Python, none for the reference, no more than jobs; what is asked for is given."""
    motion, _ = long_log()
    asked: list[int] = []

    def threads_unless(executor: object, threads: int) -> object:
        asked.append(threads)
        return nullcontext((executor, 8))

    monkeypatch.setattr(module, "threads_unless", threads_unless)
    monkeypatch.setattr(module, "usable_threads", lambda wanted=None: 16 if wanted is None else wanted)
    monkeypatch.setattr(module, "JOB_SAMPLES", 8000)  # five jobs
    for settings in (
        IdentifySettings(engine="compiled"),
        IdentifySettings(engine="compiled", threads=2),
        IdentifySettings(engine="compiled", sampling=Sampling(filter=Butterworth(20.0))),
        IdentifySettings(engine="numpy"),
        IdentifySettings(engine="numpy", threads=2),
    ):
        observation(arm(), motion, settings=settings)
    observation(arm(), motion[:2000], settings=IdentifySettings(engine="compiled"))
    list(module.stream(arm(), motion, settings=IdentifySettings(engine="compiled")).each(_starts))
    assert asked == [5, 2, 4, 1, 2, 1, 4]


def _starts(plan: EquationPlan, job: Job) -> int:
    """Some work that is not the factors."""
    return job.start


def test_an_error_in_a_worker_arrives_whole() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(DataError, match="no force of it is measured"):
        observation(arm(), replace(log(50), forces=None), executor=pool)


def test_progress_is_told() -> None:
    told: list[tuple[float, float | None]] = []
    motion, _ = long_log()
    observation(arm(), motion, progress=lambda task, done, total: told.append((done, total)))
    assert told[0] == (0.0, 40000.0) and told[-1] == (40000.0, 40000.0) and len(told) == 4


def winch(load: bool) -> Machine:
    """A drum on a horizontal axis with a current and, hung on it, a load whose mass is known, or not."""
    bodies = [Body("1", placement=MDH(alpha=RIGHT))]
    machine = Machine.of_bodies(bodies, elements=[drive_gain("q1", "amps", name="K"), damper("q1", name="h")])
    p = machine.parameters.known({n: 0.0 for n in machine.parameters.names[:10] if n not in ("ZZ1", "MX1")})
    return machine.with_parameters(p.known({"MX1": 2.0}) if load else p)


def winch_log() -> Motion:
    """ZZ 0.5, MX 2, h 0.3, K 1.7: the current that makes a random motion."""
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 300, 1))
    motion = Motion(np.arange(300.0), q, qd, qdd, signals={"amps": np.zeros(300)})
    truth = {"ZZ1": 0.5, "MX1": 2.0, "h": 0.3, "K": 1.7}
    asked = inverse_dynamics(winch(True), motion, parameters=winch(True).parameters.replacing(truth).values)
    return replace(motion, signals={"amps": asked[:, 0] / 1.7})


def test_drive_gain_is_found_with_a_known_load() -> None:
    s = solve(observation(winch(True), winch_log()))
    names = [winch(True).parameters.names[c] for c in s.columns]
    assert dict(zip(names, s.values, strict=True)) == pytest.approx({"ZZ1": 0.5, "K": 1.7, "h": 0.3}, rel=1e-9)


def test_drive_gain_is_refused_without_a_load() -> None:
    with pytest.raises(IdentificationError, match=r"measured side is zero everywhere[\s\S]*Drive gains need a load"):
        solve(observation(winch(False), winch_log()))
    assert driven(winch(False)) == {"q1"}


def car_motion(machine: Machine, samples: int) -> Motion:
    """Built sample by sample in place: nothing is left behind but the motion."""
    rng = np.random.default_rng(0)

    def filled(width: int) -> np.ndarray:
        x = np.empty((samples, width))
        for k in range(0, samples, 10000):
            x[k : k + 10000] = rng.normal(size=x[k : k + 10000].shape)
        return x

    from veridyn.model.motion import BaseMotion

    base = BaseMotion(filled(3), filled(3), filled(3), filled(3))
    wrenches = {b: filled(6) for b in ("3", "7", "13", "18")}
    return Motion(
        np.arange(samples) / 500.0, filled(machine.n), filled(machine.n), filled(machine.n), base, wrenches=wrenches
    )


def traced_peak(samples: int) -> int:
    """Bytes of arrays and objects alive at the worst moment of streaming the 33 parameters of paper 000 over its ten rows."""
    machine = estimated_33(car_20(elements=True))
    motion = car_motion(machine, samples)
    tracemalloc.start()
    try:
        observation(machine, motion, TEN_ROWS)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_log() -> None:
    """20 000 and 50 000 samples of the 20-dof car: the same peak, far below the 136 MB of 50 000 × 10 × 34 numbers."""
    few, many = traced_peak(20_000), traced_peak(50_000)
    print(f"peak {few / 1e6:.1f} MB at 20 000 samples, {many / 1e6:.1f} MB at 50 000")
    assert many < 1.1 * few + 1e6
    assert many < 30e6


@pytest.mark.slow
def test_memory_at_a_million_samples() -> None:
    """The 20-dof car, all 90 parameters of its nine real bodies and its 19 elements over all 20 rows: below 150 MB beside the motion.

    A process of its own; its largest resident size less what it held once the motion was built.
    """
    here = Path(__file__).parents[2]
    script = textwrap.dedent(f"""
        import importlib.util, resource, sys
        sys.path.insert(0, {str(here)!r})
        spec = importlib.util.spec_from_file_location("here", {__file__!r})
        here = importlib.util.module_from_spec(spec)
        sys.modules["here"] = here
        spec.loader.exec_module(here)
        print(here.resident_growth(1_000_000))
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    growth = float(done.stdout)
    print(f"{growth / 1e6:.0f} MB beside the motion")
    assert growth < 150e6


def resident_growth(samples: int) -> float:
    """Bytes by which the largest resident size exceeds the size held before streaming."""
    machine = car_20("wheels", elements=True)
    motion = car_motion(machine, samples)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    before = pages * resource.getpagesize()
    observation(machine, motion)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0 - before


def test_identify_is_the_same_door() -> None:
    machine, motion = arm(), log(700)
    assert identify(machine, motion).values == pytest.approx(solve(observation(machine, motion)).values, rel=1e-12)


def changed(machine: Machine, rng: np.random.Generator) -> Machine:
    """Some parameters known, one tied to another, a damper on the first coordinate."""
    machine = machine.with_elements([damper(machine.coordinates[0], 0.3)])
    names = rng.permutation(machine.parameters.names[:-1]).tolist()
    known = machine.parameters.known(names[: len(names) // 5])
    return machine.with_parameters(known.tied({names[-1]: Tie(names[-2], 0.7)}))


@pytest.mark.parametrize("seed", range(12))
def test_relations_hold_at_any_state(seed: int) -> None:
    """D T = (D T)[:, kept] K to 1e-11 of the largest column, on random trees with known and tied parameters and a damper.

    Trees without relations have as many independent columns as columns.
    """
    rng = np.random.default_rng(seed)
    machine = changed(random_open_machine(rng, base="free" if seed % 2 else "fixed", virtual=0.2), rng)
    rule = dependence(machine)
    D = regressor(machine, random_motion(rng, machine, 60, wrenches=False)) @ machine.parameters.estimated_matrix()
    scale = np.abs(D).max()
    alive = np.count_nonzero(np.abs(D).max(axis=(0, 1)) > 1e-12 * scale)
    if rule is None:
        assert np.linalg.matrix_rank(D.reshape(-1, D.shape[2]), tol=1e-9 * scale) == alive
        return
    assert np.abs(D[:, :, list(rule.kept)] @ rule.matrix - D).max() < 1e-11 * scale
    assert len(rule.kept) < alive


def both(monkeypatch: pytest.MonkeyPatch, machine: Machine, motion: Motion, sampling: Sampling) -> list[RowFactors]:
    """Factors over all columns, and over the kept ones, restored."""
    found = []
    for least in (10**9, 1):
        monkeypatch.setattr(module, "MIN_SAMPLES", least)
        found.append(observation(machine, motion, settings=IdentifySettings(sampling=sampling, engine="compiled")))
    return found


def difference(a: RowFactor, b: RowFactor) -> float:
    """The largest entry of the difference of RᵀR, columns of one length; those that are zero to rounding count as the largest."""
    size = np.linalg.norm(a.R, axis=0)
    size[size < 1e-12 * size.max()] = size.max()
    return float(np.abs((a.R.T @ a.R - b.R.T @ b.R) / np.outer(size, size)).max())


@pytest.mark.parametrize("filtered", [False, True])
def test_factors_are_those_of_all_columns(monkeypatch: pytest.MonkeyPatch, filtered: bool) -> None:
    """RᵀR to 1e-12 of its columns, with a known parameter, a tie and a wrench, plain or filtered, decimated and thinned."""
    machine, motion = arm(), log(3000)
    how = Sampling(filter=Butterworth(20.0), decimate=3, dead_zone={"q1": 0.1}) if filtered else Sampling()
    whole, lean = both(monkeypatch, machine, motion, how)
    assert [f.columns for f in lean.rows] == [f.columns for f in whole.rows]
    for a, b in zip(whole.rows, lean.rows, strict=True):
        assert (a.samples, a.measured) == (b.samples, b.measured) and b.R.shape == a.R.shape
        assert difference(a, b) < 1e-12 and (np.tril(b.R, -1) == 0.0).all()
    assert not filtered or whole.samples < 3 * 1000


def test_the_solution_is_the_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, motion = arm(), log(900)
    _, lean = both(monkeypatch, machine, motion, Sampling())
    check(machine, solve(lean), dense(machine, motion, machine.rows))


def test_restored_factors_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two halves of a log, restored and merged, are the whole of it."""
    machine, motion = arm(), log(2000)
    halves = [both(monkeypatch, machine, motion[k], Sampling())[1] for k in (slice(0, 900), slice(900, None))]
    whole = both(monkeypatch, machine, motion, Sampling())[0]
    for a, b in zip(whole.rows, halves[0].merge(halves[1]).rows, strict=True):
        assert difference(a, b) < 1e-12


def test_where_nothing_is_saved_all_columns_stay() -> None:
    """Base parameters alone, shared coordinates and closed loops, which the rules do not reach: None."""
    machine = replace(arm(), elements=arm().elements)
    rule = dependence(machine)
    assert rule is not None
    every = [n for n, s in zip(machine.parameters.names, machine.parameters.states, strict=True) if s == "estimated"]
    spare = [n for n in every if machine.parameters.index(n) not in rule.kept]
    alone = machine.with_parameters(machine.parameters.known(dict.fromkeys(spare, 0.0)))
    assert dependence(alone) is None
    assert dependence(random_open_machine(np.random.default_rng(3), 6, kinds=("turning",), shared=True)) is None
    assert not worthwhile(((1, 2, 3),), ((1, 2, 3),)) and worthwhile(((1, 2, 3),), ((1,),))
