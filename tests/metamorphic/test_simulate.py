"""What must not change a simulation: names, orders, axes, worlds, scales, formulations, and who records it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import veridyn as vd
from metamorphic.comparing import largest
from metamorphic.machines import ENCODER_NOISE, RATE, Array, arm, recorded, sweep
from metamorphic.relations import ALL, QUICK, Back, mostly_slow, rebuilt
from veridyn.mechanics.system.simulation import Inputs, Method

SECONDS = 1.0
START, SPEED = np.array([0.4, -0.3]), np.array([1.0, -2.0])
ROUNDING = 1e-12
FRICTION_SPEED = 0.02  # rad/s
Methods = Callable[[Back], Method]
# Steps of one length make the same sums. Steps that an error chooses depend on its absolute tolerance, which does not scale with times, and
# on rounding where one is nearly refused; the motion then agrees to that tolerance, 1e-8 (rad, rad/s), as errors grow on the way.
FIXED: Methods = lambda back: Method("RK4", step=back.time / 1024.0, friction_speed=FRICTION_SPEED / back.time)  # noqa: E731
CHOSEN: Methods = lambda back: Method(friction_speed=FRICTION_SPEED / back.time)  # noqa: E731
METHODS = {"fixed": (FIXED, ROUNDING), "chosen": (CHOSEN, 1e-7)}


def pushed(machine: vd.Machine, back: Back) -> Callable[[float, Array, Array], Array]:
    """Forces of the motors as a function of time."""
    rows = [arm().coordinates.index(back.name(c)) for c in machine.coordinates]
    signs = np.array([back.turned(back.name(c)) for c in machine.coordinates])

    def forces(t: float, q: Array, qd: Array) -> Array:
        wave = np.array([3.0 * np.sin(5.0 * t / back.time), 1.5 * np.cos(7.0 * t / back.time)])
        return back.scale("N*m") * signs * wave[rows]

    return forces


def released(machine: vd.Machine, back: Back, method: Method, noisy: bool = False) -> vd.Experiment:
    """The arm released while its motors push."""
    rows = [arm().coordinates.index(back.name(c)) for c in machine.coordinates]
    signs = np.array([back.turned(back.name(c)) for c in machine.coordinates])
    way = vd.manoeuvres.Driven(
        SECONDS * back.time,
        RATE / back.time,
        signs * START[rows],
        signs * SPEED[rows] / back.time,
        inputs=Inputs(forces=pushed(machine, back)),
        method=method,
    )
    return vd.simulate(machine, way, rng=np.random.default_rng(4) if noisy else None)


def check_log(first: vd.Experiment, other: vd.Experiment, back: Back, tolerance: float) -> None:
    """The same channels, each within `tolerance` of its largest value."""
    found = {f"{n.partition('.')[0]}.{back.name(n.partition('.')[2])}": c for n, c in other.channels.items()}
    assert set(found) == set(first.names)
    for name, c in first.channels.items():
        x = found[name]
        sign = back.turned(name.partition(".")[2])
        assert x.unit == c.unit
        assert largest(x.t / back.time - c.t) < 1e-12 * SECONDS
        assert largest(sign * x.values / back.scale(c.unit) - c.values) < tolerance * largest(c.values)


@cache
def first(method: str = "fixed") -> vd.Experiment:
    return released(arm(), Back(), METHODS[method][0](Back()))


@pytest.mark.parametrize("name", mostly_slow(ALL, (*QUICK, "world turned")))
@pytest.mark.parametrize("method", METHODS)
def test_a_machine_described_another_way(method: str, name: str) -> None:
    machine, _, back = ALL[name](arm(), recorded())
    how, tolerance = METHODS[method]
    check_log(first(method), released(machine, back, how(back)), back, tolerance)


@pytest.mark.parametrize("name", mostly_slow(ALL))
def test_a_prescribed_motion(name: str) -> None:
    """Inverse dynamics, with dry friction that is sign(v) in full: forces scale, and positions are given."""
    machine, _, back = ALL[name](arm(), recorded())

    class Sweep:
        def __init__(self, rows: list[int], signs: Array, time: float) -> None:
            self.rows, self.signs, self.time = rows, signs, time

        def at(self, t: float | Array, /) -> tuple[Array, Array, Array]:
            q, qd, qdd = (x[:, self.rows] * self.signs for x in sweep(np.atleast_1d(t) / self.time, 2, 5))
            return q, qd / self.time, qdd / self.time**2

    def prescribed(made: vd.Machine, back: Back) -> vd.Experiment:
        rows = [arm().coordinates.index(back.name(c)) for c in made.coordinates]
        signs = np.array([back.turned(back.name(c)) for c in made.coordinates])
        reference = Sweep(rows, signs, back.time)
        return vd.simulate(made, vd.manoeuvres.Prescribed(reference, SECONDS * back.time, RATE / back.time))

    check_log(prescribed(arm(), Back()), prescribed(machine, back), back, ROUNDING)


def test_both_formulations() -> None:
    """Other coordinates, in which a step of Runge and Kutta errs otherwise: by its order, 2⁻⁴ of the difference with half the step."""
    natural = rebuilt(arm(), formulation="natural")
    errors = []
    for step in (1.0 / 512.0, 1.0 / 1024.0):
        how = Method("RK4", step=step, friction_speed=FRICTION_SPEED)
        tree, points = released(arm(), Back(), how), released(natural, Back(), how)
        errors.append(max(largest(points[f"q.{c}"].values - tree[f"q.{c}"].values) for c in arm().coordinates))
    assert errors[1] < 1e-8
    assert errors[1] < errors[0] / 8.0


def test_sensors_of_the_same_names_have_the_same_noise() -> None:
    """Noise is drawn in the order of the sensors: what else is described otherwise does not shift it."""
    plain = released(arm(observed=True), Back(), FIXED(Back()), noisy=True)
    for name in ("world turned", "masses", "lengths"):
        machine, _, back = ALL[name](arm(observed=True), recorded())
        other = released(machine, back, FIXED(back), noisy=True)
        for c in arm().coordinates:
            assert largest(other[f"encoder.{c}"].values - plain[f"encoder.{c}"].values) < 1e-6 * ENCODER_NOISE


def test_a_log_that_goes_on_from_its_middle() -> None:
    """Steps of one length from the middle of a motion go on as the whole motion did."""
    how, whole = FIXED(Back()), first()
    half = round(SECONDS * RATE / 2.0)
    system = vd.manoeuvres.Driven(SECONDS, RATE, START, SPEED, Inputs(forces=pushed(arm(), Back())), method=how)
    track = system.run(arm()).motion
    later = pushed(arm(), Back())
    middle = Inputs(forces=lambda t, q, qd: later(t + half / RATE, q, qd))
    rest = vd.manoeuvres.Driven(SECONDS / 2.0, RATE, track.q[half], track.qd[half], middle, method=how)
    part = vd.simulate(arm(), rest)
    for c in arm().coordinates:
        assert largest(part[f"q.{c}"].values - whole[f"q.{c}"].values[half:]) < ROUNDING
