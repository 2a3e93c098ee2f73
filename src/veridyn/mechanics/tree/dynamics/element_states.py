"""The states that elements have of their own, along a measured motion.

Their rates depend on positions and rates of the machine and on measured signals, not on forces, so they can be integrated along a motion:
between samples positions and rates are cubic, signals linear. Stiff laws are no obstacle; the start decays, or is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from veridyn.errors import SimulationError
from veridyn.mechanics.system.integration_check import inner_start
from veridyn.mechanics.system.spline import spline_at
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.dynamics.instant import StateAccelerations
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]


def element_states(
    machine: Machine | Tree,
    motion: Motion,
    start: Mapping[str, float] | None = None,
    *,
    rtol: float = 1e-8,
    engine: Engine = "compiled",
) -> Motion:
    """The motion with the states of elements among its signals, so that inverse dynamics and regressors can be computed.

    `start`: the states at the first sample by name ("fl_q1.z"), zero where not given. Errors of the measured rates enter the states.
    """
    tree = tree_of(machine)
    y0 = inner_start(tree, start or {})
    names = [s.name for s in tree.states]
    if not names:
        return motion
    heard = [name for name in tree.signals if name in motion.signals and name not in names]
    missing = {name: np.zeros(len(motion)) for name in names}
    tree.check_motion(replace(motion, signals={**motion.signals, **missing}))
    both, slopes = (np.concatenate(parts, axis=1) for parts in ((motion.q, motion.qd), (motion.qd, motion.qdd)))
    path, n = spline_at(CubicHermiteSpline(motion.t, both, slopes)), tree.n
    base = _base_path(motion) if tree.wheels else None
    instant = StateAccelerations(tree, np.zeros(len(tree.parameters)), engine=engine)

    def rate(time: float, s: Array) -> Array:
        signals = {name: float(np.interp(time, motion.t, motion.signals[name])) for name in heard}
        every = {**signals, **dict(zip(names, s.tolist(), strict=True))}
        here = path(time)
        if base is None:
            return instant.state_rates(here[:n], here[n:], every)
        at = base(time)
        return instant.state_rates(here[:n], here[n:], every, at[:3], at[3:6], at[6:])

    found = solve_ivp(rate, (motion.t[0], motion.t[-1]), y0, "LSODA", motion.t, rtol=rtol, atol=1e-4 * rtol)
    if not found.success:
        raise SimulationError(
            f"the states of elements could not be followed: {found.message}", where=f"{tree.name}, {', '.join(names)}"
        )
    return replace(motion, signals={**motion.signals, **dict(zip(names, found.y, strict=True))})


def _base_path(motion: Motion) -> Callable[[float], Array] | None:
    """ω, velocity, position and quaternion of a free base as a function of time, (13,); the quaternion without jumps of its sign."""
    b = motion.base
    if b is None:
        return None
    assert b.velocity is not None and b.position is not None and b.quaternion is not None  # check_motion looked
    turned = np.sign(np.einsum("ni,ni->n", b.quaternion[1:], b.quaternion[:-1]))
    e = b.quaternion * np.cumprod(np.concatenate([[1.0], turned]))[:, None]
    return spline_at(CubicSpline(motion.t, np.concatenate([b.omega, b.velocity, b.position, e], axis=1)))
