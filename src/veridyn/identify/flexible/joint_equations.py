"""What two encoders show of a flexible joint whose numbers are known, and the numbers that are most likely.

The numbers are log K, f_c, f_v, d and D/K, of each log the zero of its encoders, of each log the share of dry friction with which it
begins, and, where there is a backlash, its gap. The equations are those of :mod:`veridyn.identify.flexible.two_encoders`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.flexible.posterior import ColouredPosterior, most_likely, posterior, whitenings
from veridyn.identify.flexible.recording import JointSamples

PRESLIDING_SHARES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of the way: distances over which dry friction may build up
START_SIGMA = 3.0**-0.5  # of the share of dry friction with which a log begins: it is as likely anywhere from −1 to 1
QUANTITIES = ("stiffness", "coulomb", "viscous", "delay", "relaxation")
# of central differences: of log K, of shares of prior deviations of friction, s
STEPS = (1e-4, 1e-2, 1e-2, 1e-6, 1e-6)


def torque_through(p: Array, x: JointSamples, rubs: Array, start: float = 0.0) -> Array:
    """What goes through the joint: the motor's force less its friction."""
    return x.force - p[1] * (rubs[0] + start * rubs[2]) - p[2] * x.speed


def deflection(p: Array, x: JointSamples, rubs: Array, start: float = 0.0) -> Array:
    """What the encoders show but for their zeros, with dry friction `rubs`; `start`: the share of it with which the log begins."""
    compliance, coulomb, viscous, d, relaxation = np.exp(-p[0]), p[1], p[2], p[3], p[4]
    _, z_rate, _, left_rate = rubs
    torque = torque_through(p, x, rubs, start)
    rate = x.force_rate - coulomb * (z_rate + start * left_rate) - viscous * x.acceleration
    late = d * x.speed - d**2 / 2.0 * x.acceleration + d**3 / 6.0 * x.jerk
    return compliance * (torque - (relaxation + d) * rate) + late


def most_likely_joint(
    samples: Sequence[JointSamples],
    mean: Array,
    sigma: Array,
    way: float,
    gap: float = 0.0,
    sides: Sequence[Array] = (),
) -> tuple[ColouredPosterior, float]:
    """The estimate, and the distance over which dry friction builds up; with a `gap` above zero, on these `sides` of it, that as well."""
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
    noises = whitenings([one.t for one in samples])
    distances, tried = [share * way for share in PRESLIDING_SHARES], list[ColouredPosterior]()
    for distance in distances:
        rubs = [one.dry_friction(distance) for one in samples]

        def predict(p: Array, rubs: Sequence[Array] = rubs) -> Array:
            starts = p[n + logs : n + 2 * logs].tolist()
            made = [deflection(p, one, z, z0) for one, z, z0 in zip(samples, rubs, starts, strict=True)]
            spring = np.concatenate(made) + zeros @ p[n : n + logs]
            return spring + p[-1] * half if play else spring

        start = tried[-1].values if tried else None
        tried.append(posterior(predict, measured, noises, full_mean, full_sigma, step, start))
    best, _, found = most_likely(tried)
    return found, distances[best]
