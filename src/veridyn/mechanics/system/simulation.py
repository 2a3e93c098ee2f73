"""What a simulation is given and what it gives: inputs, the state of a free base, a method, and a trajectory."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, SimulationError
from veridyn.mechanics.ground.road import Road
from veridyn.model.motion import Motion

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

SAME_INSTANT_S = 1e-10  # instants closer than this are one: rounding of k/rate and of delays, far below any period
Forces = Callable[[float, Array, Array], ArrayLike]


@dataclass(frozen=True)
class BaseState:
    """Where a free base is and how it moves: position and velocity in the ground's frame, ω in the base's own."""

    position: ArrayLike = (0.0, 0.0, 0.0)
    quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0)
    velocity: ArrayLike = (0.0, 0.0, 0.0)
    omega: ArrayLike = (0.0, 0.0, 0.0)


class SampledLaw(Protocol):
    """A law that acts at instants of its own: the motion is integrated from one to the next, and it is told the state at each."""

    def instants(self, start: float, end: float, /) -> list[float]:
        """The times from start to end, the first at the start, in order; a run begins anew with them."""
        ...

    def reach(self, time: float, q: Array, qd: Array, states: Mapping[str, float], /) -> None:
        """The machine has reached the next of the instants; what the law now holds acts until the one after it."""
        ...


@dataclass(frozen=True)
class Inputs:
    """What acts from outside, each a function of time, q and q̇: forces (n,) on the coordinates, wrenches by body, signals by name.

    `prescribed`: a function of time → name → (q, q̇, q̈) of every prescribed coordinate of the machine. `loads`: a function of time →
    name → value of the machine's loads; what it does not name keeps the value of the model. A drive is the actuator of its coordinate:
    where `forces` are given, they are what the drives do. `contacts`: a function of time, the base's state, q and q̇ → wrenches by body,
    such as those of the ground on a machine whose base is free; they add to `wrenches`. `road`: what tyres roll on, above the height that
    they have as a constant; a wheel meets the plane that touches the road below its centre.
    `sampled`: a law whose forces and signals, given as those above, change at its own instants only (machines in joint coordinates).
    """

    forces: Forces | None = None
    wrenches: Callable[[float, Array, Array], Mapping[str, ArrayLike]] | None = None
    signals: Callable[[float, Array, Array], Mapping[str, float]] | None = None
    prescribed: Callable[[float], Mapping[str, tuple[float, float, float]]] | None = None
    loads: Callable[[float], Mapping[str, ArrayLike]] | None = None
    contacts: Callable[[float, BaseState, Array, Array], Mapping[str, ArrayLike]] | None = None
    road: Road | None = None
    sampled: SampledLaw | None = None


@dataclass(frozen=True)
class Method:
    """How to integrate: "RK4" with `step`, or one of SciPy's methods, where `step` is the longest step allowed.

    `friction_speed`: dry friction is a jump at standstill, which no integrator of fixed order follows; where given, sign(v) becomes
    v/(v⁸ + friction_speed⁸)^⅛, and the difference from the jump is the simulator's, not the model's: what should hold creeps.
    With 0, the default, RK4 steps with friction that holds, without creeping, as long as it can
    (:mod:`veridyn.mechanics.system.dry_friction`); SciPy's methods take sign(v) as it is, which stalls them at standstill.
    """

    name: str = "DOP853"
    step: float = math.inf
    rtol: float = 1e-9
    atol: float = 1e-10
    friction_speed: float = 0.0


@dataclass(frozen=True)
class Trajectory:
    """A simulated motion, with the pose of a free base in the ground's frame.

    `states`: those that elements have of their own, (N,) by name ("fl_q1.z"); they are among the signals of the motion too.
    `loads`: forces and torques that acted at places and on bodies, (N, 3) by name; drives are among the forces of the motion.
    `commands`: what controllers were asked for, (N,) by coordinate. `stepped_by_python`: why steps of RK4 were not made in machine code,
    which is quicker; nothing where they were, or where an integrator chose its steps.
    """

    motion: Motion
    base_position: Array | None = None
    base_rotation: Array | None = None
    states: Mapping[str, Array] = field(default_factory=dict)
    loads: Mapping[str, Array] = field(default_factory=dict)
    commands: Mapping[str, Array] = field(default_factory=dict)
    stepped_by_python: str = ""


def checked_forces(forces: Forces, t: float, q: Array, qd: Array, coordinates: Sequence[str]) -> Array:
    """(n,): given forces at a time, refused by name where one is no number; what the function raises has a note of the time."""
    try:
        found = np.array(forces(t, q, qd), dtype=np.float64)
    except Exception as error:
        error.add_note(f"in the control law, at {t:.6g} s")
        raise
    if found.shape != (len(coordinates),):
        what = f"there is one force for each coordinate, and not at {t:.6g} s."
        raise SimulationError(what, where="control law", expected=f"({len(coordinates)},)", found=f"{found.shape}")
    if not math.isfinite(sum(found.tolist())) and not np.isfinite(found).all():
        odd = int(np.flatnonzero(~np.isfinite(found))[0])
        what = f"the force on '{coordinates[odd]}' is {found[odd]:g} at {t:.6g} s."
        raise SimulationError(what, where="control law", expected="a finite number")
    return found


def odd_signal(name: str, value: float, t: float) -> SimulationError:
    """What is raised where a given signal is no number."""
    what = f"the signal '{name}' is {value:g} at {t:.6g} s."
    return SimulationError(what, where="Inputs.signals", expected="a finite number")


def clock(duration: float, rate: float) -> Array:
    """Times 0, 1/rate, … up to `duration`."""
    if not (rate > 0.0 and np.isfinite(rate) and np.isfinite(duration) and duration * rate >= 1.0):
        raise DataError(
            "there is nothing to sample.",
            where="manoeuvre",
            expected="a positive rate, and a duration of at least one step",
            found=f"{duration:g} s at {rate:g} Hz",
        )
    return np.arange(int(np.floor(duration * rate + 1e-9)) + 1) / rate


def spline_at(spline: PPoly) -> Callable[[float], Array]:
    """The values of a cubic spline as a function of one time, equal to the spline's own to rounding, in a tenth of its time.

    Beyond the ends the first and the last cubic go on, as the spline's own do.
    """
    knots, c = spline.x.tolist(), np.ascontiguousarray(np.moveaxis(spline.c, 1, 0))

    def at(time: float) -> Array:
        k = min(max(bisect_right(knots, time) - 1, 0), len(c) - 1)
        h, (a, b, slope, value) = time - knots[k], c[k]
        return ((a * h + b) * h + slope) * h + value

    return at
