"""Output error of machines with loops, free bases, prescribed coordinates and wrenches.

Logs come from `integrate`, whose equations, closed by another method and integrated by SciPy, share only the recursion with the compiled
step; that of the wheel comes from equations written by hand.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import veridyn as vd
from identify.undiagnosed import identify
from identify.wheel_rig import SPIN, STIFFNESS, log, rig
from veridyn.errors import DataError, IdentificationError
from veridyn.files.access import shipped
from veridyn.identify.output_error.log_runs import cut
from veridyn.identify.output_error.output_error import OutputError
from veridyn.identify.output_error.step_shooting import led_between, step_shooting
from veridyn.identify.validate import replay
from veridyn.mechanics.system.integrate import integrate
from veridyn.mechanics.system.simulation import BaseState, Inputs, Method
from veridyn.mechanics.tree.loops.closure import close, closed_motion
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH


def estimating(machine: Machine, names: tuple[str, ...], wrong: float) -> Machine:
    """Of its parameters these are estimated, from values so many times the true ones; the others are known."""
    p = machine.parameters
    values = p.values.copy()
    for name in names:
        values[p.index(name)] *= wrong
    return machine.with_parameters(replace(p, values=values).known([n for n in p.names if n not in names]))


def linkage(wrong: float = 1.0) -> Machine:
    """An inertia, a first moment and the damping of the crank are estimated."""
    return estimating(vd.load_model(shipped("veridyn:linkage.yaml")), ("ZZ3", "MX2", "h1"), wrong)


@cache
def linkage_log() -> Motion:
    t = 0.005 * np.arange(400)
    course = 1.5 + 4.0 * np.sin(5.0 * t) + 3.0 * np.sin(13.0 * t)

    def torque(time: float, q: np.ndarray, qd: np.ndarray) -> list[float]:
        return [float(np.interp(time, t, course)), 0.0, 0.0]

    machine = linkage()
    start = close(machine, np.array([[1.0]])).q[0]
    method = Method("DOP853", step=0.005, friction_speed=0.05)
    return integrate(machine, t, start, np.zeros(3), Inputs(torque), method=method).motion


def floating(wrong: float = 1.0) -> Machine:
    """A body in space that carries an arm on one joint."""
    bodies = [Body("hull", joint="fixed"), Body("arm", "hull", placement=MDH(alpha=0.4, d=0.3), coordinate="q")]
    inertia = {
        "hull": from_centre(8.0, (0.05, 0.02, -0.03), np.diag([0.4, 0.5, 0.3])),
        "arm": from_centre(2.0, (0.2, 0.03, 0.0), np.diag([0.01, 0.05, 0.05])),
    }
    machine = Machine.of_bodies(bodies, name="floating", base="free", inertia=inertia)
    return estimating(machine, ("ZZ_hull", "XX_hull", "MX_arm", "ZZ_arm"), wrong)


@cache
def floating_log() -> Motion:
    t = 0.01 * np.arange(200)
    pushes = np.stack([6 * np.sin(3 * t + k) + 4 * np.cos((5 + k) * t) for k in range(6)], axis=1) * [
        6,
        6,
        8,
        0.1,
        0.1,
        0.1,
    ]
    pushes[:, 2] += 98.0

    def wrench(time: float, q: np.ndarray, qd: np.ndarray) -> dict[str, np.ndarray]:
        return {"hull": np.array([np.interp(time, t, x) for x in pushes.T])}

    def torque(time: float, q: np.ndarray, qd: np.ndarray) -> list[float]:
        return [float(np.interp(time, t, 0.5 * np.sin(6.0 * t)))]

    start = BaseState(position=np.array([0.3, 0.1, 1.0]), quaternion=np.array([0.8, 0.0, 0.6, 0.0]))
    method = Method("DOP853", step=0.01)
    return integrate(floating(), t, [0.4], [0.0], Inputs(torque, wrench), base=start, method=method).motion


@pytest.mark.parametrize(
    "made", [(linkage, linkage_log, 0.2), (floating, floating_log, 0.3)], ids=["loop", "free base"]
)
def test_sensitivities_are_those_of_finite_differences(made) -> None:
    make, recorded, horizon = made
    machine, motion = make(), recorded()
    columns = list(machine.parameters.select("estimated"))
    values = machine.parameters.values.copy()
    shooting = step_shooting(
        machine, varying=columns, values=values, wrenches=list(motion.wrenches), substeps=2, friction_speed=0.05
    )
    (runs,) = cut(machine, [motion[:80]], horizon)
    runs = runs[:1]
    spread = np.eye(len(values))[:, columns]
    state = shooting.initial(runs)
    state[:, : min(6, shooting.size)] += 0.02
    _, slopes = shooting.columns(runs, state, values, spread)
    for k in range(len(columns) + shooting.size):
        size, ends = 1e-6, []
        for way in (size, -size):
            here, there = values.copy(), state.copy()
            if k < len(columns):
                here[columns[k]] += way
            else:
                there[:, k - len(columns)] += way
            ends.append(shooting.residuals(runs, there, here))
        numeric = (ends[1] - ends[0]) / (2.0 * size)
        scale = max(np.linalg.norm(numeric), 1e-3)
        assert np.linalg.norm(slopes[..., k] - numeric) < 2e-2 * scale, (
            k
        )  # attitudes: residuals of 0.02 rad, half of that


def test_a_machine_with_a_loop_by_output_error() -> None:
    """Exact coordinates give the truth to the order of the step; noisy ones within three deviations."""
    motion = linkage_log()
    how = OutputError(substeps=4)
    exact = identify(linkage(1.3), motion, how)
    wanted = exact.base.reduce(linkage().parameters.values)
    assert exact.values == pytest.approx(wanted, rel=2e-3)
    q1 = motion.q[:, :1] + 1e-3 * np.random.default_rng(8).normal(size=(len(motion), 1))
    noisy = closed_motion(linkage(), motion.t, q1, motion.qd[:, :1], motion.qdd[:, :1], start=motion.q[0])
    noisy = replace(noisy, forces=motion.forces)
    fit = identify(linkage(1.3), noisy, how)
    assert [r.row for r in fit.rows] == ["q1"]  # from which the other angles follow
    assert np.abs((fit.values - wanted) / fit.sigma).max() < 3.0
    assert fit.rows[0].rms == pytest.approx(1e-3, rel=0.15)
    assert replay(fit.machine(), noisy, horizon=0.5, substeps=2, friction_speed=0.05).rows[0].rms < 0.01


def test_a_machine_on_a_free_base_under_a_measured_wrench() -> None:
    motion, rng = floating_log(), np.random.default_rng(2)
    base = motion.base
    assert base is not None and base.position is not None and base.quaternion is not None
    turned = base.quaternion + 5e-4 * rng.normal(size=base.quaternion.shape)
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    noisy = replace(
        motion,
        q=motion.q + 1e-3 * rng.normal(size=motion.q.shape),
        base=replace(base, position=base.position + 1e-3 * rng.normal(size=base.position.shape), quaternion=turned),
    )
    fit = identify(floating(1.2), noisy, OutputError(substeps=20))
    wanted = fit.base.reduce(floating().parameters.values)
    assert np.abs((fit.values - wanted) / fit.sigma).max() < 3.5
    assert (fit.sigma < 0.02 * np.abs(wanted)).all()
    assert [r.row for r in fit.rows] == ["base.x", "base.y", "base.z", "base.roll", "base.pitch", "base.yaw", "q"]
    assert fit.rows[0].rms == pytest.approx(1e-3, rel=0.2)  # four deviations of 200 squares
    coarse = identify(floating(1.2), noisy, OutputError())
    assert np.abs((coarse.values - wanted) / coarse.sigma).max() > 3.5  # a step of 10 ms is too long, and this is noted
    assert any("use substeps=4" in note for note in coarse.notes)
    assert not any("use substeps" in note for note in fit.notes)


def test_a_prescribed_coordinate_with_a_tyre() -> None:
    """The carriage moves as it was measured; the wheel's inertia and the tyre's stiffness follow from its turning."""
    machine = rig(stiffness=9000.0, spin=0.42).with_prescribed(["x"])
    p = machine.parameters
    machine = machine.with_parameters(p.known([n for n in p.names if n != "ZZ_wheel"]))
    exact = log()
    noisy = replace(exact, q=exact.q + [0.0, 1e-3] * np.random.default_rng(4).normal(size=exact.q.shape))
    fit = identify(machine, noisy, OutputError(constants=("tyre.C_KAPPA",), substeps=4))
    assert fit.constants is not None
    assert abs(fit.values[0] - SPIN) < 3.0 * fit.sigma[0] < 0.05 * SPIN
    assert abs(fit.constants.values[0] - STIFFNESS) < 3.0 * fit.constants.sigma[0] < 0.05 * STIFFNESS


def test_a_prescribed_coordinate_between_samples() -> None:
    """A cubic rate is met exactly, noise of places moves no rate, and steps follow each other without a jump of the rate."""
    T, m, t = 0.02, 5, 0.02 * np.arange(7)
    jerk = np.array([[0.3, -2.0]])
    q, v, a = (
        t[:, None] ** 4 / 4 + jerk * t[:, None] ** 2,
        t[:, None] ** 3 + 2 * jerk * t[:, None],
        3 * t[:, None] ** 2 + 2 * jerk,
    )
    noise = 1e-3 * np.random.default_rng(0).normal(size=q.shape)
    led = led_between(np.concatenate([q + noise, v, a], axis=1), T, m)
    s = (T / m * np.arange(6 * m))[:, None]
    np.testing.assert_allclose(led[:, 2:4], s**3 + 2 * jerk * s, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        led[:, :2] - np.repeat(noise[:-1], m, axis=0), s**4 / 4 + jerk * s**2, rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(led[:-1, 2:4] + T / m * led[:-1, 4:], led[1:, 2:4], rtol=0, atol=1e-14)


def test_what_cannot_be_compared_is_refused_by_name() -> None:
    motion = floating_log()
    with pytest.raises(DataError, match="no coordinate 'q9'"):
        identify(linkage(), linkage_log(), OutputError(outputs=("q9",)))
    assert motion.base is not None
    blind = replace(motion, base=replace(motion.base, position=None, quaternion=None))
    with pytest.raises(DataError, match="pose and velocity of the free base"):
        identify(floating(), blind, "oe")
    with pytest.raises((DataError, IdentificationError), match="loops with a control law"):
        identify(linkage(), linkage_log(), OutputError(law=lambda t, q, qd: np.zeros(3)))
