"""What the machines of ``one_machine.py`` are, what they are made to do, and what their sensors are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from veridyn.dynamics import BaseState, Inputs, Method
from veridyn.estimators import Sampling
from veridyn.manoeuvres import Imperfection, Manoeuvre, Steered
from veridyn.signals import Butterworth, FourierTrajectory, JointLimits
from veridyn.spatial import rotation_of

Array = NDArray[np.float64]
FRICTION_SPEED = 0.02  # rad/s, m/s: below it dry friction is rounded off, in the simulation and in the model alike
PRECISE = Method("LSODA", rtol=1e-9, atol=1e-10, friction_speed=FRICTION_SPEED)
# Observers whose motor forces are all in the log.
LOGGED = vd.ObserveSettings(start="readings", input_hold="linear", unknown=())
STIFFNESS = {"front_stiffness": 14.0, "rear_stiffness": 17.0}  # 1/rad, of the truth of the small car


@dataclass(frozen=True, kw_only=True)
class Job:
    """A machine, a manoeuvre to identify it from, and another one to observe."""

    machine: vd.Machine
    guess: Callable[[np.random.Generator], vd.Machine]  # its model before identification
    exciting: Manoeuvre
    observed: Manoeuvre
    observer: vd.ObserveSettings
    method: Any = "wls"
    signals: vd.Signals | None = None  # how the log becomes a motion; None where the log itself is fitted
    imperfections: Mapping[str, Imperfection] | None = None  # of what is measured besides the machine's own sensors
    keywords: Mapping[str, Any] = field(default_factory=dict)  # of identify: rows and settings
    exact: tuple[vd.Sensor, ...] = ()  # without noise, of states that are no joint coordinates
    settle: int = 40  # samples that the errors leave out

    def truth(self, fit: vd.Fit) -> Array:
        """The true values of the parameters of a fit."""
        if self.machine.formulation == "single_track":
            return np.array([STIFFNESS[name] for name in fit.names])
        return fit.base.reduce(self.machine.parameters.values)


def perturbed(machine: vd.Machine, rng: np.random.Generator, share: float = 0.2) -> vd.Machine:
    """The same machine with estimated parameters wrong by up to `share`: each body by a factor of its own, each element too."""
    p = machine.parameters
    bodies = dict(zip(machine.body_names, 1.0 + share * rng.uniform(-1.0, 1.0, len(machine.links)), strict=True))
    elements = 1.0 + share * rng.uniform(-1.0, 1.0, len(machine.elements))
    factors = np.array([bodies[body] if body else elements[k] for body, k in machine.columns])
    factors[list(p.select("known"))] = 1.0
    return machine.with_parameters(p.values * factors)


def encoders(sigma: float, *coordinates: str) -> tuple[vd.Sensor, ...]:
    return tuple(vd.Sensor(f"encoder_{c}", "coordinate", c, sigma) for c in coordinates)


def led(
    machine: vd.Machine, seed: int, seconds: float, rate: float, limits: JointLimits, kp: Array, kd: Array
) -> Manoeuvre:
    """Joints that follow a random path of five harmonics under feedback and a feedforward of the true model."""
    path = FourierTrajectory.random(np.random.default_rng(seed), limits, harmonics=5, frequency=0.5)
    return vd.manoeuvres.Tracking(path, seconds, rate, kp, kd, machine, PRECISE)


def arm() -> Job:
    """Six joints with encoders; torque sensors to identify from, motor torques as inputs of the observer."""
    machine = vd.load_model("veridyn:arm.yaml")
    # Dry friction is left out: where joints turn round it is stiff, and an observer in natural coordinates then needs steps of 0.5 ms,
    # which take minutes. The fit itself is good with it (seed 0: all errors within two deviations) where samples near standstill are left
    # out, Sampling(dead_zone="auto"); where they are not, 37 % are, because rounded friction is no sign(speed) there.
    dry = [e.parameter_name for e in machine.elements if e.kind == "coulomb"]
    machine = machine.without_elements(dry).with_sensors(encoders(2e-5, *machine.coordinates))
    limits = JointLimits(np.full(6, -1.2), np.full(6, 1.2), np.full(6, 3.0), np.full(6, 15.0))
    gains = np.array([2000.0, 2000.0, 800.0, 100.0, 100.0, 50.0]), np.array([120.0, 120.0, 50.0, 8.0, 8.0, 4.0])
    noise = (0.2, 0.3, 0.12, 0.05, 0.06, 0.05)  # N*m
    return Job(
        machine=machine,
        guess=lambda rng: perturbed(machine, rng),
        exciting=led(machine, 1, 6.0, 500.0, limits, *gains),
        observed=led(machine, 2, 0.6, 500.0, limits, *gains),
        signals=vd.Signals(lowpass=30.0, trim=0.2),
        imperfections={f"force.q{k}": Imperfection(noise=sigma) for k, sigma in enumerate(noise, 1)},
        observer=replace(
            LOGGED,
            process_noise=vd.ProcessNoise(acceleration=1e-5, start=1e-3, start_rate=0.1),
            step=2e-3,
        ),
    )


def fourbar() -> Job:
    """The four-bar linkage of paper 003 with an encoder at the crank, a gyroscope on the rocker, and the torque of its motor."""
    machine = vd.load_model("veridyn:fourbar.yaml")
    gyro = vd.Sensor("gyro", "gyroscope", "rocker", 2e-3, axes="z")
    machine = machine.with_sensors((*encoders(2e-5, "phi"), gyro))
    limits = JointLimits([-3.0], [3.0], [4.0], [30.0])
    gains = np.array([4000.0]), np.array([900.0])
    return Job(
        machine=machine,
        guess=lambda rng: perturbed(machine, rng),
        exciting=led(machine, 1, 6.0, 200.0, limits, *gains),
        observed=led(machine, 2, 1.5, 200.0, limits, *gains),
        signals=vd.Signals(lowpass=20.0, trim=0.2),
        imperfections={"motor": Imperfection(noise=0.5)},
        observer=replace(
            LOGGED,
            process_noise=vd.ProcessNoise(acceleration=1e-5, start=1e-2, start_rate=0.1),
            step=2.5e-3,
        ),
    )


def crane() -> Job:
    """A trolley and a swinging load, described by points in natural coordinates: the force of the motor is logged."""
    machine = vd.load_model("veridyn:crane.yaml")
    travel, tilt = vd.Sensor("travel", "coordinate", "x", 2e-5), vd.Sensor("tilt", "coordinate", "swing", 2e-5)
    machine = machine.with_sensors((travel, tilt))

    def pushed(seed: int, seconds: float) -> Manoeuvre:
        rng = np.random.default_rng(seed)
        frequencies, phases = rng.uniform(0.05, 0.6, 5), rng.uniform(0.0, 2.0 * np.pi, 5)

        def push(t: float, q: Array, qd: Array) -> list[float]:
            return [float(60.0 * np.sin(2.0 * np.pi * frequencies * t + phases).sum()), 0.0]

        return vd.manoeuvres.Driven(
            seconds, 100.0, [0.5, 0.1], [0.0, 0.0], Inputs(push), method=Method(rtol=1e-9, atol=1e-10)
        )

    return Job(
        machine=machine,
        guess=lambda rng: perturbed(machine, rng),
        exciting=pushed(1, 60.0),
        observed=pushed(2, 5.0),
        signals=vd.Signals(lowpass=1.5, trim=1.0),
        imperfections={"motor": Imperfection(noise=2.0)},
        keywords={
            "settings": vd.IdentifySettings(
                sampling=Sampling(filter=Butterworth(1.5), decimate=10),
                sigma={"swing": 1.0},  # N*m: no force acts there, so the data do not show how well it is zero
            )
        },
        observer=replace(
            LOGGED,
            process_noise=vd.ProcessNoise(acceleration=1e-7, start=1e-2, start_rate=0.1),
            step=5e-3,
        ),
    )


def small_car() -> Job:
    """A car of a few numbers, of which speed, steering, yaw rate and lateral acceleration are logged; its tyres are estimated."""
    sensors = [vd.Sensor("yaw_rate", "reading", "yaw_rate", 0.002), vd.Sensor("ay", "reading", "ay", 0.05)]
    noise = vd.filters.CarNoise(slip_error=5e-4, bank=5e-4)  # the simulated tyres and road are nearly exact
    stated = {"mass": 1500.0, "front": 1.2, "rear": 1.5, "yaw_inertia": 2400.0, "height": 0.5}

    def guess(rng: np.random.Generator) -> vd.Machine:
        doubted = {k: vd.model.PriorValue(x * rng.uniform(0.8, 1.2), 0.3 * x) for k, x in STIFFNESS.items()}
        return vd.model.car_machine("car", {**stated, **doubted}, sensors=sensors)

    def steered(seed: int, seconds: float) -> Manoeuvre:
        steer = _waves(*(np.random.default_rng(seed).uniform(0.1, 1.0, (2, 4)) * [[1.0], [0.02]]))
        return Steered(seconds, 100.0, lambda t: 25.0 + np.sin(0.3 * t), lambda t: steer(t)[0])

    return Job(
        machine=vd.model.car_machine("car", {**stated, **STIFFNESS}, sensors=sensors),
        guess=guess,
        exciting=steered(1, 40.0),
        observed=steered(2, 20.0),
        method=vd.estimators.Innovations(noise=noise),
        observer=vd.ObserveSettings(process_noise=noise),
        exact=(
            vd.Sensor("yaw_rate", "reading", "yaw_rate", 1e-12),
            vd.Sensor("sideslip", "reading", "sideslip", 1e-12),
        ),
    )


LENGTH, HEIGHT, RADIUS = (
    2.7,
    0.295,
    15 * 0.0254 / 2 + 0.65 * 0.195,
)  # m: wheelbase, chassis above axles, tyre; as car_20.yaml
WHEELS = {1: (LENGTH, 0.750), 2: (LENGTH, -0.750), 3: (0.0, 0.745), 4: (0.0, -0.745)}  # m, in the frame of the chassis
SPEED = 20.0  # m/s
STEERED = ("beta1", "beta2")
DEFLECTIONS = ("zt1", "zt2", "zt3", "zt4")  # massless, so they cannot be simulated: prescribed, at zero


def car() -> Job:
    """The 20-dof car: wheel dynamometers, inertial unit, GPS, optical speed, suspension travel, steering by wire.

    The inertias of the wheels are known, as in the paper. Observed without wheel sensors, the angles of the wheels are not observable.
    """
    machine = vd.load_model("veridyn:car_20.yaml")
    names = machine.parameters.names
    of_wheels = [n for n in names if "_w" in n or (n[-1] in "1234" and "_" not in n and n[:-1] != "M")]
    antenna = vd.Marker("chassis", (1.0, 0.0, 1.2))
    optical = vd.Marker("chassis", (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    sensors = [
        vd.Sensor("gyro", "gyroscope", "chassis", 1e-3),
        vd.Sensor("accelerometer", "accelerometer", "chassis", 0.02),
        vd.Sensor("gps", "position", antenna, 0.02, rate=50.0),
        vd.Sensor("gps_velocity", "velocity", antenna, 0.05, rate=50.0),
        vd.Sensor("optical", "velocity", optical, 0.02),
        *encoders(2e-4, "z1", "z2", "z3", "z4"),
        *encoders(1e-3, "theta1", "theta2", "theta3", "theta4"),
    ]
    machine = replace(
        machine,
        sensors=tuple(sensors),
        prescribed=(*STEERED, *DEFLECTIONS),
        stated=machine.parameters.known(of_wheels),
    )
    start = {f"z{k}": -HEIGHT for k in WHEELS} | {"base.z": RADIUS + HEIGHT}
    without = {f"encoder_theta{k}": None for k in WHEELS}
    rates = {"base.x": SPEED} | {f"theta{k}": SPEED / RADIUS for k in WHEELS}
    noise = vd.ProcessNoise(acceleration=1e-4, start=0.02, start_rate=0.05)
    return Job(
        machine=machine,
        guess=lambda rng: perturbed(machine, rng),
        exciting=drive(machine, 1, 10.0),
        observed=drive(machine, 2, 3.0),
        signals=vd.Signals(lowpass=25.0, trim=0.3, rate=200.0),
        imperfections={
            "wrench.*": Imperfection(noise=1.0),
            **{f"{s}.{c}": Imperfection() for s in ("q", "qd", "qdd") for c in (*STEERED, *DEFLECTIONS)},
        },
        observer=replace(
            LOGGED,
            process_noise=noise,
            step=2.5e-3,
            friction_speed=FRICTION_SPEED,
            start=start,
            rates=rates,
            sensors=without,
        ),
        keywords={
            "rows": ("fx", "fy", "fz", "mx", "my", "mz", "z1", "z2", "z3", "z4"),
            "settings": vd.IdentifySettings(
                sampling=Sampling(filter=Butterworth(12.0), decimate=8, dead_zone={f"z{k}": 0.03 for k in WHEELS})
            ),
        },
    )


def drive(machine: vd.Machine, seed: int, seconds: float) -> Manoeuvre:
    """Steering and throttle of a few frequencies on an uneven road, at 20 m/s."""
    rng = np.random.default_rng(seed)
    steering = _waves(rng.uniform(0.2, 1.0, 4), 0.02 * rng.uniform(0.5, 1.0, 4))
    throttle = rng.uniform(0.1, 0.6, 3)
    waves, heights = 2.0 * np.pi / rng.uniform(3.0, 25.0, 12), 0.007 * rng.uniform(0.3, 1.0, 12)
    phases = rng.uniform(0.0, 2.0 * np.pi, (4, 12))
    names = machine.coordinates
    travel = {k: names.index(f"z{k}") for k in WHEELS}
    steer = {k: names.index(f"beta{k}") for k in (1, 2)}
    g = 9.81
    front = g * 2421.1 / LENGTH / 2.0 + 42.8 * g  # N, what a tyre carries at rest
    rear = g * (1508.5 - 2421.1 / LENGTH) / 2.0 + 42.8 * g

    def contacts(t: float, base: BaseState, q: Array, qd: Array) -> dict[str, Array]:
        """Tyres of our own: a spring and damper upright, a saturating cornering force, a throttle on all four."""
        R, found = rotation_of(np.asarray(base.quaternion)), {}
        push = 200.0 * float(np.sin(2.0 * np.pi * throttle * t).sum())
        for k, (x, y) in WHEELS.items():
            z, zd, beta = q[travel[k]], qd[travel[k]], q[steer[k]] if k in steer else 0.0
            place = base.position + R @ np.array([x, y, z])
            wx, wy, wz = np.asarray(base.omega)
            speed = base.velocity + R @ np.array([wy * z - wz * y, wz * x - wx * z, wx * y - wy * x + zd])
            road = float((heights * (np.sin(waves * (place[0] - x) + phases[k - 1]) - np.sin(phases[k - 1]))).sum())
            c, s = np.cos(beta), np.sin(beta)
            U = R @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            upright = max(0.0, (front if k < 3 else rear) + 2e5 * (RADIUS + road - place[2]) - 300.0 * speed[2])
            vx, vy, _ = U.T @ speed
            cornering = -6e4 * upright / 4000.0 * np.tanh(12.0 * np.arctan2(vy, max(vx, 1.0))) / 12.0
            f = upright * U[2] + np.array([push - 0.01 * upright, cornering, 0.0])
            down = -RADIUS * U[2]
            moment = [down[1] * f[2] - down[2] * f[1], down[2] * f[0] - down[0] * f[2], down[0] * f[1] - down[1] * f[0]]
            found[f"unsprung{k}"] = np.array([*f, *moment])
        return found

    def prescribed(t: float) -> dict[str, tuple[float, float, float]]:
        return dict.fromkeys(STEERED, steering(t)) | dict.fromkeys(DEFLECTIONS, (0.0, 0.0, 0.0))

    q, qd = np.zeros(machine.n), np.zeros(machine.n)
    for k in WHEELS:
        q[travel[k]], qd[names.index(f"theta{k}")] = -HEIGHT, SPEED / RADIUS
    for k in steer:
        q[steer[k]], qd[steer[k]], _ = steering(0.0)
    base = BaseState(position=(0.0, 0.0, RADIUS + HEIGHT), velocity=(SPEED, 0.0, 0.0))
    method = Method("RK4", step=2.5e-3, friction_speed=FRICTION_SPEED)
    return vd.manoeuvres.Driven(seconds, 200.0, q, qd, Inputs(prescribed=prescribed, contacts=contacts), base, method)


def _waves(frequencies: Array, amplitudes: Array) -> Callable[[float], tuple[float, float, float]]:
    """A sum of sines that starts softly, with its first and second derivative."""
    w = 2.0 * np.pi * frequencies

    def at(t: float) -> tuple[float, float, float]:
        e = np.exp(-(t**2))
        s, sd, sdd = 1.0 - e, 2.0 * t * e, (2.0 - 4.0 * t**2) * e
        x, xd, xdd = (
            float((amplitudes * part).sum()) for part in (np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t))
        )
        return s * x, sd * x + s * xd, sdd * x + 2.0 * sd * xd + s * xdd

    return at


JOBS: dict[str, Callable[[], Job]] = {
    "arm": arm,
    "four-bar": fourbar,
    "crane": crane,
    "car": car,
    "small car": small_car,
}
