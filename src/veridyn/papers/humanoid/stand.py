"""Motions that a standing humanoid can make without falling: candidates for the choice of an excitation.

Both feet on the ground: squats, sways, bends. On one foot: the other leg swings. Each is as large as the ground allows: the centre of
pressure of the drawing stays inside the soles by a margin, no foot pulls, and friction suffices. Amplitudes and frequencies are chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.machine import Machine
from veridyn.papers.humanoid.machine import (
    EDGE,
    FOOT,
    HIP,
    LEG,
    SIDES,
    SOLE,
    STANCE,
    STEP,
    GaitPlan,
    about,
    angles,
    centre_of_pressure,
    clock,
    lowest,
    pendulum,
    planned,
    smooth,
    standing,
)
from veridyn.progress import Progress, silent

MARGIN = 0.008  # m, of the centre of pressure inside the soles
FRICTION = 0.5


@dataclass(frozen=True)
class Candidate:
    """A motion by name, the feet it stands on, and what it does at full size (1.0)."""

    name: str
    stands_on: tuple[str, ...]
    make: Callable[[Machine, float], GaitPlan]


def standing_motions(model: Machine, duration: float = 6.0, progress: Progress = silent) -> dict[str, GaitPlan]:
    """The feasible motions, each as large as its feasibility allows, by halving from full size."""
    out: dict[str, GaitPlan] = {}
    ready = candidates(duration)
    for k, c in enumerate(ready):
        progress("standing motions", float(k), float(len(ready)))
        out[c.name] = largest(model, c)
    progress("standing motions", float(len(ready)), float(len(ready)))
    return out


def candidates(duration: float = 6.0) -> tuple[Candidate, ...]:
    """Six on both feet, and three for each leg on the other."""
    both: list[Candidate] = []
    for name, turn, shift in (
        ("squat", (0.0, 0.0, 0.0), (0.0, 0.0, 0.03)),
        ("sway forward and back", (0.0, 0.0, 0.0), (0.03, 0.0, 0.0)),
        ("sway to the sides", (0.0, 0.0, 0.0), (0.0, 0.04, 0.0)),
        ("bend to the sides", (0.4, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ("bow", (0.0, 0.4, 0.0), (0.0, 0.0, 0.0)),
        ("twist", (0.0, 0.0, 0.5), (0.0, 0.0, 0.0)),
    ):
        both.append(Candidate(name, SIDES, _on_both(name, np.array(turn), np.array(shift), duration)))
    for stance, free in (("left", "right"), ("right", "left")):
        for what, size in (
            ("hip", (0.5, 0.35, 0.6, 0.1, 0.1, 0.1)),
            ("knee", (0.1, 0.1, 0.2, 0.7, 0.2, 0.1)),
            ("foot", (0.2, 0.1, 0.2, 0.2, 0.7, 0.5)),
        ):
            name = f"{free} {what} free"
            both.append(Candidate(name, (stance,), _on_one(name, stance, free, np.array(size), duration)))
    return tuple(both)


def largest(model: Machine, c: Candidate, smallest: float = 0.05) -> GaitPlan:
    """The candidate at the largest of the sizes 1, 0.7, 0.49, … that the ground allows."""
    size = 1.0
    while size >= smallest:
        plan = c.make(model, size)
        if feasible(model, plan, c.stands_on):
            return plan
        size *= 0.7
    raise SimulationError(
        "no size of this motion keeps the robot on its feet.", where=c.name, found=f"sizes down to {smallest:g}"
    )


def feasible(model: Machine, plan: GaitPlan, stands_on: tuple[str, ...]) -> bool:
    """Whether the robot stays where its feet are: pressure inside the soles, no pull, no slip, and the free foot above the ground."""
    (back, front), (inner, outer) = FOOT
    sides = [HIP if s == "left" else -HIP for s in stands_on]
    cop = centre_of_pressure(model, plan)
    inside = (cop[:, 0] > back + MARGIN) & (cop[:, 0] < front - MARGIN)
    inside &= (cop[:, 1] > min(sides) + inner + MARGIN) & (cop[:, 1] < max(sides) + outer - MARGIN)
    wrench = inverse_dynamics(model, plan.motion(model), "base")
    force = np.einsum("nij,nj->ni", plan.pose.rotation, wrench[:, :3])
    grips = (force[:, 2] > 0.0) & (np.hypot(force[:, 0], force[:, 1]) < FRICTION * force[:, 2])
    corners = np.array([[x, y, -SOLE] for x in FOOT[0] for y in FOOT[1]])
    clear = all(h > 0.0 for s, h in lowest(model, plan, corners).items() if s not in stands_on)
    return bool(inside.all() and grips.all() and clear)


def _waves(t: Array, count: int, key: int) -> Array:
    """(N, count): unrelated waves of size 1, from and to rest."""
    rng = np.random.default_rng(key)  # a fixed choice of phases: the candidates are the same every time
    span = t[-1] - t[0]
    window = smooth(5.0 * (t - t[0]) / span) * smooth(5.0 * (t[-1] - t) / span)
    frequency = rng.uniform(0.3, 1.6, (3, count))
    phase = rng.uniform(0.0, 2.0 * np.pi, (3, count))
    wave = np.sin(2.0 * np.pi * frequency[:, None] * t[:, None] + phase[:, None]).sum(axis=0)
    return window[:, None] * wave / np.abs(wave).max(axis=0)


def _clock(duration: float) -> Array:
    return clock(round(duration / STEP) + 2 * EDGE)


def _on_both(name: str, turn: Array, shift: Array, duration: float) -> Callable[[Machine, float], GaitPlan]:
    def make(model: Machine, size: float) -> GaitPlan:
        t = _clock(duration)
        w = size * _waves(t, 6, len(name))
        R = about(2, w[:, 2] * turn[2]) @ about(1, w[:, 1] * turn[1]) @ about(0, w[:, 0] * turn[0])
        p = np.array([0.0, 0.0, STANCE - 0.03]) + w[:, 3:] * shift
        feet = {s: standing(len(t), s) for s in SIDES}
        plan = planned(name, t, R, p.copy(), angles(model, R, p, feet))
        p[:, :2] += _middle(SIDES) - centre_of_pressure(model, plan).mean(axis=0)
        return planned(name, t, R, p, angles(model, R, p, feet))

    return make


def _on_one(name: str, stance: str, free: str, size_of: Array, duration: float) -> Callable[[Machine, float], GaitPlan]:
    home = np.array([0.0, 0.0, -0.85, 1.7, -0.85, 0.0])  # the free foot some 5 cm above the ground

    def make(model: Machine, size: float) -> GaitPlan:
        t = _clock(duration)
        w = size * _waves(t, 9, len(name) + (7 if free == "left" else 0))
        R = about(2, 0.10 * w[:, 8]) @ about(1, 0.08 * w[:, 7]) @ about(0, 0.06 * w[:, 6])
        p = np.tile([0.0, _side(stance), STANCE - 0.01], (len(t), 1))
        swinging = [model.coordinates.index(f"{free}_{part}") for part in LEG]
        foot = {stance: standing(len(t), stance)}
        plan = None
        for _ in range(4):  # the torso moves so that the pressure stays under the middle of the foot
            q = angles(model, R, p, foot)
            q[:, swinging] = home + w[:, :6] * size_of
            plan = planned(name, t, R, p.copy(), q)
            off = _middle((stance,)) - centre_of_pressure(model, plan)
            p[:, :2] += pendulum(np.pad(off, ((EDGE, EDGE), (0, 0)), mode="edge"), STANCE)
        assert plan is not None
        return plan

    return make


def _side(s: str) -> float:
    return HIP if s == "left" else -HIP


def _middle(stands_on: tuple[str, ...]) -> Array:
    (back, front), (inner, outer) = FOOT
    return np.array([(back + front) / 2, (inner + outer) / 2 + np.mean([_side(s) for s in stands_on])])
