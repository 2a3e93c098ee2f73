"""What a machine is made to do: a manoeuvre turns a machine into a motion, with everything known exactly.

Forward dynamics only: the forces come from a law, the motion from integrating the machine's own equations, so nothing of
the motion is assumed. Dry friction is rounded off below ``Method.friction_speed``, see
:class:`~veridyn.mechanics.integrate.Method`: a machine simulated so creeps where a real one sticks, and at low speed its
friction is not yet sign(v). An identification leaves out speeds below some twenty times that (``Sampling.dead_zone``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault, Faults
from veridyn.mechanics.control import Reference, Tracker, feedforward
from veridyn.mechanics.integrate import BaseState, Inputs, Method, Trajectory, integrate
from veridyn.model.tree import Tree
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]

STIFF = Method("LSODA", rtol=1e-6, atol=1e-7, friction_speed=0.02)  # dry friction that turns round is stiff
SMOOTH = Method(friction_speed=0.02)


class Manoeuvre(Protocol):
    """Anything that makes a machine move."""

    def run(self, machine: Tree, progress: Progress = silent, /) -> Trajectory: ...


@dataclass(frozen=True, eq=False)
class Tracking:
    """Joints follow `reference` for `duration` seconds, sampled at `rate` Hz, from its own state at t = 0.

    `kp` and `kd` (n,) are the feedback's gains. `feedforward` is the model that the controller believes in, right or wrong;
    without one the feedback carries everything, gravity too. `method` integrates.
    """

    reference: Reference
    duration: float
    rate: float
    kp: ArrayLike
    kd: ArrayLike
    feedforward: Tree | None = None
    method: Method = STIFF

    def run(self, machine: Tree, progress: Progress = silent, /) -> Trajectory:
        q, qd, _ = self.reference.at(0.0)
        faults = Faults()
        if machine.base == "free":
            faults.add("tracking needs a base that is held.", where=machine.name, found="a free base")
        if len(q) != machine.n:
            faults.add(
                "the reference is not one of this machine.",
                where=machine.name,
                expected=f"{machine.n} coordinates",
                found=f"{len(q)}",
            )
        passive = [c for c, on in zip(machine.coordinates, machine.actuated, strict=True) if not on]
        if passive:
            faults.add(
                "a passive joint cannot be made to follow.",
                where=machine.name,
                found=", ".join(passive),
                hint="Use Driven with forces of your own.",
            )
        faults.raise_if_any(DataError)
        t = clock(self.duration, self.rate)
        believed = None
        if self.feedforward is not None:
            soft = self.method.friction_speed
            believed = feedforward(self.feedforward, self.reference, 0.0, self.duration, friction_speed=soft)
        law = Tracker(self.reference, np.asarray(self.kp), np.asarray(self.kd), believed)
        return integrate(machine, t, q, qd, law, method=self.method, progress=progress)


@dataclass(frozen=True, eq=False)
class Driven:
    """A machine released at (q, q̇), and its base at `base` where that is free, under `inputs` for `duration` seconds."""

    duration: float
    rate: float
    q: ArrayLike
    qd: ArrayLike
    inputs: Inputs | None = None
    base: BaseState | None = None
    method: Method = SMOOTH

    def run(self, machine: Tree, progress: Progress = silent, /) -> Trajectory:
        return integrate(
            machine,
            clock(self.duration, self.rate),
            self.q,
            self.qd,
            self.inputs,
            base=self.base,
            method=self.method,
            progress=progress,
        )


def clock(duration: float, rate: float) -> Array:
    """Times 0, 1/rate, … up to `duration`."""
    if not (rate > 0.0 and np.isfinite(rate) and np.isfinite(duration) and duration * rate >= 1.0):
        raise DataError(
            Fault(
                "there is nothing to sample.",
                "manoeuvre",
                "a positive rate, and a duration of at least one step",
                f"{duration:g} s at {rate:g} Hz",
            )
        )
    return np.arange(int(np.floor(duration * rate + 1e-9)) + 1) / rate
