"""Hysteresis of a flexible joint from two encoders: Dahl's law along the deflection that they show.

    τ = K (θ − q) + D (θ̇ − q̇) + h z,        dz/dδ = (1 − sign(δ̇) z)/w,        δ = θ − q

Where the deflection goes is measured: θ(t) − q(t − d) less θ(t) − θ(t − d) is δ(t − d), d being the delay of the link encoder. So z follows
from the log for any w and d, h enters linearly, and the share of h with which a log begins is one number more. Small loops are those of a
stiffness K + h/w: where the deflection does not go farther than w, h and w stay with their priors. The likelihood has several maxima in w,
of which the largest is sought on a grid over its prior. Whether there is a hysteresis is decided by marginal likelihoods.

For predictions nothing of the measured deflection is used: K δ + h z grows with δ, so that z follows from the torque.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.flexible.joint_equations import START_SIGMA, InnerFriction, most_likely_joint
from veridyn.identify.flexible.posterior import ColouredPosterior
from veridyn.identify.flexible.recording import JointSamples
from veridyn.model.flexible import flexible_elements, flexible_joints
from veridyn.model.machine import Machine

SEARCHED = (-1.5, 0.0, 1.5)  # of log w, in deviations of its prior
HELD = 1e-3  # the deviation of log w where it is held
STEPS = 50  # of the search for one deflection
SOLVED = 1e-9  # of the deflection over which a hysteresis builds up: a smaller step ends that search


def estimate_with_hysteresis(
    samples: Sequence[JointSamples],
    without: ColouredPosterior,
    distance: float,
    mean: Array,
    sigma: Array,
    way: float,
    inner: InnerFriction,
) -> tuple[tuple[ColouredPosterior, float], float]:
    """The estimate with a hysteresis of these priors, and the log odds for it; `without`, `distance`: of the estimate that has none."""
    tried = []
    for z in SEARCHED:
        held = replace(inner, way=inner.way * float(np.exp(z * inner.spread)), spread=HELD, kept={})
        one, _ = most_likely_joint(samples, mean, sigma, way, inner=held, distances=[distance])
        tried.append((one.evidence - 0.5 * z**2, one.values))
    start = max(tried, key=lambda one: one[0])[1]
    found, distance = most_likely_joint(samples, mean, sigma, way, inner=inner, start=start)
    priors = np.log(inner.force * inner.spread) + len(samples) * np.log(START_SIGMA)
    return (found, distance), float(found.evidence - priors - without.evidence)


def inner_deflection(elastic: Array, ratio: float, way: float, start: float = 0.0) -> Array:
    """How far a spring with hysteresis gives way (K,): δ + (h/K) z(δ) = `elastic`, which is τ/K; `ratio` is h/K, `start` z at first."""
    z, out = start, []
    delta = float(elastic[0]) - ratio * z
    for goal in elastic.tolist():
        rest = goal - delta - ratio * z  # a step of its sign, as the left side grows with δ
        side, step = float(np.sign(rest)), 0.0
        for _ in range(STEPS):
            left = (z - side) * float(np.exp(-abs(step) / way))
            change = (rest - step - ratio * (side + left - z)) / (1.0 - ratio * side * left / way)
            step += change
            if abs(change) <= SOLVED * way:
                break
        delta += step
        z = side + (z - side) * float(np.exp(-abs(step) / way)) if side else z
        out.append(delta)
    return np.array(out)


def with_hysteresis(machine: Machine, joint: str, force: float, way: float) -> Machine:
    """The machine whose flexible joint has this hysteresis, N·m or N, which builds up over `way`; none where it is zero."""
    new = replace(flexible_joints(machine)[joint], hysteresis=force, hysteresis_deflection=way)
    rotor = flexible_elements(joint, new)[2].parameter_name
    some = flexible_elements(joint, replace(new, hysteresis=1.0, hysteresis_deflection=1.0))[-1].parameter_name
    kept = [e for e in machine.elements if e.parameter_name != some]
    at = 1 + [e.parameter_name for e in kept].index(rotor)
    return replace(machine, elements=(*kept[:at], *flexible_elements(joint, new)[3:], *kept[at:]))
