"""Backlash of a flexible joint from two encoders: in contact half the gap adds to the deflection of the spring, on the side of the torque.

    θ − q = τ/K + (b/2) sign τ        |θ − q| > b/2: in contact
    τ = 0                             |θ − q| < b/2: on the way from one side to the other, where τ does not say where the link is

Samples on that way, and near it, as filters blur them, are left out; for those that are left the gap b is one number more, which enters
linearly. Which samples these are follows from the torque, and that from friction, which is estimated: they are chosen again until no more
are left out. None that was left out comes back. Whether there is a gap is decided on these samples, by marginal likelihoods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.identify.flexible.joint_equations import QUANTITIES, most_likely_joint, torque_through
from veridyn.identify.flexible.posterior import ColouredPosterior
from veridyn.identify.flexible.recording import JointSamples
from veridyn.model.flexible import flexible_elements, flexible_joints
from veridyn.model.machine import Machine

NOISE_SIGMAS = 3.0  # of the torque: what is larger has a sign
BLUR_PERIODS = 0.5  # of the low-pass on either side of a step: it has risen there


def estimate_with_gap(
    samples: Sequence[JointSamples],
    found: ColouredPosterior,
    distance: float,
    bands: Sequence[float],
    mean: Array,
    sigma: Array,
    way: float,
    gap: float,
) -> tuple[tuple[ColouredPosterior, float], float]:
    """The estimate with a gap, whose prior deviation is `gap`, and the log odds for it on the samples in contact."""
    n, logs, owns = len(QUANTITIES), len(samples), [np.ones(len(one), dtype=bool) for one in samples]
    while True:
        starts, noise = found.values[n + logs : n + 2 * logs].tolist(), found.noise[0] * float(np.exp(found.values[0]))
        torques = [
            torque_through(found.values, one, one.dry_friction(distance), z0)
            for one, z0 in zip(samples, starts, strict=True)
        ]
        fewer = [own & in_contact(*x, noise, band) for own, *x, band in zip(owns, samples, torques, bands, strict=True)]
        parts = [some_of(one, own) for one, own in zip(samples, fewer, strict=True)]
        if min(own.sum() for own in fewer) < 2 * n:
            return (found, distance), -np.inf
        if all(np.array_equal(new, old) for new, old in zip(fewer, owns, strict=True)):
            break
        owns = fewer
        sides = [np.sign(torque[own]) for torque, own in zip(torques, owns, strict=True)]
        found, distance = most_likely_joint(parts, mean, sigma, way, gap, sides)
    samples = parts
    without, _ = most_likely_joint(samples, mean, sigma, way)
    return (found, distance), found.evidence - float(np.log(gap)) - without.evidence


def in_contact(x: JointSamples, torque: Array, noise: float, band: float) -> NDArray[np.bool_]:
    """Samples (N,) whose torque is above that of `noise` and does not change its sign within a time that a low-pass to `band` Hz blurs."""
    ok, side, blur = np.abs(torque) > NOISE_SIGMAS * noise, np.sign(torque), BLUR_PERIODS / band
    for k in np.flatnonzero(side[1:] != side[:-1]):
        ok &= (x.t < x.t[k] - blur) | (x.t > x.t[k + 1] + blur)
    return ok


def some_of(x: JointSamples, own: NDArray[np.bool_]) -> JointSamples:
    """Those of the samples (N,) that are true."""
    kept = x.kept.copy()
    kept[np.flatnonzero(x.kept)[~own]] = False
    columns = ("t", "deflection", "force", "speed", "acceleration", "jerk")
    return replace(x, kept=kept, **{name: getattr(x, name)[..., own] for name in columns})


def with_backlash(machine: Machine, joint: str, backlash: float) -> Machine:
    """The machine whose flexible joint has this gap, rad or m, or none where it is zero; its stiffness keeps name and value."""
    own = replace(flexible_joints(machine)[joint], backlash=backlash)
    spring = flexible_elements(joint, own)[0]
    return replace(
        machine, elements=tuple(spring if e.parameter_name == spring.parameter_name else e for e in machine.elements)
    )
