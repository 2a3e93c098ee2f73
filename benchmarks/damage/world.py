"""A machine of :mod:`benchmarks.foreign.machines` along a motion, and the log that it leaves. Nothing of veridyn is in its torques.

With motors θ = G q, motor angles in units of their joints φ = A q and rigid torques τ at the joints (Pinocchio), a motor has to give

    τ_m = G⁻ᵀ (τ + Aᵀ f),   f = Ia φ̈ + h φ̇ + fs sign(φ̇)

and l = A⁻ᵀ τ is the load of each gear in the units of its joint. Kinds of structure (:mod:`benchmarks.damage.structure`) change τ, f or φ.
Logs have encoders of 16 bits a turn and torque sensors with first-order noise n_k = a n_(k−1) + e_k.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import veridyn as vd
from benchmarks.calibration_foreign import QUANTUM, RATE, SPREAD, Path, first_order, path_of
from benchmarks.damage.kinds import Table
from benchmarks.damage.seven import SEVEN
from benchmarks.damage.wrist import WRIST
from benchmarks.foreign.machines import LAWS, SUBJECTS, Subject, drawn
from benchmarks.foreign.motions import FOURIER

Array = NDArray[np.float64]
MEMORY = 0.9  # of the torque noise: coloured as that of current controllers is, over some 20 samples
SECONDS = 20.0
FREQUENCIES = (0.1, 1.2)  # Hz, of the motion
MACHINES = {**SUBJECTS, "wrist": WRIST, "seven": SEVEN}
WHITE = ("seven",)  # machines whose torque noise has no memory, as that of joint torque sensors


@dataclass(frozen=True, eq=False)
class World:
    """`values`: true parameters by name; `t` (N,); `noise` (N, n) of the torque sensors, at the motors where there are gears."""

    subject: Subject
    values: Mapping[str, float]
    along: Path
    t: Array
    noise: Array

    @cached_property
    def states(self) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ (N, n) of the joints."""
        return self.along.at(self.t)

    @cached_property
    def speeds(self) -> Array:
        """φ̇ (N, n)."""
        return np.asarray(self.states[1] @ self.subject.combined.T, dtype=np.float64)

    @cached_property
    def accelerations(self) -> Array:
        """φ̈ (N, n)."""
        return np.asarray(self.states[2] @ self.subject.combined.T, dtype=np.float64)

    @cached_property
    def model(self) -> pin.Model:
        return self.subject.pin_model(self.values)

    @cached_property
    def rigid(self) -> Array:
        """τ (N, n)."""
        return rigid_torques(self.model, *self.states)

    def law(self, word: str) -> Array:
        """The values (n,) of a law: "Ia", "h" or "fs"."""
        return np.array([self.values[name] for name in self.subject.names[word]])

    def load(self, rigid: Array | None = None) -> Array:
        """l (N, n)."""
        tau = self.rigid if rigid is None else rigid
        return np.asarray(np.linalg.solve(self.subject.combined.T, tau.T).T, dtype=np.float64)

    @property
    def friction(self) -> Array:
        """h φ̇ + fs sign(φ̇) (N, n)."""
        return self.law("h") * self.speeds + self.law("fs") * np.sign(self.speeds)

    def log(
        self,
        *,
        rigid: Array | None = None,
        added: Array | float = 0.0,
        twist: Array | float = 0.0,
        quiet: bool = False,
    ) -> Table:
        """The log with other rigid torques, more torque at the motors, and φ + `twist` where encoders read φ; without noise if `quiet`."""
        subject, tau = self.subject, self.rigid if rigid is None else rigid
        at_motors = self.law("Ia") * self.accelerations + self.friction + added
        torque = np.linalg.solve(subject.gears.T, (tau + at_motors @ subject.combined).T).T
        ratios = np.ones(len(subject.joints)) if subject.ratios is None else subject.ratios
        angles = ratios * (self.states[0] @ subject.combined.T + twist)
        if not quiet:
            torque = torque + self.noise
            angles = QUANTUM * np.round(angles / QUANTUM)
        word, place = ("", "q") if subject.ratios is None else ("_motor", "m")
        numbers = range(1, len(subject.joints) + 1)
        table = {"t": self.t - self.t[0]}
        table |= {f"q{word}.{place}{k}": angles[:, k - 1] for k in numbers}
        return table | {f"force{word}.{place}{k}": torque[:, k - 1] for k in numbers}

    def places(self, k: int) -> tuple[str, ...]:
        """What the k-th joint may be called: its coordinate, and its motor where there are gears."""
        return (f"q{k + 1}",) if self.subject.ratios is None else (f"q{k + 1}", f"m{k + 1}")

    def with_values(self, values: Mapping[str, float]) -> World:
        """The same motion and noise with other parameters."""
        return replace(self, values={**self.values, **values})


def rigid_torques(model: pin.Model, q: Array, qd: Array, qdd: Array) -> Array:
    """τ (N, n) of a model of Pinocchio."""
    data = model.createData()
    return np.array([pin.rnea(model, data, *state) for state in zip(q, qd, qdd, strict=True)]).reshape(q.shape)


@cache
def machine_of(subject: str) -> vd.Machine:
    """The machine that the model file describes: what an estimator is given."""
    return vd.load_model(MACHINES[subject].file)


def world(subject: str, seed: int, seconds: float = SECONDS, motion: str = FOURIER) -> World:
    """A machine drawn about its file, its motion of this kind and its noise, all of one seed."""
    own, rng = MACHINES[subject], np.random.default_rng([seed, 35])
    p = machine_of(subject).parameters
    values = drawn(own, dict(zip(p.names, p.values.tolist(), strict=True)), SPREAD, rng)
    along = path_of(motion, rng, own.reach, FREQUENCIES, seconds)
    t = np.arange(round(seconds * RATE)) / RATE
    return World(own, values, along, t, first_order(rng, len(t), own.noise, 0.0 if subject in WHITE else MEMORY))


def without_laws(
    machine: vd.Machine, names: Mapping[str, tuple[str, ...]], law: str, joints: tuple[int, ...]
) -> vd.Machine:
    """The machine without the elements of a law, one of `LAWS`, at some joints."""
    assert law in LAWS
    return machine.without_elements([names[law][k] for k in joints])
