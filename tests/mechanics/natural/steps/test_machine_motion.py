"""A machine simulated in natural coordinates moves as the same machine as a tree, and as a pendulum of the book."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import veridyn as vd
from mechanics.test_formulations import MACHINES
from strangers.natural_mechanisms import rack_and_pinion
from veridyn.errors import DataError, ModelError, SimulationError
from veridyn.files.machine.load import parse_machine
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism
from veridyn.mechanics.natural.steps.machine_motion import integrate_natural_machine, natural_machine
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, Trajectory
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.machine import Machine
from veridyn.model.place import Attachment, Marker
from veridyn.papers.buggy.drive import BuggyDrive, Standing, drive, settle
from veridyn.papers.buggy.machine import buggy
from veridyn.simulate.simulator import Driven, Tracking
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement, rotation_to_axis

Array = NDArray[np.float64]
PRECISE = Method(rtol=1e-9, atol=1e-11)
TOLERANCE = 1e-7  # rad or m, over some tenths of a second: errors of the method grow to a hundred times its tolerance
LEVEL = Placement([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


def home_of(machine: Machine) -> Array:
    tree = tree_of(machine)
    stated = {**machine.assembly.guess, **machine.assembly.hold}
    return closed_home(tree) if tree.loops else np.array([stated.get(c, 0.0) for c in tree.coordinates])


def both(machine: Machine, run: Driven) -> tuple[Trajectory, Trajectory]:
    one, two = (run.run(machine.with_formulation(f)) for f in ("tree", "natural"))
    for part in ("q", "qd", "qdd", "forces"):
        a, b = getattr(one.motion, part), getattr(two.motion, part)
        scale = max(1.0, float(np.abs(a).max()))
        assert np.abs(a - b).max() <= TOLERANCE * scale * {"q": 1, "qd": 10, "qdd": 100, "forces": 10}[part], part
    return one, two


@pytest.mark.parametrize(
    "name", ["four-bar", "crane", "slider-crank", "rssr", "rssr, rod without mass", "seven-joint arm"]
)
def test_both_formulations_move_alike_under_forces_that_depend_on_the_state(name: str) -> None:
    """Described by points or by links, with and without loops; coordinates that the four-bar's points do not have follow from its loop."""
    machine = MACHINES[name]()
    tree = tree_of(machine)

    def forces(t: float, q: Array, qd: Array) -> Array:
        return np.where(tree.actuated, 2.0 * np.sin(3.0 * t) - 0.3 * qd - 0.1 * q, 0.0)

    run = Driven(0.3, 50.0, home_of(machine), np.zeros(tree.n), Inputs(forces=forces), method=PRECISE)
    one, _ = both(machine, run)
    assert np.ptp(one.motion.q, axis=0).max() > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delta", "palletizer", "hexapod", "linkage", "two arms and a rod"])
def test_the_others_move_alike_too(name: str) -> None:
    machine = MACHINES[name]()
    both(machine, Driven(0.2, 50.0, home_of(machine), np.zeros(machine.n), method=PRECISE))


@pytest.mark.parametrize("method", [PRECISE, Method("RK4", step=2e-3), Method("LSODA", rtol=1e-10, atol=1e-12)])
def test_a_pendulum_of_the_book(method: Method) -> None:
    """(m l² + I) φ̈ = −m g l cos φ + τ by SciPy alone; drives act by Inputs.loads."""
    m, l, I = 1.3, 0.5, 0.08
    rod = vd.Link(name="rod", inertia=from_centre(m, (l, 0, 0), np.diag([1e-3, I, I])))
    hinge = vd.Joint(name="phi", a=Attachment("ground", LEVEL), b="rod", actuated=True)
    pendulum = Machine.build([rod], [hinge], loads=[Drive("motor", "phi")], formulation="natural")
    inputs = Inputs(loads=lambda t: {"motor": 2.0 * np.sin(4.0 * t)})
    found = Driven(0.6, 50.0, [0.3], [0.5], inputs, method=method).run(pendulum).motion

    def rate(t: float, y: Array) -> list[float]:
        return [y[1], (2.0 * np.sin(4.0 * t) - m * 9.81 * l * np.cos(y[0])) / (I + m * l**2)]

    book = solve_ivp(rate, (0.0, 0.6), [0.3, 0.5], "DOP853", found.t, rtol=1e-12, atol=1e-13).y
    assert np.abs(found.q[:, 0] - book[0]).max() < 1e-7
    assert np.abs(found.qd[:, 0] - book[1]).max() < 1e-6
    assert found.forces[:, 0] == pytest.approx(2.0 * np.sin(4.0 * found.t))


def flying() -> Machine:
    """A free body with an arm, pushed at places."""
    trunk = vd.Link(name="trunk", inertia=from_centre(3.0, (0.1, 0.02, 0.0), np.diag([0.05, 0.08, 0.1])))
    arm = vd.Link(name="arm", inertia=from_centre(1.0, (0.3, 0.0, 0.05), np.diag([0.002, 0.03, 0.03])))
    joints = [
        vd.Joint(name="free", kind="floating", a="ground", b="trunk"),
        vd.Joint(
            name="q",
            a=Attachment("trunk", Placement(rotation_to_axis((0.2, 0.3, 0.9)), (0.2, 0.0, 0.1))),
            b="arm",
            actuated=True,
        ),
    ]
    loads = [
        Force("push", Marker("arm", (0.5, 0.0, 0.0)), (1.0, 0.5, -0.3)),
        Torque("turn", "trunk", (0.1, 0.0, 0.2)),
    ]
    return Machine.build([trunk, arm], joints, name="flying", loads=loads)


def test_a_free_base_loads_and_wrenches_in_the_frames_of_bodies() -> None:
    machine = flying()
    assert tree_of(machine).base == "free"
    inputs = Inputs(
        forces=lambda t, q, qd: np.array([0.5 * np.cos(5.0 * t) - 0.1 * qd[0]]),
        wrenches=lambda t, q, qd: {"arm": [np.sin(3.0 * t), 0.2, 0.1 * q[0], 0.05, -0.02, 0.1]},
        loads=lambda t: {"push": [np.cos(t), 0.5, -0.3]},
        contacts=lambda t, base, q, qd: {
            "trunk": [0.0, 0.0, 30.0 - 5.0 * float(np.asarray(base.velocity)[2]), 0, 0, 0]
        },
    )
    base = BaseState(
        (0.1, 0.2, 0.3), np.array([0.9, 0.1, -0.2, 0.3]) / np.sqrt(0.95), (0.3, 0.0, 0.1), (0.5, -0.4, 1.0)
    )
    run = Driven(0.2, 50.0, [0.2], [0.3], inputs, base, PRECISE)
    one, two = both(machine, run)
    assert one.motion.base is not None and two.motion.base is not None
    for part in ("omega", "omega_dot", "acceleration", "velocity", "position", "quaternion"):
        a, b = (np.asarray(getattr(x.motion.base, part)) for x in (one, two))
        b = np.where((a * b).sum(axis=1, keepdims=True) < 0.0, -b, b) if part == "quaternion" else b
        assert np.abs(a - b).max() < 1e-6, part
    assert one.loads["push"] == pytest.approx(two.loads["push"])
    assert one.motion.wrenches["trunk"] == pytest.approx(two.motion.wrenches["trunk"], abs=1e-6)


def test_prescribed_coordinates_move_as_they_are_led() -> None:
    machine = MACHINES["seven-joint arm"]().with_prescribed(["q2"])

    def led(t: float) -> dict[str, tuple[float, float, float]]:
        return {"q2": (-0.5 + 0.2 * np.sin(2.0 * t), 0.4 * np.cos(2.0 * t), -0.8 * np.sin(2.0 * t))}

    qd = np.zeros(7)
    qd[1] = 0.4
    one, _ = both(machine, Driven(0.2, 50.0, home_of(machine), qd, Inputs(prescribed=led), method=PRECISE))
    assert np.abs(one.motion.forces[:, 1]).min() > 0.1  # what leads it


class Line:
    """A reference that starts from rest."""

    def at(self, t):
        t = np.asarray(t, dtype=np.float64)
        q = 0.4 + 0.3 * (1.0 - np.cos(2.0 * t))
        return tuple(np.stack([x], axis=-1) for x in (q, 0.6 * np.sin(2.0 * t), 1.2 * np.cos(2.0 * t)))


def test_logs_of_both_formulations_are_the_same_and_each_can_be_observed() -> None:
    """The same noise on the same motion, and the same names; in the plane a gyroscope turns about z."""
    sensors = (vd.Sensor("crank", "coordinate", "phi", 1e-3), vd.Sensor("gyro", "gyroscope", "rod", 1e-2))
    machine = replace(MACHINES["rssr"](), sensors=(sensors[0], replace(sensors[1], on=Marker("rod", (0.0, 0.0, 0.0)))))
    how = Tracking(Line(), 0.4, 50.0, [60.0], [6.0], method=PRECISE)
    logs = [vd.simulate(machine.with_formulation(f), how, rng=np.random.default_rng(1)) for f in ("tree", "natural")]
    assert logs[0].names == logs[1].names
    for name in logs[0]:
        assert np.abs(logs[0][name].values - logs[1][name].values).max() < 1e-5, name
    plane = replace(MACHINES["slider-crank"](), sensors=(vd.Sensor("gyro", "gyroscope", "rod", 1e-2),))
    run = Driven(0.1, 50.0, home_of(plane), np.zeros(plane.n), method=PRECISE)
    log = vd.simulate(plane.with_formulation("natural"), run, rng=np.random.default_rng(0))
    assert log.names == ("gyro.z", "force.phi") and log["gyro.z"].unit == "rad/s"


def test_a_buggy_on_its_tyres_in_steps_of_fixed_length() -> None:
    """Tyres, a prescribed rack and drives, beside the tree, which is stepped by the same rule in coordinates of its own."""
    machine, how = buggy(tyres="linear"), BuggyDrive(duration=0.04, rack=-0.01, rate=50.0, step=2e-3)
    start = settle(machine)
    one, two = (drive(machine, how, start=start), natural_drive(machine, how, start))
    assert np.abs(one.motion.q - two.motion.q).max() < 1e-7
    assert np.abs(one.motion.qd - two.motion.qd).max() < 1e-5
    assert one.states.keys() == two.states.keys() and len(one.states) == 8
    assert all(np.abs(one.states[name] - two.states[name]).max() < 1e-7 for name in one.states)
    assert np.abs(one.motion.qd[-1]).max() > 0.05


def natural_drive(machine: Machine, how: BuggyDrive, start: Standing) -> Trajectory:
    t, method = np.arange(round(how.duration * how.rate) + 1) / how.rate, Method("RK4", how.step)
    points = machine.with_formulation("natural")
    return integrate_natural_machine(points, t, start.q, 0.0 * start.q, how.inputs(), base=start.base, method=method)


@pytest.mark.parametrize("method", [Method("RK4", step=1e-3), Method("RK45", step=1e-3)])
def test_what_goes_wrong_on_the_way_is_named_with_its_time(method: Method) -> None:
    machine = MACHINES["crane"]().with_formulation("natural")
    t, start = np.arange(11) / 100.0, home_of(machine)

    def run(forces: Callable[[float], float]) -> None:
        given = Inputs(forces=lambda t, q, qd: np.array([forces(t), 0.0]))
        integrate_natural_machine(machine, t, start, np.zeros(2), given, method=method)

    with pytest.raises(SimulationError, match=r"the force on '\w+' is nan at 0\.0[5-9]\d* s"):
        run(lambda t: np.nan if t > 0.05 else 1.0)
    with pytest.raises(ZeroDivisionError) as caught:
        run(lambda t: 1.0 / float(t < 0.05))
    assert "in the control law, at 0.0" in caught.value.__notes__[0]
    with pytest.raises(SimulationError, match=r"coordinate '[\w.]+'[\s\S]*has run away at 0\.0[4-9]\d* s"):
        run(lambda t: 1e13 if t > 0.04 else 1.0)


def test_what_cannot_be_simulated_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"(?s)it has no tree.*a tree has no racks.*veridyn simulate"):
        natural_machine(machine_of_mechanism(rack_and_pinion()))
    bar = """
veridyn: 2
name: bar
gravity: [0, -9.81]
points: {O: {at: [0, 0], fixed: true}, A: {at: [0.3, 0]}}
bodies: {rod: {bar: [O, A], length: 0.3, mass: 1}}
"""
    with pytest.raises(ModelError, match=r"(?s)do not have the coordinate.*Add them to the coordinates"):
        natural_machine(parse_machine(bar))
    linkage = MACHINES["four-bar"]()
    odd = Inputs(forces=lambda t, q, qd: np.array([0.0, 1.0, 0.0]))
    with pytest.raises(DataError, match=r"(?s)a force acts on 'q1'.*with_formulation\('tree'\)"):
        integrate_natural_machine(linkage, [0.0, 0.1], home_of(linkage), np.zeros(3), odd)
    arm = MACHINES["seven-joint arm"]().with_formulation("natural")
    lost = Inputs(wrenches=lambda t, q, qd: {"link9": np.zeros(6)})
    with pytest.raises(DataError, match=r"(?s)'link9', which is no body.*Did you mean"):
        integrate_natural_machine(arm, [0.0, 0.1], home_of(arm), np.zeros(7), lost)
