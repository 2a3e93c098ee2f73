"""Controllers while a machine runs, against matrix exponentials of the same linear system with held inputs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from tests.mechanics.control.gantries import HEAVIER, MASS, Step, Wave, cart, gantry, servo
from tests.mechanics.control.two_links import arm

from veridyn.errors import DataError, SimulationError
from veridyn.manoeuvres import Commanded
from veridyn.mechanics.control.sampled import SampledControl, controlled_coordinates
from veridyn.mechanics.system.simulation import Method
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import damper, dc_motor
from veridyn.model.motion import Motion

EXACT = Method("RK4", step=5e-3)  # exact for a constant force on a free mass: its motion is a parabola


def held(A, B, s):
    n, m = B.shape
    block = np.zeros((n + m, n + m))
    block[:n, :n], block[:n, n:] = A * s, B * s
    e = expm(block)
    return e[:n, :n], e[:n, n:]


def free_mass(mass):
    return np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0 / mass]])


def recursion(mass, law, command, rate, ticks, delay=0.0, command_delay=0.0, start=(0.0, 0.0), ki=0.0):
    """States (ticks + 1, 2) at the ticks of one law u = law(r, ṙ, q, q̇) + I on a free mass, measured `delay` ago."""
    A, B = free_mass(mass)
    path, inputs, integral = [np.array(start)], [], 0.0

    def state_at(t):
        if t <= 0.0:
            return path[0]
        k = min(int(np.floor(t * rate + 1e-9)), len(inputs) - 1)
        phi, g = held(A, B, t - k / rate)
        return phi @ path[k] + g[:, 0] * inputs[k]

    for k in range(ticks):
        t = k / rate
        q, qd = state_at(t - delay)
        r, rd, _ = (x[0] for x in command.at(max(t - command_delay, 0.0)))
        inputs.append(law(r, rd, q, qd) + integral)
        integral += ki * (r - q) / rate
        phi, g = held(A, B, 1.0 / rate)
        path.append(phi @ path[-1] + g[:, 0] * inputs[-1])
    return np.array(path)


def moved(machine, command, duration, rate, method=EXACT, **more):
    return Commanded(command, duration, rate, method=method, **more).run(machine).motion


@pytest.mark.parametrize(
    "delays", [(0.0, 0.0), (0.01, 0.0), (0.0037, 0.0), (0.0237, 0.0), (0.0, 0.0043), (0.0125, 0.02)]
)
def test_a_sampled_pd_with_delays_moves_a_mass_as_matrix_exponentials_say(delays):
    measured, asked = delays
    c = servo(kp=60.0, kd=12.0, measurement_delay=measured, command_delay=asked)
    motion = moved(cart(c), Wave(), 0.5, 100.0, q=[0.0])
    expected = recursion(MASS, lambda r, rd, q, qd: 60 * (r - q) + 12 * (rd - qd), Wave(), 100.0, 50, measured, asked)
    assert np.column_stack([motion.q, motion.qd]) == pytest.approx(expected, abs=1e-11)


def test_a_sampled_pid_moves_a_mass_as_matrix_exponentials_say():
    c = servo("pid", kp=60.0, ki=40.0, kd=12.0)
    motion = moved(cart(c), Step(), 1.0, 100.0, q=[0.0])
    expected = recursion(MASS, lambda r, rd, q, qd: 60 * (r - q) - 12 * qd, Step(), 100.0, 100, ki=40.0)
    assert motion.q[:, 0] == pytest.approx(expected[:, 0], abs=1e-11)


def test_a_fast_pid_has_the_step_response_of_the_continuous_law():
    # m s³ + kd s² + kp s + ki: the closed loop from e(0) = 1 at rest; a law held over T lags by T/2, so errors are of that order.
    kp, ki, kd, rate = 60.0, 40.0, 12.0, 2000.0
    motion = moved(cart(servo("pid", rate=rate, kp=kp, ki=ki, kd=kd)), Step(), 1.0, 50.0, q=[0.0])
    A = np.array([[0.0, 1.0, 0.0], [-kp / MASS, -kd / MASS, 1.0 / MASS], [-ki, 0.0, 0.0]])
    errors = np.array([(expm(A * t) @ [-1.0, 0.0, 0.0])[0] for t in motion.t])  # (q − 1, q̇, I)
    assert motion.q[:, 0] - 1.0 == pytest.approx(errors, abs=5.0 / rate)
    slower = moved(cart(servo("pid", rate=0.5 * rate, kp=kp, ki=ki, kd=kd)), Step(), 1.0, 50.0, q=[0.0])
    halved = np.abs(motion.q[:, 0] - 1.0 - errors).max() / np.abs(slower.q[:, 0] - 1.0 - errors).max()
    assert halved == pytest.approx(0.5, abs=0.02)  # of first order in the period


def test_each_controller_has_its_own_rate_and_delay():
    slow = servo(on="z", name="slow", rate=40.0, kp=60.0, kd=20.0, measurement_delay=0.003)
    fast = servo(on="x", name="fast", rate=250.0, kp=90.0, kd=15.0, command_delay=0.001)
    motion = moved(gantry(slow, fast), Wave(2), 0.5, 20.0, q=[0.0, 0.0])
    z = recursion(HEAVIER, lambda r, rd, q, qd: 60 * (r - q) + 20 * (rd - qd), Wave(), 40.0, 20, 0.003)
    x = recursion(MASS, lambda r, rd, q, qd: 90 * (r - q) + 15 * (rd - qd), Wave(), 250.0, 125, 0.0, 0.001)
    assert motion.q[:, 0] == pytest.approx(z[::2, 0], abs=1e-11)
    assert motion.q[::2, 1] == pytest.approx(x[::25, 0], abs=1e-11)


def test_forces_are_held_from_tick_to_tick():
    motion = moved(cart(servo(rate=50.0, kp=60.0, kd=12.0)), Wave(), 0.2, 200.0)
    forces = motion.forces[:-1, 0].reshape(10, 4)
    assert (forces == forces[:, :1]).all()
    assert len(set(forces[:, 0])) == 10


def test_gravity_compensation_holds_an_arm_where_it_stands():
    c = [servo(on=q, name=q, kp=5.0, kd=1.0, feedforward="gravity") for q in ("q1", "q2")]
    start = np.array([0.3, -0.8])
    stays = Commanded(Hold(start), 0.3, 100.0).run(arm(*c)).motion
    assert stays.q == pytest.approx(np.tile(start, (31, 1)), abs=1e-12)


def test_a_computed_torque_is_inverse_dynamics_of_the_wanted_acceleration():
    c = [servo("computed_torque", on=q, name=q, rate=500.0, kp=100.0, kd=20.0) for q in ("q1", "q2")]
    machine, command = arm(*c), Wave(2)
    motion = moved(machine, command, 0.4, 500.0, Method("RK4", step=1e-3), q=[0.0, 0.1])
    r, rd, rdd = command.at(motion.t)
    wanted = rdd + 20.0 * (rd - motion.qd) + 100.0 * (r - motion.q)
    expected = inverse_dynamics(machine, Motion(motion.t, motion.q, motion.qd, wanted), engine="numpy")
    assert motion.forces == pytest.approx(expected, rel=1e-9, abs=1e-9)
    # ë + 20 ė + 100 e = 0 has the double root −10: e = ((1 + 10 t) e₀ + t ė₀) exp(−10 t); held over 2 ms it lags by 1 ms.
    e0, v0, t = (r - motion.q)[0], (rd - motion.qd)[0], motion.t[:, None]
    assert r - motion.q == pytest.approx(((1 + 10 * t) * e0 + t * v0) * np.exp(-10 * t), abs=5e-3)


def test_feedforward_along_the_command_leaves_little_to_the_feedback():
    def worst(word):
        c = [servo(on=q, name=q, rate=1000.0, kp=50.0, kd=5.0, feedforward=word) for q in ("q1", "q2")]
        motion = moved(arm(*c), Wave(2), 0.5, 100.0, Method("RK4", step=1e-3), qd=Wave(2).at(0.0)[1])
        return np.abs(motion.q - Wave(2).at(motion.t)[0]).max()

    assert worst("model") < 0.01 * worst("none")


class Hold:
    def __init__(self, q):
        self.q = q

    def at(self, t, /):
        rest = np.zeros((*np.shape(t), len(self.q)))
        return rest + self.q, rest, rest


R, L, K, RATIO = 1.2, 4e-3, 0.08, 30.0  # Ohm, H, N·m/A and a gear: a motor of the size of a hand
MOTOR = dc_motor({"z": RATIO}, "volts", R, L, K, K, "m")


def motor_system(drag=0.0):
    """(q, q̇, i) of the cart with its motor, and its input, the voltage."""
    A = np.array([[0.0, 1.0, 0.0], [0.0, -drag / MASS, RATIO * K / MASS], [0.0, -RATIO * K / L, -R / L]])
    return A, np.array([[0.0], [0.0], [1.0 / L]])


def test_a_motor_under_a_current_loop_moves_as_matrix_exponentials_say():
    c = servo(rate=100.0, kp=200.0, kd=30.0, motor="m", current_kp=3.0, current_ki=400.0, current_rate=400.0)
    machine = cart(c, elements=[MOTOR, damper("z", 3.0)])
    trajectory = Commanded(Step(), 0.3, 100.0, q=[0.0], method=Method("RK4", step=1.25e-4)).run(machine)
    (phi, g), x, integral, wanted, path = held(*motor_system(3.0), 1 / 400), np.zeros(3), 0.0, 0.0, []
    for m in range(120):
        if m % 4 == 0:
            path.append(x)
            wanted = (200.0 * (1.0 - x[0]) - 30.0 * x[1]) / (K * RATIO)
        u = 3.0 * (wanted - x[2]) + integral
        integral += 400.0 * (wanted - x[2]) / 400.0
        x = phi @ x + g[:, 0] * u
    expected, motion = np.array([*path, x]), trajectory.motion
    found = np.column_stack([motion.q, motion.qd, trajectory.states["m.i"]])
    # Kutta's rule at 0.0375 of the electrical time constant: its error is about 0.0375⁵/120 a step, times 30 steps of memory.
    assert found == pytest.approx(expected, abs=1e-6 * np.abs(expected).max())


def test_what_is_not_finite_is_named_with_its_place_and_time():
    class Lost:
        def at(self, t, /):
            r = np.where(np.asarray(t) < 0.1, 0.0, np.nan)[..., None]
            return r, 0.0 * r, 0.0 * r

    with pytest.raises(
        SimulationError, match=r"controller 'servo': the command of 'z' is not a finite number at 0\.1 s"
    ):
        moved(cart(servo(kp=1.0, kd=1.0)), Lost(), 0.2, 100.0)
    with pytest.raises(DataError, match="it has no controllers"):
        SampledControl(cart(), Step())


def test_a_divergence_is_named_with_its_time():
    with pytest.warns(match="small errors double every"), pytest.raises(SimulationError, match=r"at \d+\.?\d* s"):
        moved(cart(servo(rate=20.0, kp=1e5)), Step(), 30.0, 20.0, q=[0.0])


def test_commands_are_those_of_the_coordinates_in_the_order_of_the_machine():
    machine = gantry(servo(on="x", name="b", kp=1.0), servo(on="z", name="a", kp=1.0))
    assert controlled_coordinates(machine) == ("z", "x")


def test_a_motor_that_was_taken_away_is_named():
    c = servo(kp=1.0, motor="m", current_kp=1.0)
    machine = cart(c, elements=[MOTOR]).without_elements(["m"])
    with pytest.raises(DataError, match="controller 'servo': there is no motor 'm'"):
        SampledControl(machine, Step())


def test_models_of_other_machines_and_free_bases_are_refused():
    c = servo(kp=1.0, feedforward="gravity")
    with pytest.raises(DataError, match="has other coordinates"):
        SampledControl(cart(c), Step(), gantry())
