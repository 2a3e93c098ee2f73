"""An observer of one wheel with 40 holes: consistent with readings at edges, far too sure with counts taken as white noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.sensor import Sensor
from veridyn.observe.filters.methods import EKF
from veridyn.observe.observe import observe
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer
from veridyn.signals.pulses import PulseReader, PulseWheel, edges_of_intervals, readings_of_counts, readings_of_edges
from veridyn.simulate.imperfection import edge_intervals, wheel_count
from veridyn.spatial.inertia import from_centre

Array = NDArray[np.float64]
INERTIA = 1.85  # kg m², a wheel of the buggy with its rotor
DENSITY = 0.01  # (N*m)²/s of a torque that walks
TORQUE = 0.7  # N*m, known: it moves off from rest, to 2.3 rad/s in six seconds
STEP, DURATION, SKIP = 0.002, 6.0, 250
WHEEL = PulseWheel(holes=40, hole_sigma=1e-6)  # the simulated holes are where they should be
NOISE = ProcessNoise(force=DENSITY, start=0.02, start_rate=0.02, start_force=0.1)
COUNTED = Sensor("angle", "coordinate", "wheel", 0.0, quantum=WHEEL.pitch, rate=500.0)


@cache
def wheel() -> Machine:
    return Machine.of_bodies(
        [Body("wheel")],
        name="wheel",
        gravity=(0.0, 0.0, 0.0),
        inertia={"wheel": from_centre(10.0, [0.0, 0.0, 0.0], np.diag([1.0, 1.0, INERTIA]))},
        sensors=[
            COUNTED,
            Sensor("tacho", "rate", "wheel", 100.0),
        ],  # too poor to matter: it gives a row at every sample
    )


def turned(seed: int, duration: float = DURATION) -> tuple[Array, Array, Array, Array]:
    """Times, angle, speed and known torque of a wheel that is driven and disturbed; the truth starts as uncertain as the filter thinks."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(duration / STEP) + 1) * STEP
    known = np.full(len(t), TORQUE)
    force = 0.1 * rng.standard_normal() + np.concatenate([[0.0], np.cumsum(rng.standard_normal(len(t) - 1))]) * np.sqrt(
        DENSITY * STEP
    )
    a = (known + force) / INERTIA
    q, w = np.empty(len(t)), np.empty(len(t))
    q[0], w[0] = 0.02 * rng.standard_normal() + 0.05, 0.02 * rng.standard_normal()
    for k in range(len(t) - 1):
        q[k + 1], w[k + 1] = q[k] + STEP * w[k] + 0.5 * STEP**2 * a[k], w[k] + STEP * a[k]
    return t, q, w, known


def channels(kind: str, t: Array, q: Array) -> tuple[Channel, ...]:
    exact = Channel("truth", t, q, "rad")
    if kind == "intervals":
        first, steps = edge_intervals(exact, WHEEL, clock=1e-5)
        timed = PulseWheel(holes=40, hole_sigma=1e-6, clock_sigma=1e-5 / np.sqrt(12.0))
        edges = edges_of_intervals(first, steps) + 0.5e-5  # a timer's tick is passed half a tick ago on average
        return readings_of_edges(edges, timed, "angle", first=int(np.floor(q[0] / WHEEL.pitch)) + 1)
    count = wheel_count(exact, WHEEL, "count")
    if kind == "edges":
        return readings_of_counts(count, WHEEL, "angle")
    return (Channel("angle", t, (count.values + 0.5) * WHEEL.pitch, "rad"),)


def driven(kind: str, seed: int, duration: float = DURATION) -> tuple[Experiment, Array, Array]:
    """A log of the wheel, and its true angle and speed at every sample."""
    t, q, w, known = turned(seed, duration)
    tacho = w + 100.0 * np.random.default_rng(seed + 1000).standard_normal(len(t))
    log = Experiment({c.name: c for c in channels(kind, t, q)}, kind)
    return log.replacing(Channel("force.wheel", t, known, "N*m"), Channel("tacho", t, tacho, "rad/s")), q, w


def nees_of(x: Array, P: Array, q: Array, w: Array) -> float:
    """The mean of eᵀ P⁻¹ e / 2 over angle and speed."""
    error, P = (x[:, :2] - np.column_stack([q, w]))[SKIP:], P[SKIP:, :2, :2]
    return float(np.einsum("ni,nij,nj->n", error, np.linalg.inv(P), error).mean() / 2.0)


def nees(kind: str, seed: int) -> float:
    log, q, w = driven(kind, seed)
    found = observe(
        wheel(),
        log,
        EKF(engine="compiled"),
        ObserveSettings(model_error="off", process_noise=NOISE, start={"wheel": 0.05}, step=STEP),
    )
    assert found.states == ("wheel", "wheel_dot", "force.wheel")
    at = np.searchsorted(found.t, log["tacho"].t - 1e-9)  # edges that are timed have rows of their own
    return nees_of(found.reduced[at], found.estimates.P[at], q, w)


@pytest.mark.parametrize(
    ("kind", "logs", "low", "high"),
    [("edges", 8, 0.75, 1.25), ("intervals", 5, 0.75, 1.25), ("counts", 3, 1.5, np.inf)],
)
@pytest.mark.filterwarnings("ignore:.*is farther off than stated")  # counts as white noise are
def test_nees_of_angle_and_speed(kind: str, logs: int, low: float, high: float) -> None:
    """Ideal is 1. Eight logs of 6 s, whose errors are correlated over about a second: about 50 independent errors of two states."""
    assert low < np.mean([nees(kind, seed) for seed in range(900, 900 + logs)]) < high


def test_beside_a_program_with_the_speed_that_the_observer_has() -> None:
    """The age of an edge is weighed with the estimated speed and its deviation, and each reading comes with its own noise."""
    values = []
    for seed in range(920, 925):
        log, q, w = driven("counts", seed)
        t, tacho, n = log["tacho"].t, log["tacho"].values, np.floor(q / WHEEL.pitch)
        observer = Observer(
            wheel(),
            EKF(engine="compiled"),
            ObserveSettings(
                model_error="off", process_noise=NOISE, start={"wheel": 0.05}, inputs=["force.wheel"], step=STEP
            ),
        )
        reader, x, P, speed, sigma = PulseReader(WHEEL), np.empty((len(t), 3)), np.empty((len(t), 3, 3)), 0.0, 0.02
        for k in range(len(t)):
            reading = reader.step(t[k], n[k], speed, sigma)
            given, own = {"tacho": tacho[k]}, {}
            if reading is not None:
                given, own = given | {"angle": reading.angle}, {"angle": reading.sigma}
            belief = observer.step(t[k], given, [TORQUE], sigma=own).belief
            x[k], P[k] = belief.x[:3], belief.P
            speed, sigma = belief.x[1], np.sqrt(belief.P[1, 1])
        values.append(nees_of(x, P, q, w))
    assert 0.7 < np.mean(values) < 1.3


def test_noise_of_each_reading_is_the_same_in_every_engine_and_stream() -> None:
    log, _, _ = driven("edges", 930, 3.0)
    assert len(log["angle"]) >= 3
    settings = ObserveSettings(model_error="off", process_noise=NOISE, start={"wheel": 0.05}, step=STEP)
    compiled, python = (observe(wheel(), log, EKF(engine=engine), settings) for engine in ("compiled", "python"))
    unscented = observe(wheel(), log, "ukf", settings)
    size = np.abs(compiled.reduced).max(axis=0)
    assert (np.abs(compiled.reduced - python.reduced) <= 1e-12 * size).all()
    size_P = np.abs(python.estimates.P).max(axis=0)
    assert (np.abs(compiled.estimates.P - python.estimates.P) <= 1e-12 * size_P).all()
    assert (np.abs(unscented.reduced - python.reduced) <= 1e-8 * size).all()  # all is linear here; points cancel digits
    observer = Observer(wheel(), EKF(engine="compiled"), replace(settings, inputs=["force.wheel"]))
    edges = {round(t / STEP): k for k, t in enumerate(log["angle"].t.tolist())}
    for k, tacho in enumerate(log["tacho"].values.tolist()):
        given, own, at = {"tacho": tacho}, None, edges.get(k)
        if at is not None:
            given["angle"], own = log["angle"].values[at], {"angle": log["angle.sigma"].values[at]}
        observer.step(float(log["tacho"].t[k]), given, [TORQUE], sigma=own)
    np.testing.assert_allclose(observer.belief.x[:3], compiled.reduced[-1], rtol=1e-12)
    np.testing.assert_allclose(observer.belief.P, compiled.estimates.P[-1], rtol=1e-11)
    ignored = observe(
        wheel(),
        Experiment({n: log[n] for n in log if n != "angle.sigma"}, "ignored"),
        settings=settings,
    )
    assert (
        ignored.sigma[-1, 0] > 2.0 * compiled.sigma[-1, 0]
    )  # the sensor's own noise, that of its quantum, is far larger


def test_a_deviation_that_is_none_is_refused_by_name() -> None:
    observer = Observer(wheel(), settings=ObserveSettings(model_error="off", process_noise=NOISE, start={"wheel": 0.0}))
    with pytest.raises(
        DataError, match=r"(?s)there is no output 'angel'.*sigma of 'angle': it is no deviation.*found -1"
    ):
        observer.step(0.0, {"angle": 0.0}, sigma={"angel": 1.0, "angle": -1.0})
