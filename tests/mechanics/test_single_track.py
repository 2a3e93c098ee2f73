"""The lateral motion of a car: derivatives by finite differences, steady circles in closed form, and another integration of a drive."""

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle
from veridyn.mechanics.single_track import (
    CF,
    COUNT,
    CR,
    FRONT,
    GRAVITY,
    LAWS,
    MASS,
    READINGS,
    REAR,
    lateral_functions,
    packed,
)
from veridyn.model.car import PARAMETERS
from veridyn.model.single_track import car_machine
from veridyn.observe.system import check_jacobian

GIVEN = {
    "mass": 1200.0,
    "front": 1.1,
    "rear": 1.5,
    "height": 0.55,
    "track": 1.5,
    "load_sensitivity": 0.15,
    "front_stiffness": 14.0,
    "rear_stiffness": 16.0,
    "yaw_inertia": 1900.0,
    "steering_ratio": 14.0,
    "steering_offset": 0.003,
    "roll_gradient": 0.006,
    "drag": 0.4,
    "gyro_bias": 0.002,
    "ay_bias": 0.05,
}
ESTIMATED = (
    "front_stiffness",
    "rear_friction",
    "steering_ratio",
    "yaw_inertia",
    "roll_gradient",
    "front",
    "load_sensitivity",
    "drag",
)


def understeer_gradient(v: np.ndarray) -> float:
    """The understeer gradient at rest loads and small slip, rad per m/s²: (m/L) (b/C_f − a/C_r); positive is understeer.

    On a steady circle δ = L/R + K a_y.
    """
    m, a, b = v[MASS], v[FRONT], v[REAR]
    L = a + b
    Cf, Cr = v[CF] * m * GRAVITY * b / L, v[CR] * m * GRAVITY * a / L
    return float(m / L * (b / Cf - a / Cr))


def car(law: str = "tanh", **more: float):
    return car_machine("test", {**GIVEN, **more}, law)


def parameters(law: str, estimated=(), readings=READINGS, **more: float) -> np.ndarray:
    c = car(law, **more)
    return packed(
        c.parameters.values, law, [PARAMETERS.index(n) for n in estimated], [READINGS.index(n) for n in readings]
    )


@pytest.mark.parametrize("law", sorted(LAWS))
@pytest.mark.parametrize("track", [0.0, 1.5])
@pytest.mark.parametrize("ax", [-4.0, 0.0, 2.5])
def test_every_derivative_is_that_of_finite_differences(law: str, track: float, ax: float) -> None:
    f, F, h, H = lateral_functions()
    p = parameters(law, ESTIMATED, track=track)
    u = np.array([23.0, 0.6, ax])
    x = np.concatenate([[0.7, 0.35, 0.004, -0.003, 0.01], [GIVEN.get(n, 1.0) for n in ESTIMATED]])
    scales = np.concatenate([[1.0, 0.5, 0.02, 0.02, 0.05], [5.0, 0.5, 5.0, 500.0, 0.01, 0.3, 0.2, 0.5]])
    check_jacobian(lambda z: f(z, u, 0.0, p), lambda z: F(z, u, 0.0, p), x, scales=scales)
    check_jacobian(lambda z: h(z, u, 0.0, p), lambda z: H(z, u, 0.0, p), x, scales=scales, outputs=READINGS)


def test_a_steady_circle_has_the_understeer_gradient_of_the_textbook() -> None:
    """δ = L/R + K a_y, K = (m/L)(b/C_f − a/C_r) (Rajamani 2012, 3.3); linear tyres, small angles."""
    f = lateral_functions()[0]
    p = parameters("linear", steering_ratio=1.0, steering_offset=0.0, gyro_bias=0.0, load_sensitivity=0.0, drag=0.0)
    V, r = 25.0, 0.01
    L, K = 2.6, understeer_gradient(p[:COUNT])
    delta = L * r / V + K * V * r
    from scipy.optimize import fsolve

    def steady(z):
        rates = f(np.array([z[0], r, 0.0, 0.0, 0.0]), np.array([V, z[1], 0.0]), 0.0, p)
        return rates[:2]

    v, found = np.asarray(fsolve(steady, [0.0, delta], xtol=1e-12)).tolist()
    assert found == pytest.approx(delta, rel=1e-4)  # sines and cosines of small angles
    cr = 16.0 * 1200.0 * GRAVITY * 1.1 / L
    assert v / V == pytest.approx(1.5 * r / V - 1200.0 * 1.1 * V * r / (cr * L), rel=1e-4)  # b/R − α_r
    assert pytest.approx((1.0 / 14.0 - 1.0 / 16.0) / GRAVITY) == K


def test_a_tyre_saturates_at_its_friction_and_shares_it_with_braking() -> None:
    h = lateral_functions()[2]
    p = parameters(
        "tanh", readings=("front_force", "rear_force", "load_fl", "load_rl"), track=0.0, drag=0.0, height=0.05
    )
    for ax in (0.0, -5.0):
        front, rear, fl, rl = h(np.array([-9.0, 0.0, 0.0, 0.0, 0.0]), np.array([10.0, 0.0, ax]), 0.0, p)
        for force, Z, share in ((front, 2.0 * fl, 0.6), (rear, 2.0 * rl, 0.4)):
            expected = np.sqrt(Z**2 - (share * 1200.0 * ax) ** 2)
            assert force == pytest.approx(expected, rel=1e-4)  # tanh of a large slip


def test_loads_add_up_and_move_outwards() -> None:
    h = lateral_functions()[2]
    p = parameters("tanh", readings=READINGS[-4:])
    loads = h(np.array([0.0, 0.4, 0.0, 0.0, 0.0]), np.array([20.0, 0.0, 2.0]), 0.0, p)
    assert loads.sum() == pytest.approx(1200.0 * GRAVITY)
    moved = 1200.0 * 8.0 * 0.55 / 1.5
    assert loads[1] - loads[0] == pytest.approx(moved) == pytest.approx(loads[3] - loads[2])  # half of 2ΔZ each
    assert loads[2] + loads[3] == pytest.approx(1200.0 * (GRAVITY * 1.1 + 0.55 * 2.0) / 2.6)


def test_load_transfer_costs_grip_only_where_tyres_are_sensitive() -> None:
    h = lateral_functions()[2]
    x, u = np.array([0.0, 0.4, 0.0, 0.0, 0.0]), np.array([20.0, 1.4, 0.0])

    def force(k: float, track: float) -> float:
        return h(x, u, 0.0, parameters("tanh", readings=("front_force",), load_sensitivity=k, track=track, drag=0.0))[0]

    forces, single = {k: force(k, 1.5) for k in (0.0, 0.3)}, force(0.0, 0.0)
    assert forces[0.0] == pytest.approx(single, rel=1e-12)
    assert forces[0.3] < 0.98 * single


def test_accelerations_are_those_of_a_stranger() -> None:
    """Equations written elsewhere, at states along a drive of theirs."""
    f, _, h, _ = lateral_functions()
    b = Bicycle()
    c = car_machine("b", {"mass": b.mass, "front": b.front, "rear": b.rear, "yaw_inertia": b.inertia,
        "front_stiffness": b.cf, "rear_stiffness": b.cr, "front_friction": b.mu, "rear_friction": b.mu})  # fmt: skip
    p = packed(c.parameters.values, "tanh", [], [READINGS.index("front_force"), READINGS.index("rear_force")])
    for t, v, r in ((0.3, 0.2, 0.1), (2.0, -0.5, 0.3), (5.0, 1.0, -0.4)):
        u = np.array([b.speed(t), b.steer(t), 0.0])
        forces = h(np.array([v, r, 0.0, 0.0, 0.0]), u, 0.0, p)
        np.testing.assert_allclose(forces, b.forces(t, v, r), rtol=1e-12)
        Ff, Fr = forces[0] * np.cos(b.steer(t)), forces[1]
        expected = [(Ff + Fr) / b.mass - b.speed(t) * r, (b.front * Ff - b.rear * Fr) / b.inertia]
        np.testing.assert_allclose(f(np.array([v, r, 0.0, 0.0, 0.0]), u, 0.0, p)[:2], expected, rtol=1e-12)
