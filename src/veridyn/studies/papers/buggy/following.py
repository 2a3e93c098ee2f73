"""Correction by forces alone (paper 003, Fig. 33): the model is never moved by hand, what the filter finds becomes forces on it.

The filter estimates errors of place e, of velocity ė and of force of the model that runs beside it. None of the first two is added to the
model's state, which would be a jump; they become forces by inverse dynamics (125, 126), under which they die out like a damped spring:

    Q = û + (∂z̈/∂u)⁻¹ (2 ė/T + e/T²)

on the coordinates that have an unknown force; the others are left to the model. Setting the rows of the gain that belong to places and
velocities to zero instead is no observer: a force that is integrated from errors of place and velocity, u̇ = −k₁ e − k₂ ė with ë = u,
has s³ + k₂ s + k₁ = 0, which is never stable.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.observe.machine import MachineSystem
from veridyn.observe.observation import Observation
from veridyn.observe.result import Estimates

Array = NDArray[np.float64]
EVERY = 5  # steps from one ∂z̈/∂u to the next


def follow_by_forces(found: Observation, seconds: float) -> Observation:
    """The motion of a model that is driven after an observation with estimated forces, T `seconds` behind it; deviations are the filter's.

    Causal: the forces of a step come from the estimate before it.
    """
    system, track = found.system, found.track
    assert isinstance(track, Estimates)  # a filter that ran forward on a tree
    return replace(found, track=replace(track, x=followed(system, track.t, track.x, found.inputs, seconds)))


def followed(system: MachineSystem, t: Array, x: Array, inputs: Array, seconds: float) -> Array:
    """States (N, n) of the model that is driven after the estimates x (N, n) at times t (N,) under `inputs` (N, p)."""
    model, k = system.model, len(system.model.unknown)
    f, pushed = model.f, [model.names.index(name) for name in model.unknown]
    q, qd, u, b = system.split(x)
    at, rate, own = q[0], qd[0], u[0].copy()
    rows, to_force = [x[0]], np.zeros((k, k))
    for i in range(len(t) - 1):
        loads = system.acting(inputs[i])
        if i % EVERY == 0:
            push = model.accelerated(model.instant(at, rate, own, loads))[pushed, 2 * f : 2 * f + k]
            to_force = np.linalg.inv(push)
        e = model.difference(q[i], qd[i], at, rate)
        wanted = 2.0 * e[f:][pushed] / seconds + e[:f][pushed] / seconds**2
        own[:k] = u[i, :k] + to_force @ wanted
        moved = model.advanced(at, rate, own, float(t[i + 1] - t[i]), loads, False, 0.0, 0)
        at, rate, own = moved.found.q, moved.found.qd, moved.u
        rows.append(system.join(at, rate, own, b[i + 1]))
    return np.array(rows)
