"""Stiffness of a flexible joint from its motor encoder, its torque and inertial sensors on the link.

The motor's equation gives the torque through the joint, its deflection follows from stiffness and damping, and sensors on the link read
what the motor's angle less that makes of their places (:mod:`~veridyn.identify.flexible.link_sensors`):

    T = Γ − J θ̈ − f_c z − f_v θ̇,        δ = (T − (D/K) Ṫ + (D/K)² T̈)/K,        reading(t) = h(θ − δ, …)(t − d) + bias, turn, gains, place

Each sensor has noise of its own kind: it is first fitted by itself, which gives size, memory and white share of its residuals, then all
together. Readings are linear in δ around an estimate of it, which is none at first and that of the first fit in the second one. Deviations
are wider where quarters of the logs disagree, as friction that is not what the equations have makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, part_at
from veridyn.identify.flexible.joint_equations import (
    PRESLIDING_SHARES,
    QUANTITIES,
    START_SIGMA,
    STEPS,
    at_least,
    joint_prior,
)
from veridyn.identify.flexible.link_sensors import (
    LinkSensor,
    OwnNumber,
    SensorSamples,
    delay_fault,
    first_delay,
    own_numbers,
    rates_of,
    recorded,
    refuse_blind,
    sensor_samples,
)
from veridyn.identify.flexible.posterior import ColouredPosterior, Whitening, most_likely, posterior, whitenings
from veridyn.identify.flexible.recording import (
    BAND_FACTOR,
    JointRecording,
    JointSamples,
    dahl_state,
    largest_speed,
    samples_of,
)
from veridyn.identify.flexible.result import FlexibleJointFit, FlexibleSettings, JointQuantity
from veridyn.inference.posterior import DETERMINED_SHARE, PARTS, parts_agreement, posterior_covariance
from veridyn.model.experiment import Experiment
from veridyn.model.flexible import flexible_joints
from veridyn.model.machine import Machine

SHARED = len(QUANTITIES)  # of which the delay is that of the first sensor
DELAY = QUANTITIES.index("delay")
BAND = 2.0  # times the frequency below which the motion lies: gravity and centripetal terms are products of two of its numbers
# Periods of the band at either end: the slowest poles of the low-pass fall by e^2.4 in each, and five derivatives raise what is left, at
# the end of the band, by 2⁵ over the motion: 4.5 leave a thousandth
EDGE = 4.5
HELD = 1e-3  # of the prior deviation of damping, in the first fit: beside a wrong stiffness it would go anywhere
LISTED = (
    "bias",
)  # kinds of a sensor's own numbers that are results; the others are known as they were before, or better


@dataclass(frozen=True, eq=False, kw_only=True)
class SensorStream:
    """One sensor over all logs, and where its delay and its own numbers stand among the unknowns."""

    sensor: LinkSensor
    samples: Sequence[SensorSamples]
    numbers: Sequence[OwnNumber]
    delay: int
    own: slice

    @cached_property
    def measured(self) -> Array:
        return np.concatenate([x.measured.ravel() for x in self.samples])

    @cached_property
    def times(self) -> list[Array]:
        return [x.t for x in self.samples for _ in x.measured]

    def predicted(self, p: Array, rubs: Sequence[Array]) -> Array:
        """Of unknowns, with dry friction of each log."""
        out = []
        for log, (x, z) in enumerate(zip(self.samples, rubs, strict=True)):
            flex = flexing(p, x.force, x.speed, z, float(p[SHARED + log]))
            out.append(x.reading(flex, float(p[self.delay])) + np.tensordot(p[self.own], x.columns, 1))
        return np.concatenate([one.ravel() for one in out])


def band_of(r: JointRecording, s: FlexibleSettings) -> float:
    """Hz, the low-pass of the equations."""
    return s.band or r.band * BAND / BAND_FACTOR


def flexing(p: Array, force: Array, speed: Array, rubs: Array, start: float) -> Array:
    """δ and its derivatives (R − 2, K) of the QUANTITIES, from force and speed (R, K) and dry friction (2, R, K) with theirs."""
    torque = force - p[1] * (rubs[0] + start * rubs[1]) - p[2] * speed
    relaxation = p[4]
    return np.exp(-p[0]) * (torque[:-2] - relaxation * torque[1:-1] + relaxation**2 * torque[2:])


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkJointFit(FlexibleJointFit):
    """What sensors on the link show of one joint; behind its usual unknowns stand the delays and own numbers of the `streams`."""

    streams: Sequence[SensorStream] = ()

    @cached_property
    def quantities(self) -> dict[str, JointQuantity]:
        """Those of a joint, delays of further sensors and biases."""
        found, p, s = dict(super().quantities), self.estimate.values, self.estimate.sigma
        several = len(self.streams) > 1
        for k, stream in enumerate(self.streams):
            known, name = stream.sensor.sensor, "delay"
            if several:
                name = f"delay of {known.name}"
                found = found if k else {name if key == "delay" else key: x for key, x in found.items()}
            own = (name, "s", stream.delay, known.delay, self.settings.delay)
            rows = [own] + [
                (x.name, x.unit, stream.own.start + i, x.mean, x.sigma)
                for i, x in enumerate(stream.numbers)
                if x.kind in LISTED
            ]
            for name, unit, at, mean, wide in rows:
                found[name] = JointQuantity(
                    name=name,
                    unit=unit,
                    value=float(p[at]),
                    sigma=float(s[at]),
                    prior=mean,
                    prior_sigma=wide,
                    determined=bool(s[at] <= DETERMINED_SHARE * wide),
                )
        return found

    @property
    def compared(self) -> tuple[str, str]:
        one = self.streams[0].sensor
        return f"{one.sensor.name} less that of a rigid joint", one.unit

    @property
    def remedies(self) -> tuple[str, ...]:
        if self.stiffness.determined:
            return ()
        words = {"place": "place", "gain": "gains", "bias": "biases", "turn": "turn about the axis"}
        for size in range(1, len(words) + 1):
            enough = [
                kinds for kinds in combinations(words, size) if self._known(kinds) <= DETERMINED_SHARE * self.sigma[0]
            ]
            if enough:
                return tuple(" and ".join(words[k] for k in kinds) for kinds in enough)
        return ()

    def _known(self, kinds: Sequence[str]) -> float:
        """The deviation of log K were the sensors' numbers of these kinds known."""
        C = self.estimate.covariance
        at = [s.own.start + i for s in self.streams for i, x in enumerate(s.numbers) if x.kind in kinds]
        left = C[0, 0] - C[0, at] @ np.linalg.solve(C[np.ix_(at, at)], C[at, 0])
        return float(np.sqrt(max(left, 0.0)))

    def predict(self, log: Experiment | JointRecording) -> tuple[JointSamples, Array]:
        """What the first sensor's most telling output reads in another log less that of a rigid joint, and what the torque makes of that.

        Both are low-passed as the equations are, and to ``settings.lowpass`` at most. Bias and turn of the
        sensor and the share of dry friction with which the log begins are unknown, and those that fit it best.
        """
        if isinstance(log, JointRecording):
            what = "a log with the sensors on the link is needed."
            raise DataError(what, where=part_at("joint", self.joint), found="a recording of two encoders")
        stream, p = self.streams[0], self.estimate.values
        recording, (readings,) = recorded([stream.sensor], self.joint, log)
        band = min(self.settings.lowpass, band_of(recording, self.settings))
        joint = samples_of(recording, self.inertia, band, step=1, edge=EDGE)
        x = sensor_samples(stream.sensor, readings, joint, 0, 1, np.zeros(len(recording.motor)), float(p[stream.delay]))
        rubs = x.dry_friction(self.presliding)
        base, begun = (
            x.reading(flexing(p, x.force, x.speed, rubs, start), float(p[stream.delay])) for start in (0.0, 1.0)
        )
        k, m = int(np.argmax(np.std(base, axis=1))), len(stream.sensor.rows)
        lasting = len(x.columns) - m - 1  # numbers of the sensor that are the same in all logs
        known = base[k] + p[stream.own.stop - lasting : stream.own.stop] @ x.columns[m + 1 :, k]
        free = np.stack([x.columns[k, k], x.columns[m, k], begun[k] - base[k]])
        fitted = np.linalg.lstsq(free.T, x.measured[k] - known, rcond=None)[0]
        return replace(joint, deflection=x.measured[k]), known + fitted @ free


def fit_link_sensors(
    machine: Machine, joint: str, sensors: Sequence[LinkSensor], logs: Sequence[Experiment], s: FlexibleSettings
) -> LinkJointFit:
    """One joint by itself, from what sensors on its link read."""
    flexible = flexible_joints(machine)[joint]
    words = [word for word in ("backlash", "hysteresis") if getattr(flexible, word) != 0.0]
    if words:
        what = f"its {' and '.join(words)} and its stiffness are not identified from sensors on the link."
        hint = "Use a link encoder, or leave it out: what it does is then part of the stiffness."
        raise DataError(what, where=part_at("joint", joint), hint=hint)
    for one in sensors:
        refuse_blind(one)
    both = [recorded(sensors, joint, log) for log in logs]
    recordings = [r for r, _ in both]
    zone = s.dead_zone * largest_speed(recordings)
    motors = [samples_of(r, flexible.inertia, band_of(r, s), dead_zone=zone, edge=EDGE) for r in recordings]
    for r, motor in zip(recordings, motors, strict=True):
        if len(motor) < 2 * len(QUANTITIES):
            what = f"only {len(motor)} independent samples are left in which it moves."
            hint = "Record longer, or a faster motion."
            raise DataError(what, where=part_at("joint", joint), hint=hint, source=r.log)
    mean, sigma = joint_prior(machine, joint, motors, s.spread, s.delay, s.relaxation)
    way = max(float(np.ptp(r.motor)) for r in recordings)
    names = [log.name for log in logs]
    delays = []
    for k, one in enumerate(sensors):
        found = [first_delay(one, readings[k], motor) for (_, readings), motor in zip(both, motors, strict=True)]
        delays.append([float(np.mean(found))] * len(logs))
        delay_fault(joint, one.sensor.name, delays[-1][0])
    bent = [np.zeros(len(r.motor)) for r in recordings]
    distances, start = [share * way for share in PRESLIDING_SHARES], None
    estimate, distance, streams = None, 0.0, list[SensorStream]()
    held = np.append(sigma[:-1], HELD * sigma[-1])
    for own_sigma in (
        held,
        sigma,
    ):  # around no deflection and with the damping that is known, then around that which is found
        streams, at = list[SensorStream](), SHARED + len(logs)
        for k, one in enumerate(sensors):
            made = [
                sensor_samples(one, readings[k], motor, log, len(logs), bent[log], delays[k][log])
                for log, ((_, readings), motor) in enumerate(zip(both, motors, strict=True))
            ]
            numbers = own_numbers(one, made, names, s.gain, s.place)
            delay, at = (DELAY, at) if k == 0 else (at, at + 1)
            streams.append(
                SensorStream(sensor=one, samples=made, numbers=numbers, delay=delay, own=slice(at, at + len(numbers)))
            )
            at += len(numbers)
        estimate, distance = _estimate(streams, mean, own_sigma, at, distances, start)
        start = estimate.values
        bent = [_flex(estimate.values, motor, distance, k) for k, motor in enumerate(motors)]
        delays = [[float(start[one.delay])] * len(logs) for one in streams]
    assert estimate is not None
    return LinkJointFit(
        joint=joint,
        turning=machine.kinds[joint] == "turning",
        inertia=flexible.inertia,
        mean=mean,
        sigma=sigma,
        estimate=estimate,
        settings=s,
        dead_zone=zone,
        presliding=distance,
        own_delay=(float(estimate.values[DELAY]), float(estimate.sigma[DELAY])),
        streams=tuple(streams),
    )


def _flex(p: Array, motor: JointSamples, distance: float, log: int) -> Array:
    """The deflection at all samples of a log (N,)."""
    rubs = np.stack([rates_of(motor.passed(x), motor.rate, 2) for x in dahl_state(motor.path, distance)])
    speed = rates_of(motor.all_speed, motor.rate, 2)
    return flexing(p, rates_of(motor.all_force, motor.rate, 2), speed, rubs, float(p[SHARED + log]))[0]


def _estimate(
    streams: Sequence[SensorStream],
    mean: Array,
    sigma: Array,
    count: int,
    distances: Sequence[float],
    start: Array | None,
) -> tuple[ColouredPosterior, float]:
    """The estimate of all unknowns, and the distance over which dry friction builds up, the most likely of these."""
    full_mean, full_sigma = np.zeros(count), np.full(count, START_SIGMA)
    scale = np.array([1.0, sigma[1], sigma[2], 1.0, 1.0])
    step = np.full(count, 1e-2)
    full_mean[:SHARED], full_sigma[:SHARED], step[:SHARED] = mean, sigma, np.array(STEPS) * scale
    for one in streams:
        full_mean[one.delay], full_sigma[one.delay], step[one.delay] = (
            one.sensor.sensor.delay,
            sigma[DELAY],
            STEPS[DELAY],
        )
        full_mean[one.own] = [x.mean for x in one.numbers]
        full_sigma[one.own] = [x.sigma for x in one.numbers]
        step[one.own] = full_sigma[one.own]  # in which readings are linear
    rubs = {d: [x.dry_friction(d) for x in streams[0].samples] for d in distances}

    def found(
        own: Sequence[SensorStream], noises: Sequence[Whitening], begin: Array | None
    ) -> tuple[ColouredPosterior, float]:
        measured = np.concatenate([one.measured for one in own])
        tried = list[ColouredPosterior]()

        def predicted(p: Array, rubbed: Sequence[Array]) -> Array:
            return np.concatenate([one.predicted(p, rubbed) for one in own])

        for d in distances:
            predict = partial(predicted, rubbed=rubs[d])
            tried.append(posterior(predict, measured, noises, full_mean, full_sigma, step, begin, at_least(count)))
        best, _, out = most_likely(tried)
        if len(own) < len(streams):
            return out, distances[best]
        predict, p = partial(predicted, rubbed=rubs[distances[best]]), out.values
        noise = next(w for w in noises if len(noises) == 1 or (w.memory, w.white) == out.noise[1:])
        J = np.stack([(predict(p + h) - predict(p - h)) / (2.0 * h.sum()) for h in np.diag(step)], axis=1)
        both = noise(np.column_stack([J * full_sigma, measured - predict(p)])) / out.noise[0]
        part = np.concatenate([np.arange(len(t)) * PARTS // len(t) for one in own for t in one.times])
        X, r = both[:, :-1], both[:, -1]
        G = X.T @ X
        same = parts_agreement(G, [(X[part == k], r[part == k]) for k in range(PARTS)])
        wider = 1.0 if same is None else same.widening
        more = np.outer(full_sigma, full_sigma) * (posterior_covariance(G, wider) - posterior_covariance(G))
        return replace(out, covariance=out.covariance + more), distances[best]

    noises = [whitenings(one.times) for one in streams]
    alone = [found([one], own, start) for one, own in zip(streams, noises, strict=True)]
    if len(streams) == 1:
        return alone[0]
    chosen = [
        next(w for w in own if (w.memory, w.white) == one.noise[1:])
        for own, (one, _) in zip(noises, alone, strict=True)
    ]
    factors = [one.noise[0] * L for w, (one, _) in zip(chosen, alone, strict=True) for L in w.factors]
    total = sum(
        w.log_determinant + 2.0 * len(stream.measured) * np.log(one.noise[0])
        for w, stream, (one, _) in zip(chosen, streams, alone, strict=True)
    )
    return found(streams, [Whitening(1.0, np.nan, tuple(factors), float(total))], alone[0][0].values)
