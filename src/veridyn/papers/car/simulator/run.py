"""Drive a car along a road, and what is known of it afterwards.

    run = drive(Vehicle(), sinusoidal_steering(), Flat(), duration=20.0)
    motion = to_motion(run, machine)             # what an identification of that machine takes, without any error

Accelerations and wrenches come from the equations of motion at the very instants of the samples; nothing is differenced.

:func:`truth` gives the 33 parameters that paper 000 identifies. Masses and inertias are settings. A nonlinear spring, damper or bar has
no stiffness of its own: what is true of it is the straight line that fits its force best, in least squares, over the clearances and
speeds of the run at hand. A damper that pulls harder than it pushes has a mean force on a rough road, which no sensor can separate from
the offset and which is counted there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.ground.road import Flat, Road
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.papers.car.simulator import description as eq
from veridyn.papers.car.simulator.description import Vehicle, VehicleManoeuvre
from veridyn.papers.car.simulator.equations import instant, march
from veridyn.spatial.inertia import INERTIAL
from veridyn.spatial.rotations import matrix_of

FLAT = Flat()


@dataclass(frozen=True, eq=False)
class VehicleRun:
    """N samples of a car that was driven: states and outputs of the equations, by name in the properties.

    Vectors are in the chassis frame at its origin unless a name says otherwise; wheels front left, front right, rear left, rear right.
    """

    vehicle: Vehicle
    manoeuvre: str
    t: Array
    states: Array
    outputs: Array
    inputs: Array
    road: Road = FLAT

    def __len__(self) -> int:
        return len(self.t)

    def _state(self, first: int, count: int) -> Array:
        return self.states[:, first : first + count]

    def _output(self, first: int, *shape: int) -> Array:
        return self.outputs[:, first : first + int(np.prod(shape))].reshape(-1, *shape)

    @property
    def position(self) -> Array:
        """Of the chassis origin in the ground's frame (N, 3)."""
        return self._state(eq.POSITION, 3)

    @property
    def quaternion(self) -> Array:
        """Attitude, from chassis to ground, scalar first (N, 4)."""
        return self._state(eq.QUATERNION, 4)

    @property
    def attitude(self) -> Array:
        """Rotations from the chassis frame to the ground's (N, 3, 3)."""
        return matrix_of(self.quaternion)

    @property
    def base(self) -> BaseMotion:
        """The chassis: ω, ω̇, specific acceleration v̇ − g, velocity."""
        return BaseMotion(
            self._state(eq.OMEGA, 3), self._output(eq.ALPHA, 3), self._output(eq.ACC, 3), self._state(eq.VELOCITY, 3)
        )

    @property
    def clearance(self) -> tuple[Array, Array, Array]:
        """z, ż, z̈ of the wheels, each (N, 4)."""
        return self._state(eq.Z, 4), self._state(eq.ZD, 4), self._output(eq.ZDD, 4)

    @property
    def wheel_angle(self) -> tuple[Array, Array, Array]:
        """Rotation of the wheels in their carriers, its rate and acceleration, each (N, 4)."""
        return self._state(eq.ANGLE, 4), self._state(eq.SPIN, 4), self._output(eq.SPIND, 4)

    @property
    def wheel_place(self) -> tuple[Array, Array, Array]:
        """Half track (+y), wheelbase (+x), toe or steering, camber, kingpin (N, 4, 5) beside the design, their rates and accelerations."""
        return self._output(eq.WHEEL, 4, 5), self._output(eq.WHEELD, 4, 5), self._output(eq.WHEELDD, 4, 5)

    @property
    def wheel_wrench(self) -> Array:
        """What dynamometers read (N, 4, 6): force and moment on the carrier by the wheel, at the wheel centre, in the carrier's frame."""
        return self._output(eq.WRENCH, 4, 6)

    @property
    def tyre(self) -> dict[str, Array]:
        """Of each tyre (N, 4): load, deflection and its rate, slips kappa and alpha, and the forces fx, fy in the road's plane."""
        names = ("load", "deflection", "deflection_rate", "kappa", "alpha", "fx", "fy")
        values = self._output(eq.TYRE, 4, 7)
        return {name: values[:, :, k] for k, name in enumerate(names)}

    @property
    def drive_torque(self) -> Array:
        """On the wheels by their shafts (N, 4)."""
        return self._output(eq.DRIVE, 4)

    @property
    def brake_torque(self) -> Array:
        return self._output(eq.BRAKING, 4)

    @property
    def air_wrench(self) -> Array:
        """On the chassis (N, 6)."""
        return self._output(eq.AIR, 6)

    @property
    def steering_wheel(self) -> Array:
        """The driver's angle (N,)."""
        return self.inputs[:, eq.HAND]

    @property
    def rack(self) -> Array:
        """The mean angle that the rack asks of the front wheels (N,)."""
        return self.states[:, eq.RACK]


def settle(vehicle: Vehicle, road: Road = FLAT, x: float = 0.0, speed: float = 0.0) -> Array:
    """The state in which the car stands still on the road at (x, 0), every force in balance; with its wheels rolling at `speed`.

    Solves for height, roll, pitch, clearances and tyre deflections; compliances, rack and engine mounts follow. On a slope each tyre holds
    its share, as if braked, so that all push straight up. At speed it is where driving begins, not yet the balance of driving.
    """
    P, packed, work = vehicle.packed(), road.packed, eq.workspace()
    state, rest = np.zeros(eq.STATES), np.zeros(eq.INPUTS)
    dx, out = work.rate[0], work.out
    slopes = np.stack(road.slope(x + vehicle.places()[:, 0], vehicle.places()[:, 1]), axis=1)
    state[0] = x

    def rates(unknown: Array) -> Array:
        state[2] = unknown[0]
        state[3:7] = np.array([1.0, unknown[1] / 2, unknown[2] / 2, 0.0])
        state[3:7] /= np.linalg.norm(state[3:7])
        state[eq.Z : eq.Z + 4] = unknown[3:7]
        state[eq.SLIP_X : eq.SLIP_X + 8] = unknown[7:] / 100.0  # of the size of the others' effects
        instant(state, rest, P, packed, work)
        tyre = out[eq.TYRE : eq.TYRE + 28].reshape(4, 7)
        missing = (tyre[:, 5:] - slopes * tyre[:, :1]) / 1e3
        return np.concatenate([dx[[9, 10, 11]], dx[eq.ZD : eq.ZD + 4], missing.ravel()])

    unknown = _on_its_wheels(vehicle, road, x, P.tyres.radius)
    lag = P.tables.lag[0] ** 2
    left = np.inf
    for _ in range(20):
        unknown, left = _balanced(rates, unknown)
        change = np.zeros_like(state)
        change[eq.BUSH : eq.BUSH + 20] = dx[eq.BUSHD : eq.BUSHD + 20] / lag
        change[eq.RACK] = dx[eq.RACK + 1] / P.steering[1] ** 2
        if vehicle.driveline.flexible:
            change[eq.BLOCK] = dx[eq.BLOCK + 1] * vehicle.driveline.block_mass / vehicle.driveline.mount[0]
        state += change
        if not np.abs(change).max() > 1e-14:
            break
    travel = float(np.abs(unknown[3:7] - np.array(vehicle.suspension.design)).max())
    if not (left < 1e-6 and travel < 0.3):
        what = "it finds no balance on its springs."
        expected = "clearances at which the car stands"
        found = f"accelerations up to {left:.3g} m/s² or rad/s², {travel:.3g} m from the design clearances"
        hint = "Check offsets and stiffnesses: off + k z must carry each wheel's share."
        raise ModelError(what, where=vehicle.name, expected=expected, found=found, hint=hint)
    if speed:
        deflection = out[eq.TYRE + 1 : eq.TYRE + 28 : 7]
        state[eq.VELOCITY] = speed
        state[eq.SPIN : eq.SPIN + 4] = speed / (P.tyres.radius - deflection / 3.0)
        state[eq.ENGINE] = state[eq.SPIN : eq.SPIN + 2].mean()
        if vehicle.driveline.integral > 0.0:
            resistance = vehicle.aerodynamics.coefficients[0][0] * speed**2 + 0.01 * vehicle.mass * vehicle.gravity
            state[eq.INTEGRAL] = resistance * float(P.tyres.radius[0]) / vehicle.driveline.integral
    return state


def _on_its_wheels(vehicle: Vehicle, road: Road, x: float, radius: Array) -> Array:
    """A first guess of settling: the chassis over the plane nearest to the road under its wheels, each tyre pressed in by 2 cm."""
    places = vehicle.places()
    wheel = road.height(x + places[:, 0], places[:, 1]) + radius - 0.02
    columns = np.stack([np.ones(4), places[:, 1], -places[:, 0]], axis=1)  # height, roll, pitch
    pose = np.linalg.lstsq(columns, wheel - np.array(vehicle.suspension.design))[0]
    return np.concatenate([pose, wheel - columns @ pose, np.zeros(8)]).astype(np.float64)


def _balanced(rates: Callable[[Array], Array], unknown: Array) -> tuple[Array, float]:
    """Newton's steps, halved where they do not help, until all rates are zero; and the largest rate left."""
    now = rates(unknown)
    for _ in range(30):
        columns = np.array([rates(unknown + d) - rates(unknown - d) for d in 1e-6 * np.eye(len(unknown))])
        if not np.isfinite(columns).all() or np.abs(now).max() < 1e-11:
            break
        step = np.linalg.lstsq(columns.T / 2e-6, now)[0]
        share = 1.0
        while share > 1e-3 and not np.linalg.norm(rates(unknown - share * step)) < np.linalg.norm(now):
            share *= 0.5
        if share <= 1e-3:
            break
        unknown = unknown - share * step
        now = rates(unknown)
    left = float(np.abs(rates(unknown)).max())
    return unknown, left if np.isfinite(left) else np.inf


def drive(
    vehicle: Vehicle,
    manoeuvre: VehicleManoeuvre,
    road: Road = FLAT,
    duration: float = 20.0,
    step: float = 1e-3,
    every: int = 1,
    start: Array | None = None,
) -> VehicleRun:
    """`duration` seconds of a manoeuvre on a road, by steps of `step` seconds, each `every`-th kept.

    Begins at rest on the springs at the manoeuvre's first speed (:func:`settle`) and drives the manoeuvre's lead-in first, so that
    t = 0 is at x ≈ 0; or at the state `start`, without lead-in.
    """
    if not (step > 0.0 and duration >= step and every >= 1 and np.isfinite(duration)):
        expected = "a positive step, a duration of at least one step, every ≥ 1"
        found = f"step {step:g} s, duration {duration:g} s, every {every}"
        raise DataError("there is nothing to drive.", where="drive", expected=expected, found=found)
    P, work = vehicle.packed(), eq.workspace()
    if start is None:
        speed = float(manoeuvre.speed(np.zeros(1))[0])
        before = round(manoeuvre.lead_in / step)
        x = settle(vehicle, road, -speed * before * step, speed)
        if before:
            _march(vehicle, x, manoeuvre, -before, 0, step, before, P, road, work)
    else:
        x = np.array(start, dtype=np.float64)
    count = int(np.floor(duration / step + 1e-9))
    return _march(vehicle, x, manoeuvre, 0, count, step, every, P, road, work)


def _march(
    vehicle: Vehicle,
    x: Array,
    manoeuvre: VehicleManoeuvre,
    first: int,
    last: int,
    step: float,
    every: int,
    P: eq.CarNumbers,
    road: Road,
    work: eq.VehicleWork,
) -> VehicleRun:
    """From step `first` to step `last`; x becomes the state at the end."""
    halves: Array = np.arange(2 * first, 2 * last + 1, dtype=np.float64) * (0.5 * step)
    inputs = manoeuvre.inputs(halves)
    samples = (last - first) // every + 1
    states, outputs = np.zeros((samples, eq.STATES)), np.zeros((samples, eq.OUTPUTS))
    kept = march(x, inputs, step, every, P, road.packed, states, outputs, work)
    t = halves[:: 2 * every]
    if kept < samples:
        what = "the simulation broke down: its state is no longer finite."
        hint = "Try a smaller step; very stiff springs or small friction speeds need one."
        raise DataError(what, where=f"{vehicle.name}, {manoeuvre.name}", found=f"at t = {t[kept]:.3f} s", hint=hint)
    return VehicleRun(vehicle, manoeuvre.name, t, states, outputs, inputs[:: 2 * every], road)


def to_motion(run: VehicleRun, machine: Machine) -> Motion:
    """The run as a motion of the car of 20 or 38 degrees of freedom: coordinates by name, wheel wrenches on the unsprung bodies.

    Coordinates are z, beta, theta, zt and, where a machine has them, dl, dL, camber and kingpin, each with the number of its wheel, 1 to 4.
    The body that carries wheel i is the one on which it turns by theta i. What a machine has no coordinate for is left out, as it is in
    an identification of that machine.
    """
    wheels = {"z": run.clearance, "theta": run.wheel_angle}
    wheels |= {name: _nth(run.wheel_place, k) for k, name in enumerate(("dl", "dL", "beta", "camber", "kingpin"))}
    zt = run.tyre["deflection"]
    rate = run.tyre["deflection_rate"]
    wheels["zt"] = (zt, rate, np.gradient(rate, run.t, axis=0))  # no mass moves with it, so no row depends on this
    known = {f"{name}{i + 1}": _nth(values, i) for name, values in wheels.items() for i in range(4)}
    mean = [0.5 * (a + b) for a, b in zip(known["beta1"], known["beta2"], strict=True)]
    known["beta"] = (mean[0], mean[1], mean[2])
    unknown = [c for c in machine.coordinates if c not in known]
    if unknown:
        what = f"the simulator does not know the coordinate '{unknown[0]}'."
        expected = "z1, beta1, theta1, zt1, dl1, dL1, camber1, kingpin1 and so on to 4"
        raise ModelError(what, where=machine.name, expected=expected)
    q, qd, qdd = (np.stack([known[c][k] for c in machine.coordinates], axis=1) for k in range(3))
    carriers = {c: machine.attachment(j.a).body for j in machine.joints for c in j.coordinate_names}
    wrench = run.wheel_wrench
    wrenches = {carriers[f"theta{i + 1}"]: wrench[:, i] for i in range(4)}
    return Motion(run.t, q, qd, qdd, run.base, wrenches=wrenches)


def _nth(values: tuple[Array, Array, Array], k: int) -> tuple[Array, Array, Array]:
    """One wheel of (N, 4), or one quantity of (N, 4, 5)."""
    a, b, c = values
    return a[..., k], b[..., k], c[..., k]


def truth(run: VehicleRun) -> dict[str, float]:
    """Name, as in Table II and ``car_20.yaml``, → true value: XX_c … M_c, M1 … M4, k_arr, k_arf, k fs h off of each wheel, Cx.

    For a vehicle that is simplified these are its settings.
    """
    car = run.vehicle
    values = {f"{name}_c": float(x) for name, x in zip(INERTIAL, car.chassis, strict=True)}
    values |= {f"M{i + 1}": car.carriers[i // 2].mass for i in range(4)}
    z, zd, _ = run.clearance
    for name, axle in (("k_arr", 1), ("k_arf", 0)):
        d = z[:, 2 * axle] - z[:, 2 * axle + 1]
        force = car.suspension.bar[axle] * d + car.suspension.bar_cube[axle] * d**3
        travelled = float(d @ d)
        values[name] = float(force @ d) / travelled if travelled > 0.0 else car.suspension.bar[axle]
    for i in range(4):
        k, off = _line(z[:, i], np.ones(len(run)), car.suspension.spring(i, z[:, i]))
        damper = car.suspension.damper(i, zd[:, i])
        h, fs = _line(zd[:, i], np.sign(zd[:, i]), damper)
        constant = off + float(np.mean(damper - h * zd[:, i] - fs * np.sign(zd[:, i])))
        values |= {f"k_{i + 1}": k, f"fs_{i + 1}": fs, f"h_{i + 1}": h, f"off_{i + 1}": constant}
    speed = (run.base.velocity**2).sum(axis=1) if run.base.velocity is not None else np.zeros(len(run))
    values["Cx"] = float(-run.air_wrench[:, 0] @ speed / (speed @ speed)) if speed.any() else float("nan")
    return values


def _line(a: Array, b: Array, force: Array) -> tuple[float, float]:
    """The two numbers that make a·x + b·y the nearest to the force."""
    columns = np.stack([a, b], axis=1)
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0.0] = 1.0
    found = np.linalg.lstsq(columns / scale, force)[0] / scale
    return float(found[0]), float(found[1])
