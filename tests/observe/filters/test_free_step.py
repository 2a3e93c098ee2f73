"""The buggy in natural coordinates as filters see it: sensors of the tree, derivatives by differences, machine code, and a full circle."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.quantity import Quantity
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.mechanics.tree.steps.model import tree_model
from veridyn.mechanics.tree.virtual import TreeQuantities
from veridyn.model.elements.element import law
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.filter import Filter, Passing
from veridyn.observe.filters.free_step import FreeStep
from veridyn.observe.filters.methods import EKF, ErrorEKF, ForceErrorEKF
from veridyn.observe.machine import ErrorModel, MachineSystem
from veridyn.observe.measurements import Status
from veridyn.observe.observation import Virtual, quantity_of
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.result import Belief
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer
from veridyn.papers.buggy.drive import settle
from veridyn.papers.buggy.machine import CORNERS, buggy
from veridyn.papers.buggy.observers import INPUTS, standing_start
from veridyn.spatial.rotations import rotation_of

Array = NDArray[np.float64]
HEADING, SPEED, DRIFT = 2.0, 5.0, 0.1  # rad, m/s ahead and to the left
ROLLING = {
    "base.x": SPEED * np.cos(HEADING) - DRIFT * np.sin(HEADING),
    "base.y": SPEED * np.sin(HEADING) + DRIFT * np.cos(HEADING),
    "base.yaw": 0.1,
    **{f"spin_{c}": 15.0 for c in CORNERS},
    "spin_fr": 16.0,
}
PUSHED = ("base.x", "base.yaw", "spin_fl")
ACTING = np.array([100.0, 90.0, -0.004, 0.02, 0.5])


@cache
def machine(clutch: bool = True) -> Machine:
    """The buggy, with a clutch between its front wheels: a law of one's own, which is zero at rest."""
    between = law({"spin_fl": 1.0, "spin_fr": -1.0}, "tanh(v/3) + 0.01*v*rate(spin_rl)", 8.0, "clutch")
    m = buggy().with_elements([between]) if clutch else buggy()
    headings = [Sensor("yaw", "yaw", "chassis", 0.03), Sensor("course", "course", "chassis", 0.03)]
    return m.with_formulation("natural").with_sensors([*m.sensors, *headings])


@cache
def start() -> dict[str, float]:
    return {**standing_start(buggy()), "base.yaw": HEADING, "rack": -0.004}


def made(
    error_model: ErrorModel = "exact", unknown: tuple[str, ...] = PUSHED, clutch: bool = True
) -> tuple[MachineSystem, Array, Array]:
    noise = ProcessNoise(
        start=1e-3, start_rate=1e-2, start_force=10.0, start_element=1e-3, acceleration=1e-2, force=1.0
    )
    return machine_system(
        machine(clutch),
        ObserveSettings(
            model_error="off",
            process_noise=noise,
            unknown=unknown,
            inputs=INPUTS,
            start=start(),
            rates=ROLLING,
            step=2e-3,
        ),
        error_model=error_model,
    )


def closed(clutch: bool = True) -> tuple[MachineSystem, Array]:
    """The system, and a state whose prescribed rack is where the inputs have it."""
    system, q, qd = made(clutch=clutch)
    x = system.belief(q, qd).x
    at = system.instant(x, ACTING)
    _, _, u, b = system.split(x)
    return system, system.join(at.q, at.qd, u, b)


def test_sensors_read_what_they_read_on_the_tree() -> None:
    system, x = closed()
    at = system.instant(x, ACTING)
    tree = tree_of(machine())
    table = tree_readout(tree, machine().sensors)
    names = [a.name for a in system.model.system.mechanism.added]
    joints, rates, bends = (
        np.array([v[system.model.system.mechanism.index(c)] if c in names else 0.0 for c in tree.coordinates])
        for v in (at.q, at.qd, at.qdd)
    )
    R, w = system.model.freedoms.attitude(at.q), system.model.freedoms.rows(at.q)
    zd, zdd = w @ at.qd, w @ at.qdd
    e0 = 0.5 * np.sqrt(1.0 + np.trace(R))
    e = np.array([e0, *(np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4.0 * e0))])
    assert rotation_of(e) == pytest.approx(R, abs=1e-9)
    state = np.concatenate([system.model.freedoms.position(at.q), e, joints])
    expected = table.read(state, np.concatenate([zd[:6], rates]), np.concatenate([zdd[:6], bends]))
    assert table.names == system.outputs
    assert system.sense(x, ACTING, 0.0) == pytest.approx(expected, rel=1e-8, abs=1e-7)


def test_derivatives_of_readings_are_those_of_differences() -> None:
    system, x = closed()
    _, H = system.sense_and_jacobian(x, ACTING, 0.0)
    h = 1e-5
    for j in range(0, len(system.states), 3):
        d = h * np.eye(len(system.states))[j]
        ahead, back = (system.sense(system.add(x, k * d), ACTING, 0.0) for k in (1.0, -1.0))
        column = (ahead - back) / (2.0 * h)
        assert H[:, j] == pytest.approx(column, rel=1e-4, abs=1e-4 * max(1.0, np.abs(column).max())), system.states[j]


def test_the_force_of_the_rack_is_a_virtual_sensor() -> None:
    """That of inverse dynamics of the tree at the same accelerations, and its derivative by differences.

    Without the clutch, so that the equations of its tree are those of every other buggy and compiled once.
    """
    system, x = closed(clutch=False)
    force = quantity_of(system, Virtual("rack force", "force", "rack"))
    at = system.instant(x, ACTING)
    y, G = force.at(x, at, ACTING)
    tree, known = tree_of(machine(clutch=False)), system.model.local(at.q, at.qd)
    assert force.components == ("rack force",) and force.units == ("N",)
    model = tree_model(tree, unknown=())
    loads = model.loads(dict(zip(INPUTS, ACTING.tolist(), strict=True)))
    joints = dict(zip(system.model.names, known[: system.f].tolist(), strict=True))
    a, v = model.start_of(
        {**joints, "rack": ACTING[2]}, dict(zip(system.model.names, known[system.f :].tolist(), strict=True))
    )
    there = model.instant(a, v, model.start_unknown, loads)
    found = TreeQuantities(model, [Quantity("drive", tree.coordinates.index("rack"))]).at(
        there.q, there.qd, there, loads
    )
    assert y == pytest.approx(found.y, rel=1e-6, abs=1e-4)
    h, d = 1e-5, np.random.default_rng(0).normal(size=len(system.states))
    ahead, back = (system.add(x, k * h * d) for k in (1.0, -1.0))
    change = (
        force.at(ahead, system.instant(ahead, ACTING), ACTING)[0]
        - force.at(back, system.instant(back, ACTING), ACTING)[0]
    )
    assert G @ d == pytest.approx(change / (2.0 * h), rel=1e-3)
    with pytest.raises(DataError, match="known only of a prescribed coordinate"):
        quantity_of(system, Virtual("push", "force", "lower_fl"))


@pytest.mark.parametrize(
    "error_model",
    [pytest.param("integrator", marks=pytest.mark.slow), pytest.param("forward", marks=pytest.mark.slow), "exact"],
)
def test_machine_code_agrees_with_the_reference(error_model: ErrorModel) -> None:
    """Three steps with readings that correct, the rack moving: places to 1e-9 m, H to a millionth, F and P as `close` says.

    Rates are projected in the metric M by machine code, in M + h/2 C + h²/4 K by the reference: 1e-4 of 15 rad/s. The integrator takes what
    slips push with at the end of a step, the reference as a mean over it; the forward model takes their own derivatives from there too,
    half of what these change by in a step away.
    """
    method: dict[str, Filter] = {
        "integrator": ErrorEKF(engine="python"), "forward": ForceErrorEKF(engine="python"), "exact": EKF(engine="python")
    }  # fmt: skip
    system, q, qd = made(error_model, () if error_model == "integrator" else PUSHED)
    b = system.belief(q, qd, 0.0)
    b = Belief(b.x, np.diag(b.P) if b.P.ndim == 1 else b.P, 0.0)
    code = FreeStep(system, np.inf)
    other, flags, acting = b, np.zeros(len(system.outputs), dtype=np.int8), ACTING
    for k in range(3):
        after = system.later(acting, 2e-3)
        assert after is not None
        y = system.sense(system.move(other.x, acting, 0.0, 2e-3), after, 0.0) + 1e-3 * np.sin(np.arange(len(flags)) + k)
        passage = code(b, acting, 2e-3 * (k + 1), y, flags, after)
        assert passage is not None
        x, P, F = method[error_model].predict(system, other, acting, 0.0, 2e-3)
        n, close = system.nq, {"integrator": 0.03, "forward": 1e-6, "exact": 1e-6}[error_model]
        assert passage.prediction.x[:n] == pytest.approx(x[:n], abs=1e-9)
        assert passage.prediction.x[n : 2 * n] == pytest.approx(x[n : 2 * n], abs=1e-4)
        assert passage.prediction.x[2 * n :] == pytest.approx(x[2 * n :], abs=1e-8)
        assert np.abs(passage.prediction.P - P).max() <= close * np.abs(P).max()
        off, slips = np.abs(passage.prediction.F - F), np.array([s.startswith("state.") for s in system.states])
        if error_model == "forward":
            _, _, ahead = method[error_model].predict(system, Belief(x, P, 2e-3 * (k + 1)), after, 0.0, 2e-3)
            assert off[slips].max() <= np.abs(ahead - F)[slips].max() < 0.01
            off = off[~slips]
        assert off.max() <= close * np.abs(F).max()
        expected = method[error_model].expect(system, x, P, after, 0.0)
        assert np.abs(passage.H - expected.H).max() <= 1e-6 * np.abs(expected.H).max()
        corrected = system.add(x, passage.correction.dx)
        assert passage.belief.x[:n] == pytest.approx(corrected[:n], abs=1e-8)
        assert passage.belief.x[n:] == pytest.approx(corrected[n:], abs=1e-4)
        b, acting = passage.belief, after
        other = b
    if error_model == "exact":
        _readings_beyond_the_gate(system, b, acting)


def _readings_beyond_the_gate(system: MachineSystem, b: Belief, acting: Array) -> None:
    """A reading fifty deviations off counts little, by machine code and by Python the same; others correct as ever."""
    compiled, python = Passing(EKF(), system), Passing(EKF(engine="python"), system)
    flags, after = np.zeros(len(system.outputs), dtype=np.int8), system.later(acting, 2e-3)
    assert after is not None and b.t is not None
    y = system.sense(system.move(b.x, acting, 0.0, 2e-3), after, 0.0)
    wild = y.copy()
    wild[1] += 50.0 * np.sqrt(system.sensor_noise(0.0)[1, 1])
    found, reference = (step(b, acting, b.t + 2e-3, wild, flags, after) for step in (compiled, python))
    assert compiled.by_reference == 0 and python.by_reference == 2
    assert list(found.status) == list(reference.status) and found.status[1] == Status.OUTLIER
    assert pytest.approx(reference.correction.P, rel=1e-5, abs=1e-12) == found.correction.P
    assert found.correction.dx == pytest.approx(reference.correction.dx, rel=1e-4, abs=1e-6)
    assert found.correction.nis == pytest.approx(reference.correction.nis, abs=0.01)


def _steered(s: float) -> Array:
    """Torques, and the rack led from −4 to −25 mm while s goes from 0 to 1, in .4 s, with no jump of its rate."""
    s = min(s, 1.0)
    way = s * s * (3.0 - 2.0 * s)
    return np.array(
        [
            60.0,
            60.0,
            -0.004 - 0.021 * way,
            -0.021 * 6.0 * s * (1.0 - s) / 0.4,
            -0.021 * 6.0 * (1.0 - 2.0 * s) * (s < 1.0) / 0.16,
        ]
    )


@pytest.mark.slow
def test_a_full_circle_is_survived() -> None:
    """Nobody measures: the machine drives once round and on, all constraints closed, and no attitude is singular."""
    system, q, qd = made("integrator", ())
    code = FreeStep(replace(system, longest=4e-3), np.inf)
    code.refresh(50)
    b = system.belief(q, qd, 0.0)
    b = Belief(b.x, np.zeros((len(system.states), len(system.states))), 0.0)
    nothing = np.full(len(system.outputs), Status.MISSING, dtype=np.int8)
    yaws, ramp = [], 100
    for k in range(4000):
        at, after = (_steered(i / ramp) for i in (k, k + 1))
        passage = code(b, at, 4e-3 * (k + 1), np.full(len(nothing), np.nan), nothing, after)
        assert passage is not None
        b = passage.belief
        yaws.append(system.reduced(b.x)[5])
    turned = np.unwrap(yaws)
    assert turned[-1] - turned[0] > 2.0 * np.pi + 0.5
    R = system.model.freedoms.attitude(b.x[: system.nq])
    assert pytest.approx(np.eye(3), abs=1e-9) == R.T @ R
    open_by = np.abs(system.model.held(system.acting(_steered(40.0))).constraints.values(b.x[: system.nq])).max()
    assert open_by <= 2e-12 * np.abs(b.x[: system.nq]).max() ** 2


def test_what_it_cannot_do_is_refused_by_name() -> None:
    noise = ProcessNoise()
    with pytest.raises(ModelError, match="has no estimated parameters"):
        Observer(
            machine(),
            settings=ObserveSettings(
                model_error="off",
                process_noise=noise,
                parameters={"tyre_fl.QSY1": (0.01, 0.0, 0.0, 0.1)},
                start=start(),
            ),
        )
    with pytest.raises(ModelError, match="'base\\.w' is no freedom"):
        machine_system(
            machine(), ObserveSettings(model_error="off", process_noise=noise, unknown=("base.w",), start=start())
        )
    assert settle(machine()).q == pytest.approx(settle(buggy()).q)
