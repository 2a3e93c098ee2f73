"""Forces of two to four levels: rounded ones are named, and switched ones are not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from veridyn.identify.diagnosis.signatures import examine
from veridyn.identify.regression.sampling import Sampling

Array = NDArray[np.float64]
MASS, RUB = 2.0, 1.5  # kg, N*s/m
STEP = 0.01  # s
T = STEP * np.arange(2000)


def causes(q: Array, qd: Array, qdd: Array, force: Array) -> list[str]:
    """What is found on a slider with viscous friction and an offset, whose accelerations have some noise."""
    slider = vd.Machine.of_bodies(
        [vd.model.Body("1", joint="sliding")],
        gravity=(0.0, 0.0, 0.0),
        elements=[vd.elements.damper("q1"), vd.elements.offset("q1")],
    )
    noisy = qdd + 0.02 * np.random.default_rng(3).normal(size=len(T))
    motion = vd.Motion(T, q[:, None], qd[:, None], noisy[:, None], forces=force[:, None])
    fit = vd.identify(slider, motion, diagnose="off")
    return [group[0].kind for group in examine(fit, [motion], Sampling()).found]


def test_a_force_in_three_steps_is_named() -> None:
    """M q̈ + h q̇ of a sum of sines, rounded to multiples of half its range: an offset of q/√12 would move parameters by many deviations."""
    w, phase = 2.0 * np.pi * np.array([[0.15], [0.4], [0.7]]), np.array([[0.3], [1.1], [2.0]])
    q, qd, qdd = (
        (a * np.sin(w * T + phase + turn)).sum(axis=0)
        for a, turn in ((0.2, 0.0), (0.2 * w, np.pi / 2), (-0.2 * w**2, 0.0))
    )
    force = MASS * qdd + RUB * qd
    q_step = 0.5 * np.ptp(force)
    rounded = q_step * np.round(force / q_step)
    assert len(np.unique(rounded)) == 3
    assert causes(q, qd, qdd, rounded)[:1] == ["force in steps"]
    assert causes(q, qd, qdd, force + 0.05 * np.random.default_rng(4).normal(size=len(T))) == []


def test_a_force_that_is_switched_is_not() -> None:
    """Up, off and down at random: v follows u/h (1 − e^(−h t/M)) between switches, in closed form."""
    levels = np.repeat(np.random.default_rng(5).choice([-6.0, 0.0, 6.0], size=len(T) // 50), 50)
    decay, v, x = np.exp(-RUB * STEP / MASS), 0.0, 0.0
    q, qd, qdd = np.empty(len(T)), np.empty(len(T)), np.empty(len(T))
    for k, u in enumerate(levels):
        q[k], qd[k], qdd[k] = x, v, (u - RUB * v) / MASS
        x += u / RUB * STEP + (v - u / RUB) * (1.0 - decay) * MASS / RUB
        v = u / RUB + (v - u / RUB) * decay
    assert causes(q, qd, qdd, levels) == []
