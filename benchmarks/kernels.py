"""Regressor, inverse and forward dynamics: samples a second, one thread, beside Pinocchio, FIGAROH and plain NumPy."""

from __future__ import annotations

import ctypes
import importlib.util
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from benchmarks.clock import Time, best_of
from benchmarks.subjects import PinModel, arm, car, motion
from veridyn.mechanics.tree.dynamics.engine import Buffer, Compiled, compiled, sample_arrays
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.symbolic.emit_llvm import BLOCK

SAMPLES = 4096
LOOP = 400  # samples of a Python loop


@dataclass(frozen=True)
class Line:
    """One measurement: samples (or calls) a second of processor time, and by the wall."""

    machine: str
    what: str
    how: str
    rate: float
    wall_rate: float
    spread: float
    reference: str = ""


def line(machine: str, what: str, how: str, samples: int, spent: Time) -> Line:
    return Line(machine, what, how, samples / spent.cpu, samples / spent.wall, spent.spread)


def kernels() -> Iterator[Line]:
    for machine in (arm(), car(20), car(38)):
        m = motion(machine, SAMPLES)
        oracle = PinModel(machine)
        yield from _regressors(machine, m, oracle)
        yield from _inverse(machine, m, oracle)
        yield from _forward(machine, m, oracle)


def states(oracle: PinModel, m: Motion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, a as Pinocchio takes them, one row a sample; the base's pose does not matter to these quantities."""
    q = np.array([oracle.configuration(x) for x in m.q])
    if m.base is None:
        return q, m.qd @ oracle.S.T, m.qdd @ oracle.S.T
    rates = np.column_stack([np.zeros((len(m), 3)), m.base.omega, m.qd])
    accelerations = np.column_stack([m.base.acceleration, m.base.omega_dot, m.qdd])
    return q, rates @ oracle.S.T, accelerations @ oracle.S.T


def _check(machine: Machine, name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    error = np.abs(ours - theirs).max() / np.abs(theirs).max()
    if error > 1e-11:
        raise SystemExit(f"{machine.name}: {name} differ by {error:.1e}; nothing is compared that is not the same")


def _regressors(machine: Machine, m: Motion, oracle: PinModel) -> Iterator[Line]:
    few = m[:LOOP]
    _check(machine, "regressors", regressor(machine, few, engine="compiled"), oracle.regressor(few))
    data = oracle.model.createData()
    q, v, a = states(oracle, few)

    def loop() -> None:
        for k in range(LOOP):
            pin.computeJointTorqueRegressor(oracle.model, data, q[k], v[k], a[k])

    yield line(machine.name, "regressor", "Pinocchio, Python loop", LOOP, best_of(loop))
    if machine.base == "fixed" and importlib.util.find_spec("figaroh") is not None:
        yield line(machine.name, "regressor", "FIGAROH", LOOP, best_of(_figaroh(oracle, q, v, a)))
    yield line(
        machine.name, "regressor", "veridyn, NumPy", SAMPLES, best_of(lambda: regressor(machine, m, engine="numpy"), 3)
    )
    made = compiled(
        tree_of(machine), Request("regressor", tuple(range(len(machine.rows))), tuple(range(len(machine.columns))))
    )
    yield line(
        machine.name,
        "regressor",
        "veridyn, consumed in cache",
        2 * BLOCK,
        best_of(in_cache(made, machine, m[: 2 * BLOCK])),
    )
    yield line(
        machine.name,
        "regressor",
        "veridyn, to new memory",
        SAMPLES,
        best_of(lambda: regressor(machine, m, engine="compiled")),
    )
    kept = Buffer()
    spent = best_of(lambda: regressor(machine, m, engine="compiled", out=kept))
    yield line(machine.name, "regressor", "veridyn, written to memory", SAMPLES, spent)


def in_cache(made: Compiled, machine: Machine, m: Motion) -> Callable[[], None]:
    """A call of the kernel on some blocks whose outputs stay in cache, as the streaming sums use it."""
    arrays = [np.ascontiguousarray(a) for a in sample_arrays(tree_of(machine), m, made.kernel.inputs)]
    out = np.zeros((len(made.labels), len(m) + 8))
    addresses = out.ctypes.data + 8 * out.shape[1] * np.arange(len(out), dtype=np.uintp)
    pointers = np.array([a.ctypes.data for a in arrays], dtype=np.uintp)
    strides = np.ones(len(arrays), dtype=np.int64)
    values = np.zeros(len(machine.columns))
    work = np.zeros(1 << 17)
    aligned = work.ctypes.data + (-work.ctypes.data) % 64
    arguments = (
        0,
        len(m),
        len(m),
        pointers.ctypes.data,
        strides.ctypes.data,
        values.ctypes.data,
        addresses.ctypes.data,
        aligned,
        0,
    )
    keep = (arrays, out, addresses, pointers, strides, values, work)
    function: ctypes.CDLL = made.kernel.function  # pyright: ignore[reportAssignmentType]

    def call() -> None:
        assert keep
        function(*arguments)  # pyright: ignore[reportCallIssue]

    return call


def _figaroh(oracle: PinModel, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Callable[[], object]:
    from types import SimpleNamespace

    from figaroh.tools.regressor import RegressorBuilder

    builder = RegressorBuilder(SimpleNamespace(model=oracle.model, data=oracle.model.createData()))
    return lambda: builder.build_basic_regressor(q, v, a, {"act_idxv": list(range(oracle.model.nv))})


def _inverse(machine: Machine, m: Motion, oracle: PinModel) -> Iterator[Line]:
    _check(
        machine,
        "inverse dynamics",
        inverse_dynamics(machine, m[:LOOP], engine="compiled"),
        oracle.inverse_dynamics(m[:LOOP]),
    )
    q, v, a = states(oracle, m)
    pool = pin.ModelPool(oracle.model, 1)
    Q, V, A = (np.asfortranarray(x.T) for x in (q, v, a))
    yield line(
        machine.name,
        "inverse dynamics",
        "Pinocchio, rneaInParallel(1)",
        SAMPLES,
        best_of(lambda: pin.rneaInParallel(1, pool, Q, V, A)),
    )
    yield line(
        machine.name,
        "inverse dynamics",
        "veridyn, NumPy",
        SAMPLES,
        best_of(lambda: inverse_dynamics(machine, m, engine="numpy"), 3),
    )
    yield line(
        machine.name,
        "inverse dynamics",
        "veridyn, compiled",
        SAMPLES,
        best_of(lambda: inverse_dynamics(machine, m, engine="compiled")),
    )


def _forward(machine: Machine, m: Motion, oracle: PinModel) -> Iterator[Line]:
    gamma = np.column_stack([np.zeros((LOOP, len(machine.rows) - machine.n)), m.forces[:LOOP]])
    theirs = oracle.forward_dynamics(m[:LOOP], gamma)
    ours = forward_dynamics(machine, m[:LOOP], engine="compiled")
    _check(machine, "forward dynamics", ours.qdd, theirs.qdd)
    data = oracle.model.createData()
    q, v, _ = states(oracle, m[:LOOP])
    tau = gamma @ oracle.S.T

    def loop() -> None:
        for k in range(LOOP):
            pin.aba(oracle.model, data, q[k], v[k], tau[k])

    yield line(machine.name, "forward dynamics", "Pinocchio, aba in a loop", LOOP, best_of(loop))
    yield line(
        machine.name,
        "forward dynamics",
        "veridyn, compiled",
        SAMPLES,
        best_of(lambda: forward_dynamics(machine, m, engine="compiled")),
    )
    instant = StateAccelerations(tree_of(machine), machine.parameters.values)
    zero, force, none = np.zeros(3), m.forces[0], {}
    yield line(
        machine.name,
        "forward dynamics",
        "veridyn, one state a call",
        1,
        best_of(lambda: instant(m.q[0], m.qd[0], force, zero, zero, none, none)),
    )


def threads() -> tuple[float, float]:
    """How many times as fast two threads are as one: a regressor consumed in cache, and inverse dynamics written to memory."""
    machine = car(20)
    made = compiled(
        tree_of(machine), Request("regressor", tuple(range(len(machine.rows))), tuple(range(len(machine.columns))))
    )
    few = motion(machine, 2 * BLOCK)
    alone, together = (min(_side_by_side(made, machine, few, count) for _ in range(5)) for count in (1, 2))
    many = replace(motion(machine, 128 * SAMPLES), forces=None)
    kept = Buffer()
    walls = [
        best_of(lambda n=n: inverse_dynamics(machine, many, engine="compiled", threads=n, out=kept)).wall
        for n in (1, 2)
    ]
    return 2.0 * alone / together, walls[0] / walls[1]


def _side_by_side(made: Compiled, machine: Machine, m: Motion, count: int, calls: int = 3000) -> float:
    """Seconds that `count` threads take, each for so many calls on memory of its own."""
    ready = threading.Barrier(count + 1)

    def work() -> None:
        call = in_cache(made, machine, m)
        ready.wait()
        for _ in range(calls):
            call()

    workers = [threading.Thread(target=work) for _ in range(count)]
    for worker in workers:
        worker.start()
    ready.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def rates() -> Iterator[tuple[str, float, float]]:
    """Of each regressor in cache: operations a second, and bytes written a second."""
    for machine in (arm(), car(20), car(38)):
        made = compiled(
            tree_of(machine), Request("regressor", tuple(range(len(machine.rows))), tuple(range(len(machine.columns))))
        )
        spent = best_of(in_cache(made, machine, motion(machine, BLOCK)))
        yield machine.name, made.count.total * BLOCK / spent.cpu, 8 * len(made.labels) * BLOCK / spent.cpu
