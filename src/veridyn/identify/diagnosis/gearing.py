"""Gears and couplings between motors and joints that may be otherwise: a wrong sign, and a coupling that is missing.

Motors are measured, and q = T q_m, Γ = T⁻ᵀ Γ_m. With another matrix T' the same log says q' = S q and Γ' = S⁻ᵀ Γ, with S = T' T⁻¹, so a
wrong entry can be asked about on the side of the joints. A shaft that turns joint i through joint j adds what motor j turns
joint j by, to one side or the other: T'_ij = ±T_jj. Without a transmission in the model joints are taken for motors, T = 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.model.machine import Machine

Array = NDArray[np.float64]
COUPLED = 2  # joints farther along the arm that a shaft still reaches: those of a wrist
LOOK = "Look at the transmission of the model: signs of its gears, and entries beside the diagonal."
SIGN, MISSING = "gear sign", "coupling missing"


@dataclass(frozen=True, eq=False)
class Gearing:
    """One other transmission: `change` S (n, n) takes coordinates to those it would give, `forces` S⁻ᵀ forces."""

    kind: str
    where: str
    what: str
    change: Array

    @property
    def forces(self) -> Array:
        """S⁻ᵀ."""
        return np.asarray(np.linalg.inv(self.change).T, dtype=np.float64)


def other_gearings(machine: Machine, joints: tuple[str, ...]) -> Iterator[Gearing]:
    """All single entries of the transmission of another sign, all motors that count the other way, and couplings that may be missing.

    `joints`: those whose position and force are both measured; of a machine without a transmission only these are asked about.
    """
    own = machine.transmission
    names = joints if own is None else own.joints
    T = np.eye(len(names)) if own is None else own.matrix
    motors = names if own is None else own.motors
    place = [machine.coordinates.index(c) for c in names]
    inverse = np.linalg.inv(T)

    def gearing(kind: str, where: str, what: str, other: Array) -> Iterator[Gearing]:
        if np.linalg.matrix_rank(other) == len(names):
            S = np.eye(machine.n)
            S[np.ix_(place, place)] = other @ inverse
            yield Gearing(kind, where, what, S)

    if own is not None:
        beside = np.count_nonzero(T, axis=0) > 1
        for i, j in zip(*np.nonzero(T), strict=True):
            # the sign of a joint's only entry is that of the joint, and of a motor's only entry that of its column: asked elsewhere
            if np.count_nonzero(T[i]) > 1 or beside[j]:
                other = T.copy()
                other[i, j] = -T[i, j]
                where = f"transmission, joint '{names[i]}', motor '{motors[j]}'"
                yield from gearing(SIGN, where, "the sign of this gear or coupling seems to be wrong.", other)
        for j in np.flatnonzero(beside):
            other = T.copy()
            other[:, j] = -T[:, j]
            what = "the motor seems to count the other way than the transmission says."
            yield from gearing(SIGN, f"transmission, motor '{motors[j]}'", what, other)
    yield from _missing(machine, names, motors, T, gearing)


def _missing(machine: Machine, names: tuple[str, ...], motors: tuple[str, ...], T: Array, gearing) -> Iterator[Gearing]:  # pyright: ignore[reportMissingParameterType]
    kinds = dict(zip(machine.coordinates, machine.coordinate_kinds, strict=True))
    pairs = [
        (i, j)
        for i in range(len(names))
        for j in range(max(0, i - COUPLED), i)
        if T[i, j] == 0.0 and T[j, j] != 0.0 and kinds[names[i]] == kinds[names[j]] == "turning"
    ]
    chains = [[(i, j)] for i, j in pairs]
    chains += [[a, b] for a in pairs for b in pairs if a[0] == a[1] + 1 and b == (a[0] + 1, a[0])]
    for chain in chains:
        for side in (-1.0, 1.0):
            other = T.copy()
            for i, j in chain:
                other[i, j] = side * T[j, j]
            listed = " and ".join(
                f"joint '{names[i]}' seems to turn along with motor '{motors[j]}', by {other[i, j]:.4g} of its angle"
                for i, j in chain
            )
            where = "transmission, " + ", ".join(f"joint '{names[i]}'" for i, _ in chain)
            yield from gearing(MISSING, where, f"a coupling seems to be missing: {listed}.", other)
