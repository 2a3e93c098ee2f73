"""What a machine is made to do: a manoeuvre turns a machine into a motion, with everything known exactly.

:class:`Tracking` and :class:`Driven` are forward dynamics: the forces come from a law, the motion from integrating the machine's own
equations, so nothing of the motion is assumed. Dry friction is rounded off below ``Method.friction_speed``, see
:class:`~veridyn.mechanics.system.integrate.Method`: a machine simulated so creeps where a real one sticks, and at low speed its
friction is not yet sign(v). An identification leaves out speeds below some twenty times that (``Sampling.dead_zone``).
:class:`Prescribed` is inverse dynamics: the motion is as prescribed, and the forces are those it takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Faults
from veridyn.mechanics.formulated import formulated
from veridyn.mechanics.system.control import Reference, Tracker, feedforward
from veridyn.mechanics.system.simulation import BaseState, Inputs, Method, Trajectory, clock
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]

STIFF = Method("LSODA", rtol=1e-6, atol=1e-7, friction_speed=0.02)  # dry friction that turns round is stiff
SMOOTH = Method(friction_speed=0.02)


class Manoeuvre(Protocol):
    """Anything that makes a machine move."""

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory: ...


@dataclass(frozen=True, eq=False)
class Tracking:
    """Joints follow `reference` for `duration` seconds, sampled at `rate` Hz, from its own state at t = 0.

    `kp` and `kd` (n,) are the feedback's gains. `feedforward` is the controller's model, right or wrong;
    without one the feedback carries everything, gravity too. `method` integrates. Of a machine with loops, reference and gains are those
    of its independent coordinates. `inputs`: wrenches and signals that act besides.
    """

    reference: Reference
    duration: float
    rate: float
    kp: ArrayLike
    kd: ArrayLike
    feedforward: Machine | None = None
    method: Method = STIFF
    inputs: Inputs | None = None

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory:
        q, qd, qdd = self.reference.at(0.0)
        check_led(machine, len(q), "Use Driven with forces of your own.")
        own = list(machine.independent)
        t = clock(self.duration, self.rate)
        ahead = None
        if self.feedforward is not None:
            soft = self.method.friction_speed
            ahead = feedforward(self.feedforward, self.reference, 0.0, self.duration, friction_speed=soft)
        law = Tracker(self.reference, np.asarray(self.kp), np.asarray(self.kd), ahead)

        def forces(time: float, q: Array, qd: Array) -> Array:
            out = np.zeros(machine.n)
            out[own] = law(time, q[own], qd[own])
            return out

        if machine.closed:
            first = closed_motion(machine, [0.0], q[None], qd[None], qdd[None])
            q, qd = first.q[0], first.qd[0]
        acting = replace(self.inputs or Inputs(), forces=forces)
        return formulated(machine).integrated(t, q, qd, acting, method=self.method, progress=progress)


@dataclass(frozen=True, eq=False)
class Prescribed:
    """Joints move exactly as `reference` says, for `duration` seconds, sampled at `rate` Hz; the forces are those that takes.

    Dry friction is sign(v) in full, at any speed. Of a machine with loops, the reference is that of its independent coordinates.
    `inputs`: wrenches and signals that act besides, as functions of time.
    """

    reference: Reference
    duration: float
    rate: float
    inputs: Inputs | None = None

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory:
        t = clock(self.duration, self.rate)
        q, qd, qdd = self.reference.at(t)
        check_led(machine, q.shape[1], "Drive the others, and let it move as it will.")
        motion = closed_motion(machine, t, q, qd, qdd) if machine.closed else Motion(t, q, qd, qdd)
        acting = self.inputs or Inputs()
        wrenches, signals = {}, {}
        if acting.wrenches is not None:
            at = [acting.wrenches(*x) for x in zip(t.tolist(), motion.q, motion.qd)]
            wrenches = {body: np.array([w[body] for w in at]) for body in at[0]}
        if acting.signals is not None:
            read = [acting.signals(*x) for x in zip(t.tolist(), motion.q, motion.qd)]
            signals = {name: np.array([s[name] for s in read]) for name in read[0]}
        motion = replace(motion, wrenches=wrenches, signals=signals)
        forces = np.full((len(t), machine.n), np.nan)
        forces[:, list(machine.independent)] = inverse_dynamics(machine, motion, "joints")
        progress("simulating", 1.0, 1.0)
        return Trajectory(replace(motion, forces=forces))


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

    def run(self, machine: Machine, progress: Progress = silent, /) -> Trajectory:
        t = clock(self.duration, self.rate)
        given = {"base": self.base, "method": self.method, "progress": progress}
        return formulated(machine).integrated(t, self.q, self.qd, self.inputs, **given)


def check_led(machine: Machine, given: int, hint: str) -> None:
    """Refuse a machine that cannot be led along a motion of so many coordinates."""
    faults = Faults()
    if machine.base == "free":
        faults.add("tracking needs a base that is held.", where=machine.name, found="a free base")
    if given != len(machine.independent):
        faults.add(
            "the reference is not one of this machine.",
            where=machine.name,
            expected=f"{len(machine.independent)} coordinates",
            found=f"{given}",
        )
    passive = [machine.coordinates[k] for k in machine.independent if not machine.actuated[k]]
    if passive:
        faults.add("a passive joint cannot be made to follow.", where=machine.name, found=", ".join(passive), hint=hint)
    faults.raise_if_any(DataError)
