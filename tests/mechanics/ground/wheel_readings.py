"""The tyres of a machine along a motion, evaluated by the equations of the machine itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.ground.tyres import tyre_of
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.recursion.inputs import state_of
from veridyn.mechanics.tree.recursion.newton_euler import outward
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.algebra import ARRAYS, Scalar

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class WheelReadings:
    """One tyre along N samples, axes those of its contact: x forward in the wheel's plane, y left, z the road's normal.

    `load`, `fx`, `fy` (N) act on the wheel; `moment` (N*m) is that of rolling resistance about its axis; `deflection` and `loaded_radius`
    (m); `kappa` and `alpha` are the lagging slips that make the force; `vx` and `vy` (m/s) are speeds of the contact, `spin` (rad/s) the
    rate about the axis, `rolling_radius` (m) the effective one; `centre` (N, 3) is the wheel's in the ground's frame.
    """

    load: Array
    fx: Array
    fy: Array
    moment: Array
    deflection: Array
    loaded_radius: Array
    rolling_radius: Array
    kappa: Array
    alpha: Array
    vx: Array
    vy: Array
    spin: Array
    centre: Array


@takes_machine
def wheel_readings(machine: Machine | Tree, motion: Motion) -> dict[str, WheelReadings]:
    """The tyres of a machine along a motion, by the names of their parameters; a trajectory's motion has all that is needed.

    Parameters
    ----------
    motion : with the states of the tyres among its signals and, of a free base, velocity, position and quaternion.

    Returns
    -------
    dict : "tyre_wheel" → :class:`WheelReadings`, in the order of the elements.
    """
    tree = tree_of(machine)
    tree.check_motion(motion)
    state = state_of(tree, motion)
    o = outward(tree, state, ARRAYS, velocity=True)
    N = len(motion)

    def line(x: Scalar) -> Array:
        return np.broadcast_to(np.asarray(x, dtype=np.float64), (N,)).copy()

    found: dict[str, WheelReadings] = {}
    for e, scale in ((e, tree.parameters[e.parameter_name]) for e in tree.wheels):
        t = tyre_of(tree, e, state, o, motion.signals, ARRAYS)
        c, (fx, fy), (kappa, side) = t.contact, t.forces, t.slips
        found[e.parameter_name] = WheelReadings(
            load=line(scale * t.load),
            fx=line(scale * fx),
            fy=line(scale * fy),
            moment=line(scale * t.rolling_moment),
            deflection=line(c.deflection),
            loaded_radius=line(c.loaded),
            rolling_radius=line(t.effective_radius),
            kappa=line(kappa),
            alpha=np.arctan(line(side)),
            vx=line(c.vx),
            vy=line(c.vy),
            spin=line(c.spin),
            centre=np.stack([line(x) for x in t.wheel.pose[1]], axis=-1),
        )
    return found
