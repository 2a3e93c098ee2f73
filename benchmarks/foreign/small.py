"""Three small machines by their equations of motion in closed form, integrated by Runge and Kutta's steps. Nothing here calls veridyn.

All have gravity along −y, a motor whose torque or force is held from one sample to the next, viscous friction, and an encoder on each
measured coordinate. With q the generalised coordinates:

    cart and pendulum   q = (x, θ), θ from hanging: M = [[m₁ + m₂, m₂ l cos θ], [·, I + m₂ l²]]
    two-link arm        q = (q₁, q₂), q₂ relative: the textbook's M with l₁ and the centres of both links on their lines
    slider-crank        q = φ: J φ̈ + ½ J′ φ̇² + V′ = τ, J and V of crank, rod and slider by the loop's closed form

M q̈ = u − c(q, q̇), and u = K_p (q_d − q) + K_d (q̇_d − q̇) + f follows sums of sines on the driven coordinates, f the forces that hold the
start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
HERE = Path(__file__).resolve().parent
GRAVITY = 9.81
RATE = 500.0  # Hz
SUBSTEPS = 2  # of Runge and Kutta's fourth order from sample to sample: within 1e-9 of an integration to 1e-11
SLOPE_STEP = 1e-5  # rad, of the central differences of J and V
TERMS = 5  # of the motion wanted
Equations = Callable[[Mapping[str, float], Array, Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class SmallMachine:
    """A machine: its model `file` for veridyn, `constants` as drawn, and its equations: M (n, n) and c (n,) at a state.

    `coordinates`: names in the file; `driven`: which of them have a motor; `centre`, `reach`: of their motion; `speed`: largest angular
    frequency of it (rad/s); `gains` K_p, K_d; `encoder` (of each coordinate) and `torque`: deviations of the sensors' white noise.
    `frictions`: which of the constants are friction.
    """

    file: Path
    constants: Mapping[str, float]
    equations: Equations
    coordinates: tuple[str, ...]
    driven: tuple[int, ...]
    centre: Array
    reach: Array
    speed: float
    gains: tuple[float, float]
    encoder: Array
    torque: float
    frictions: tuple[str, ...]

    def drawn(self, rng: np.random.Generator, spread: float) -> dict[str, float]:
        """Constants of one machine: lengths as drawn, everything else off by a normal error of relative size `spread`."""
        return {
            name: value
            if name.startswith("l_")
            else value * float(1.0 + spread * np.clip(rng.standard_normal(), -3, 3))
            for name, value in self.constants.items()
        }


@dataclass(frozen=True, eq=False)
class Run:
    """Times t (N,), coordinates and rates (N, n), and what the motors held (N, driven) from each sample on."""

    t: Array
    q: Array
    qd: Array
    u: Array


def run(machine: SmallMachine, constants: Mapping[str, float], seconds: float, rng: np.random.Generator) -> Run:
    """From rest under the controller, along sums of sines with random frequencies and phases."""
    at, n = list(machine.driven), len(machine.coordinates)
    shape = (TERMS, len(at))
    w = machine.speed * rng.uniform(0.15, 1.0, shape)
    phase = rng.uniform(0.0, 2.0 * np.pi, shape)
    size = machine.reach[at] * rng.uniform(0.5, 1.0, shape) / TERMS
    count, kp, kd = round(seconds * RATE) + 1, *machine.gains
    q, qd, u = np.empty((count, n)), np.empty((count, n)), np.empty((count, len(at)))
    state = np.concatenate([machine.centre, np.zeros(n)])
    held = machine.equations(constants, machine.centre, np.zeros(n))[1][at]

    h = 1.0 / (RATE * SUBSTEPS)

    def rate(y: Array, push: Array) -> Array:
        M, c = machine.equations(constants, y[:n], y[n:])
        return np.asarray(np.concatenate([y[n:], np.linalg.solve(M, push - c)]), dtype=np.float64)

    def substep(y: Array, push: Array) -> Array:
        one = rate(y, push)
        two = rate(y + 0.5 * h * one, push)
        three = rate(y + 0.5 * h * two, push)
        return y + h / 6.0 * (one + 2.0 * (two + three) + rate(y + h * three, push))

    for k in range(count):
        t = k / RATE
        begin = min(t / 1.0, 1.0)  # the motion wanted grows within the first second
        wanted = machine.centre[at] + begin * (size * (np.sin(w * t + phase) - np.sin(phase))).sum(axis=0)
        wanted_rate = begin * (size * w * np.cos(w * t + phase)).sum(axis=0)
        q[k], qd[k] = state[:n], state[n:]
        u[k] = held + kp * (wanted - q[k, at]) + kd * (wanted_rate - qd[k, at])
        push = np.zeros(n)
        push[at] = u[k]
        for _ in range(SUBSTEPS):
            state = substep(state, push)
    return Run(np.arange(count) / RATE, q, qd, u)


def cart(p: Mapping[str, float], q: Array, qd: Array) -> tuple[Array, Array]:
    """A cart along x with a pendulum that hangs from it."""
    s, c = np.sin(q[1]), np.cos(q[1])
    ml = p["pendulum"] * p["centre"]
    M = np.array([[p["cart"] + p["pendulum"], ml * c], [ml * c, p["inertia"] + ml * p["centre"]]])
    return M, np.array([-ml * s * qd[1] ** 2 + p["rail"] * qd[0], GRAVITY * ml * s + p["pivot"] * qd[1]])


def two_links(p: Mapping[str, float], q: Array, qd: Array) -> tuple[Array, Array]:
    """Two links in a vertical plane, q₁ from the horizontal."""
    (a, b), length = np.cos(q), p["l_one"]
    m2c = p["two"] * p["centre_two"]
    J2 = p["inertia_two"] + m2c * p["centre_two"]
    J1 = p["inertia_one"] + p["one"] * p["centre_one"] ** 2 + p["two"] * length**2
    h = m2c * length * np.sin(q[1])
    M = np.array([[J1 + J2 + 2.0 * m2c * length * b, J2 + m2c * length * b], [J2 + m2c * length * b, J2]])
    second = GRAVITY * m2c * np.cos(q[0] + q[1])
    first = GRAVITY * (p["one"] * p["centre_one"] + p["two"] * length) * a
    return M, np.array(
        [
            -h * (2.0 * qd[0] * qd[1] + qd[1] ** 2) + first + second + p["friction_one"] * qd[0],
            h * qd[0] ** 2 + second + p["friction_two"] * qd[1],
        ]
    )


def slider_crank(p: Mapping[str, float], q: Array, qd: Array) -> tuple[Array, Array]:
    """Crank, rod and a slider along x with a spring to the ground."""

    def parts(phi: float) -> tuple[float, float, float]:
        """J, V and ∂x/∂φ at an angle of the crank."""
        r, length = p["l_crank"], p["l_rod"]
        beta = -np.arcsin(r * np.sin(phi) / length)
        turn = -r * np.cos(phi) / (length * np.cos(beta))  # ∂β/∂φ
        x, dx = r * np.cos(phi) + length * np.cos(beta), -r * np.sin(phi) - length * np.sin(beta) * turn
        middle = (
            -r * np.sin(phi) - 0.5 * length * np.sin(beta) * turn,
            r * np.cos(phi) + 0.5 * length * np.cos(beta) * turn,
        )
        J = p["inertia_crank"] + p["crank"] * (r / 2.0) ** 2 + p["inertia_rod"] * turn**2
        J += p["rod"] * (middle[0] ** 2 + middle[1] ** 2) + p["slider"] * dx**2
        height = p["crank"] * (r / 2.0) * np.sin(phi) + p["rod"] * (r * np.sin(phi) + 0.5 * length * np.sin(beta))
        return J, GRAVITY * height + 0.5 * p["spring"] * (x - p["l_rest"]) ** 2, dx

    phi, h = float(q[0]), SLOPE_STEP
    ahead, behind = parts(phi + h), parts(phi - h)
    J, _, dx = parts(phi)
    slope_J, slope_V = ((ahead[k] - behind[k]) / (2.0 * h) for k in (0, 1))
    c = 0.5 * slope_J * qd[0] ** 2 + slope_V + p["rail"] * dx**2 * qd[0] + p["bearing"] * qd[0]
    return np.array([[J]]), np.array([c])


MACHINES: dict[str, SmallMachine] = {
    "pendulum on a cart": SmallMachine(
        file=HERE / "cart.yaml",
        constants={"cart": 2.0, "pendulum": 0.8, "centre": 0.4, "inertia": 0.02, "rail": 1.5, "pivot": 0.02},
        equations=cart,
        coordinates=("x", "theta"),
        driven=(0,),
        centre=np.zeros(2),
        reach=np.array([0.5, 0.0]),
        speed=8.0,
        gains=(200.0, 40.0),
        encoder=np.array([1e-4, 5e-4]),
        torque=0.1,
        frictions=("rail", "pivot"),
    ),
    "two-link arm": SmallMachine(
        file=HERE / "two_link.yaml",
        constants={
            "one": 4.0, "centre_one": 0.2, "inertia_one": 0.06, "two": 2.5, "centre_two": 0.18, "inertia_two": 0.03,
            "friction_one": 1.0, "friction_two": 0.4, "l_one": 0.4,
        },
        equations=two_links,
        coordinates=("q1", "q2"),
        driven=(0, 1),
        centre=np.array([-0.6, 0.8]),
        reach=np.array([1.2, 1.5]),
        speed=8.0,
        gains=(150.0, 15.0),
        encoder=np.array([5e-4, 5e-4]),
        torque=0.2,
        frictions=("friction_one", "friction_two"),
    ),
    "slider-crank": SmallMachine(
        file=HERE / "slider_crank.yaml",
        constants={
            "crank": 1.0, "inertia_crank": 0.01, "rod": 2.0, "inertia_rod": 0.17, "slider": 3.0, "spring": 200.0, "rail": 3.0,
            "bearing": 0.1, "l_crank": 0.3, "l_rod": 1.0, "l_rest": 1.0,
        },
        equations=slider_crank,
        coordinates=("phi",),
        driven=(0,),
        centre=np.array([0.7]),
        reach=np.array([4.0]),
        speed=5.0,
        gains=(150.0, 15.0),
        encoder=np.array([1e-3]),
        torque=0.2,
        frictions=("rail", "bearing"),
    ),
}  # fmt: skip
