"""What two encoders show of a flexible joint whose numbers are known, and the numbers that are most likely.

The numbers are log K, f_c, f_v, d and D/K, of each log the zero of its encoders, of each log the share of dry friction with which it
begins, and, where there is a backlash, its gap. The equations are those of :mod:`veridyn.identify.flexible.two_encoders`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, part_at
from veridyn.identify.flexible.posterior import ColouredPosterior, most_likely, posterior, whitenings
from veridyn.identify.flexible.recording import JointSamples
from veridyn.model.elements.element import Element
from veridyn.model.flexible import flexible_joints, motor_side
from veridyn.model.machine import Machine

PRESLIDING_SHARES = (
    1e-2,
    1e-3,
    1e-4,
    1e-5,
    1e-6,
    1e-9,
)  # of the way: distances over which dry friction may build up; the last: at once
START_SIGMA = 3.0**-0.5  # of the share of friction with which a log begins: it is as likely anywhere from −1 to 1
VISCOUS_SHARE = 0.3  # of the force, at the largest speed: prior deviation of viscous friction of which nothing is known
BETWEEN = 10.0 ** (1.0 / 3.0)  # the most likely of them is tried so many times smaller and larger as well
QUANTITIES = ("stiffness", "coulomb", "viscous", "delay", "relaxation")
DISSIPATING = ("coulomb", "viscous", "relaxation")
KEPT = 12  # of paths of hysteresis and shares along them, while an estimate is sought: five serve one step
# of central differences: of log K, of shares of prior deviations of friction, s
STEPS = (1e-4, 1e-2, 1e-2, 1e-6, 1e-6)


@dataclass(frozen=True, eq=False, kw_only=True)
class InnerFriction:
    """Hysteresis of the samples of each log, and its priors: the deviation `force` of h, and w = `way` but for `spread` in log w."""

    samples: Sequence[JointSamples]
    force: float
    way: float
    spread: float
    kept: dict[tuple[float, ...], list[Array]] = field(
        default_factory=dict
    )  # paths by delay, shares by delay and log w

    @property
    def mean(self) -> Array:
        """Of h, log w and the start of each log."""
        return np.array([0.0, np.log(self.way), *np.zeros(len(self.samples))])

    @property
    def sigma(self) -> Array:
        return np.array([self.force, self.spread, *np.full(len(self.samples), START_SIGMA)])

    @property
    def step(self) -> Array:
        """Of central differences."""
        return np.array([1e-2 * self.force, 1e-2, *np.full(len(self.samples), 1e-2)])

    def torque(self, own: Array, delay: float, relaxation: float) -> Array:
        """h (z − (D/K) ż + …) of h, log w and the start of each log, z along the deflection that encoders with this delay show."""
        force, log_way, starts = float(own[0]), float(own[1]), own[2:].tolist()
        if len(self.kept) >= 2 * KEPT:
            self.kept.clear()
        if (delay,) not in self.kept:
            self.kept[delay,] = [one.twist(delay) for one in self.samples]
        key = (delay, log_way)
        if key not in self.kept:
            made = zip(self.samples, self.kept[delay,], strict=True)
            self.kept[key] = [one.shares(path, float(np.exp(log_way))) for one, path in made]
        lag = np.array([1.0, -relaxation, relaxation**2])
        return force * np.concatenate(
            [lag @ (z[:3] + start * z[3:]) for z, start in zip(self.kept[key], starts, strict=True)]
        )


def torque_through(p: Array, x: JointSamples, rubs: Array, start: float = 0.0) -> Array:
    """What goes through the joint: the motor's force less its friction."""
    return x.force[0] - p[1] * (rubs[0] + start * rubs[3]) - p[2] * x.speed


def deflection(p: Array, x: JointSamples, rubs: Array, start: float = 0.0) -> Array:
    """What the encoders show but for their zeros, with dry friction `rubs`; `start`: the share of it with which the log begins."""
    compliance, coulomb, viscous, d, relaxation = np.exp(-p[0]), p[1], p[2], p[3] - x.ahead, p[4]
    lag = np.array([1.0, -(relaxation + d), relaxation**2 + relaxation * d + d**2 / 2.0])
    motion = np.stack([x.speed, x.acceleration, x.jerk])
    torque = lag @ (x.force - coulomb * (rubs[:3] + start * rubs[3:]) - viscous * motion)
    late = d * x.speed - d**2 / 2.0 * x.acceleration + d**3 / 6.0 * x.jerk
    return compliance * torque + late


def most_likely_joint(
    samples: Sequence[JointSamples],
    mean: Array,
    sigma: Array,
    way: float,
    gap: float = 0.0,
    sides: Sequence[Array] = (),
    inner: InnerFriction | None = None,
    start: Array | None = None,
    distances: Sequence[float] = (),
) -> tuple[ColouredPosterior, float]:
    """The estimate, and the distance over which dry friction builds up; with a `gap` above zero, on these `sides` of it, that as well.

    `inner`: hysteresis, whose numbers stand before the gap. `start`: where the first search begins. `distances`: those that are tried.
    """
    measured = np.concatenate([one.deflection for one in samples])
    zeros = np.repeat(np.eye(len(samples)), [len(one) for one in samples], axis=0)
    level, n, logs, play = float(np.mean(measured)), len(QUANTITIES), len(samples), int(gap > 0.0)
    half = 0.5 * np.concatenate([*sides, np.zeros(0)])
    full_mean = np.concatenate([mean, np.full(logs, level), np.zeros(logs + play)])
    wide = np.full(logs, max(1e3 * float(np.std(measured)), 1e-9))
    full_sigma = np.concatenate([sigma, wide, np.full(logs, START_SIGMA), np.full(play, gap)])
    scale = np.array([1.0, sigma[1], sigma[2], 1.0, 1.0])
    step = np.concatenate(
        [np.array(STEPS) * scale, np.full(logs, 1e-6), np.full(logs, 1e-2), np.full(play, 1e-2 * gap)]
    )
    if inner is not None:
        at = n + 2 * logs
        full_mean, full_sigma, step = (
            np.insert(x, at, y) for x, y in ((full_mean, inner.mean), (full_sigma, inner.sigma), (step, inner.step))
        )
    noises = whitenings([one.t for one in samples])
    ways, tried = list(distances) or [share * way for share in PRESLIDING_SHARES], list[ColouredPosterior]()

    def fitted(distance: float) -> ColouredPosterior:
        rubs = [one.dry_friction(distance) for one in samples]

        def predict(p: Array, rubs: Sequence[Array] = rubs) -> Array:
            starts = p[n + logs : n + 2 * logs].tolist()
            made = [deflection(p, one, z, z0) for one, z, z0 in zip(samples, rubs, starts, strict=True)]
            spring = np.concatenate(made) + zeros @ p[n : n + logs]
            if inner is not None:
                spring = spring - np.exp(-p[0]) * inner.torque(
                    p[n + 2 * logs : len(p) - play], float(p[3]), float(p[4])
                )
            return spring + p[-1] * half if play else spring

        begin = tried[-1].values if tried else start
        return posterior(predict, measured, noises, full_mean, full_sigma, step, begin, at_least(len(full_mean)))

    for distance in ways:
        tried.append(fitted(distance))
    if not distances:
        best = ways[most_likely(tried)[0]]
        for distance in (best / BETWEEN, best * BETWEEN):
            ways.append(distance)
            tried.append(fitted(distance))
    best, _, found = most_likely(tried)
    return found, ways[best]


def at_least(count: int) -> Array:
    """The lower bounds of so many unknowns, QUANTITIES first: friction and damping take power, and never give it."""
    return np.array([0.0 if k < len(QUANTITIES) and QUANTITIES[k] in DISSIPATING else -np.inf for k in range(count)])


def joint_prior(
    machine: Machine, joint: str, samples: Sequence[JointSamples], spread: float, delay: float, relaxation: float
) -> tuple[Array, Array]:
    """Mean and standard deviation of the QUANTITIES: as the machine has them, or wide."""
    flexible, motor = flexible_joints(machine)[joint], motor_side(joint)
    known = machine.uncertainty
    deviations = {} if known is None else dict(zip(known.names, np.sqrt(np.diag(known.covariance)), strict=True))
    if not np.isfinite(flexible.stiffness):
        hint = f"Give its order of magnitude in flexible: {{stiffness: …}} of '{joint}'."
        raise DataError("its stiffness has no prior value.", where=part_at("joint", joint), hint=hint)
    force = float(np.std(np.concatenate([one.force[0] for one in samples])))
    speed = max(float(np.abs(one.speed).max()) for one in samples)
    wide = {"coulomb": force, "damper": VISCOUS_SHARE * force / speed}
    mean, sigma = (
        [np.log(flexible.stiffness)],
        [_relative(deviations.get(f"stiffness_{joint}"), flexible.stiffness, spread)],
    )
    for kind in ("coulomb", "damper"):
        own = [e for e in machine.elements if e.kind == kind and dict(e.on) == {motor: 1.0}]
        mean.append(_value(own))
        sigma.append(deviations.get(own[0].parameter_name, wide[kind]) if own else wide[kind])
    damping = deviations.get(f"damping_{joint}")
    relaxed = relaxation if damping is None else damping / flexible.stiffness
    mean += [0.0, np.nan_to_num(flexible.damping) / flexible.stiffness]
    sigma += [delay, relaxed]
    return np.array(mean), np.array(sigma)


def _relative(deviation: float | None, value: float, spread: float) -> float:
    return spread if deviation is None else float(deviation) / value


def _value(elements: Sequence[Element]) -> float:
    return float(np.nan_to_num(elements[0].value)) if elements else 0.0
