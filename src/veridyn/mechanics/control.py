"""Control laws as forces for :func:`~veridyn.mechanics.integrate.integrate`: joints that follow a reference.

    Γ = Γ_ff(t) + K_p (q_r(t) − q) + K_d (q̇_r(t) − q̇)

The law is continuous in time, as a drive whose own loop is much faster than the motion. Γ_ff comes from a model along the
reference, so the law needs no model while it runs; a wrong model leaves a tracking error, which the feedback bounds.
Units: N*m or N for Γ, per rad or m for the gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault, Faults
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree

Array = NDArray[np.float64]


class Reference(Protocol):
    """A motion to follow: q, q̇ and q̈ at times of any shape (…,), each (…, n)."""

    def at(self, t: ArrayLike, /) -> tuple[Array, Array, Array]: ...


@dataclass(frozen=True, eq=False)
class FeedForward:
    """Forces (N, n) at the times start + k·step, linear in between, held before the first and after the last."""

    start: float
    step: float
    forces: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "forces", np.asarray(self.forces, dtype=np.float64))
        if self.forces.ndim != 2 or len(self.forces) < 2 or not self.step > 0.0 or not np.isfinite(self.forces).all():
            raise DataError(
                Fault(
                    "the table of forces is not usable.",
                    "feed-forward",
                    "at least two rows of finite forces (N, n), and a step above zero",
                    f"{self.forces.shape} and {self.step:g} s",
                )
            )

    def __call__(self, t: float) -> Array:
        last = len(self.forces) - 1
        place = min(max((t - self.start) / self.step, 0.0), float(last))
        k = min(int(place), last - 1)
        share = place - k
        return (1.0 - share) * self.forces[k] + share * self.forces[k + 1]


@dataclass(frozen=True, eq=False)
class Tracker:
    """The law above. `kp` and `kd` (n,), zero or more; usable as the forces of ``integrate``."""

    reference: Reference
    kp: Array
    kd: Array
    feedforward: FeedForward | None = None

    def __post_init__(self) -> None:
        faults = Faults()
        n = len(self.reference.at(0.0)[0])
        for name in ("kp", "kd"):
            gains = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, gains)
            if gains.shape != (n,) or not (np.isfinite(gains) & (gains >= 0.0)).all():
                faults.add(
                    "the gains are not usable.", where=name, expected=f"({n},), each zero or more", found=f"{gains}"
                )
        if self.feedforward is not None and self.feedforward.forces.shape[1] != n:
            faults.add(
                "it has another number of coordinates than the reference.",
                where="feed-forward",
                expected=f"{n}",
                found=f"{self.feedforward.forces.shape[1]}",
            )
        faults.raise_if_any(DataError, "tracking control")

    def __call__(self, t: float, q: Array, qd: Array) -> Array:
        wanted, speed, _ = self.reference.at(t)
        force = self.kp * (wanted - q) + self.kd * (speed - qd)
        return force if self.feedforward is None else force + self.feedforward(t)


def feedforward(model: Tree, reference: Reference, start: float, end: float, step: float = 1e-3) -> FeedForward:
    """Γ_ff = Γ(q_r, q̇_r, q̈_r) of a model on a fixed base, every `step` seconds from `start` to `end`.

    Dry friction switches with the sign of the reference's speed, within one step.
    """
    if not (step > 0.0 and end > start):
        raise DataError(
            Fault(
                "the times are not usable.", "feed-forward", "a step above zero and an end after the start", f"{step:g} s"
            )
        )
    t = start + step * np.arange(int(np.ceil((end - start) / step)) + 1)
    return FeedForward(start, step, inverse_dynamics(model, Motion(t, *reference.at(t)), "joints"))
