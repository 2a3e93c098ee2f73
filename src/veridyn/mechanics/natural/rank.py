"""How many degrees of freedom a mechanism has at a pose, and which of its constraints say nothing new."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, ModelError
from veridyn.mechanics.natural.system import NaturalSystem

Array = NDArray[np.float64]
RANK = 1e-9  # of the largest singular value, rows scaled to length one


@dataclass(frozen=True)
class Mobility:
    """Rank of Φ_q by singular values, degrees of freedom, and the redundant constraints by name.

    `gap`: the last singular value kept and the first dropped, of Φ_q with rows of length one. `redundant` holds each constraint that
    follows from those before it, and `among` the constraints it follows from.
    """

    rank: int
    degrees_of_freedom: int
    gap: tuple[float, float]
    redundant: tuple[str, ...]
    among: tuple[tuple[str, ...], ...]


def mobility(system: NaturalSystem, q: Array) -> Mobility:
    """Rank and redundancy of the constraints at a pose that satisfies them; a singular pose counts as redundant while it lasts."""
    J = unit_rows(system.constraints.jacobian(q))
    m, n = J.shape
    s = np.linalg.svd(J, compute_uv=False) if m else np.zeros(0)
    rank = int((s > RANK * max(s.max(initial=0.0), 1e-300)).sum())
    gap = (float(s[rank - 1]) if rank else 0.0, float(s[rank]) if rank < len(s) else 0.0)
    redundant: list[str] = []
    among: list[tuple[str, ...]] = []
    if rank < m:
        names, kept = system.constraints.names, np.zeros((0, n))
        kept_rows: list[int] = []
        for i in range(m):
            weights = np.linalg.lstsq(kept.T, J[i], rcond=None)[0] if len(kept) else np.zeros(0)
            left = J[i] - weights @ kept
            if np.linalg.norm(left) > 1e3 * RANK:
                kept = np.vstack([kept, J[i]])
                kept_rows.append(i)
                continue
            redundant.append(names[i])
            among.append(tuple(names[k] for k, w in zip(kept_rows, weights, strict=True) if abs(w) > 1e-6))
    return Mobility(rank, n - rank, gap, tuple(redundant), tuple(among))


def unit_rows(J: Array) -> Array:
    """Φ_q with rows of length one, so that a rank does not hang on units and sizes; rows of zeros stay."""
    length = np.linalg.norm(J, axis=1)
    return J / np.where(length > 0.0, length, 1.0)[:, None]


def refuse_redundant(system: NaturalSystem, q: Array) -> Mobility:
    """The mobility, or a :class:`~veridyn.errors.ModelError` that names every redundant constraint and what it follows from."""
    found = mobility(system, q)
    if found.redundant:
        owner = dict(zip(system.constraints.names, system.constraints.owners, strict=True))
        raise ModelError(
            [
                Fault(
                    f"the constraint '{name}' is redundant at this pose.",
                    where=owner[name],
                    found="it follows from " + (", ".join(f"'{a}'" for a in others) or "nothing: it is zero"),
                    hint="Leave it out, or leave the singular pose; the augmented Lagrangian forms also run with it.",
                )
                for name, others in zip(found.redundant, found.among, strict=True)
            ],
            system.mechanism.name,
        )
    return found
