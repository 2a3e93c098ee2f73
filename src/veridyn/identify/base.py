"""Base parameters: the smallest set that decides the dynamics, and how the standard parameters group into it.

Without a motion, by the closed rules of :mod:`veridyn.mechanics.tree.rules` (what is identifiable by some motion); with one,
numerically (what this motion identifies). Paper 000, section III.B.5; Gautier and Khalil 1990, Gautier 1991.

Linear dependences of columns become groups: which columns stay, which are added to them, and which say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.identify.regression.factor import one_blas_thread, triangle_of
from veridyn.lazy import above
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.loops.closure import closed_motion, closed_positions
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.mechanics.tree.recursion.inputs import blocks
from veridyn.mechanics.tree.rules import structural
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.parameters import ParameterSet

RANK_TOLERANCE = 1e-9  # of the largest singular value, columns scaled by typical sizes
ZERO_COLUMN = 1e-12  # of the largest column: rounding
ZERO_COEFFICIENT = 1e-9  # of a coefficient between columns of typical size: below it there is no telling from rounding
ROUNDING = 10.0 * float(np.finfo(np.float64).eps)  # of the columns themselves, some operations each
SNAPPED = 1e-11  # of a coefficient: what rounding misses a small integer or a half by
CLEAN_RATIO = 2.0  # of what a relation leaves, with clean coefficients to that with its own
LARGEST_SNAP = 1e-3  # however little a coefficient is known, it is not moved by more
MIN_PIVOT_SHARE = 1e-3  # a dependent column must carry at least this share of a null vector


@dataclass(frozen=True)
class Groups:
    """`kept` columns; `matrix` K (kept, p) with A φ = A[:, kept] K φ; `dead` columns; singular values that decided.

    `gap` is the ratio of the last kept to the first dropped singular value (infinite where none was dropped).
    """

    kept: tuple[int, ...]
    matrix: Array
    dead: tuple[int, ...]
    singular_values: Array
    rank: int

    @property
    def gap(self) -> float:
        s = self.singular_values
        if self.rank in (0, len(s)) or s[self.rank] == 0.0:
            return float("inf")
        return float(s[self.rank - 1] / s[self.rank])


def group(A: Array, typical: Array, tolerance: float = RANK_TOLERANCE, hidden: float = 0.0) -> Groups:
    """Group the columns of A (any matrix with the dependences of the observation matrix, such as its R factor).

    Columns are scaled by typical sizes; those that are zero to rounding are dead. Of dependent columns the earlier ones stay, so the
    parameters of a body near the root take those of the bodies it carries. Rank by singular values above `tolerance`. `hidden`: what a
    relation may leave of a column, in units of A times typical sizes, without anyone seeing it; rounding by default.
    """
    p = A.shape[1]
    scaled = A * typical
    norms = np.linalg.norm(scaled, axis=0) if len(A) else np.zeros(p)
    largest = norms.max(initial=0.0)
    counts = norms > ZERO_COLUMN * largest if largest > 0 else np.zeros(p, dtype=np.bool_)
    alive = np.flatnonzero(counts)
    dead = tuple(np.flatnonzero(~counts).tolist())
    S = scaled[:, alive]
    if S.shape[1] == 0:
        return Groups((), np.zeros((0, p)), dead, np.zeros(0), 0)
    _, s, Vt = singular(S, full=True)
    s = np.concatenate([s, np.zeros(S.shape[1] - len(s))])
    rank = int((s > tolerance * s[0]).sum())
    dependent = _latest_dependent(Vt[rank:])
    kept_local = [c for c in range(S.shape[1]) if c not in set(dependent)]
    kept = alive[kept_local]
    K = np.zeros((len(kept), p))
    K[np.arange(len(kept)), kept] = 1.0
    if dependent:
        dep = alive[dependent]
        K[:, dep] = _relation(S[:, kept_local], S[:, dependent], typical[kept][:, None] / typical[dep][None, :], hidden)
    return Groups(tuple(int(c) for c in kept), K, dead, s, rank)


def _relation(A: Array, B: Array, scale: Array, hidden: float) -> Array:
    """X · scale with A X ≈ B, zeros, small integers and halves exact where a coefficient is not known to be another number.

    Rounding of the columns, and what B leaves beside A, pass through A⁺ to the coefficients. Columns that depend on others to rounding
    leave nothing; those that only noise makes dependent leave what noise hides, up to `hidden`. Clean coefficients must leave hardly more.
    """
    U, s, Vt = singular(A)
    seen = s > np.finfo(np.float64).eps * max(A.shape) * s.max(initial=0.0)
    X = Vt[seen].T @ ((U[:, seen].T @ B) / s[seen, None])
    left = np.maximum(np.linalg.norm(B - A @ X, axis=0) + ROUNDING * float(s.max(initial=0.0)), hidden)
    rows = np.linalg.norm(Vt.T / np.maximum(s, np.finfo(np.float64).tiny), axis=1)  # of A⁺
    accuracy = np.asarray(np.outer(rows, left), dtype=np.float64)
    limit = CLEAN_RATIO * left
    clean = _cleaned(X, accuracy, scale)
    fits = np.linalg.norm(B - A @ (clean / scale), axis=0) <= limit
    out = clean if fits.all() else np.where(fits, clean, _cleaned(X, np.zeros(X.shape), scale))
    for k in np.flatnonzero(~fits):
        # The others as they fit best without those that are taken for zero.
        there = np.abs(X[:, k]) >= np.maximum(accuracy[:, k], ZERO_COEFFICIENT)
        others = np.zeros(len(X))
        others[there] = np.linalg.lstsq(A[:, there], B[:, k], rcond=None)[0]
        clean = _cleaned(others, accuracy[:, k], scale[:, k])
        if np.linalg.norm(B[:, k] - A @ (clean / scale[:, k])) <= limit[k]:
            out[:, k] = clean
    return out


def _cleaned(X: Array, accuracy: Array, scale: Array) -> Array:
    """X · scale, each coefficient of X being known to `accuracy`."""
    zero = np.abs(X) < np.maximum(accuracy, ZERO_COEFFICIENT)
    return _snapped(_snapped(np.where(zero, 0.0, X), accuracy) * scale, accuracy * scale)


def singular(S: Array, full: bool = False) -> tuple[Array, Array, Array]:
    """U, s and Vᵀ with S = U diag(s) Vᵀ; by QR iterations where divide and conquer does not converge, which is rare."""
    try:
        U, s, Vt = np.linalg.svd(S, full_matrices=full)
    except np.linalg.LinAlgError:
        from scipy.linalg import svd  # here: importing it takes longer than all that `veridyn model show` does

        U, s, Vt = svd(S, full_matrices=full, lapack_driver="gesvd")
    return U, s, Vt


def singular_values(S: Array) -> Array:
    """Those of :func:`singular`, without the vectors."""
    try:
        return np.asarray(np.linalg.svd(S, compute_uv=False), dtype=np.float64)
    except np.linalg.LinAlgError:
        return singular(S)[1]


def _latest_dependent(null: Array) -> list[int]:
    """From the rows of a null space, one dependent column for each, the latest ones that can serve."""
    rows = null.copy()
    chosen: list[int] = []
    for c in range(rows.shape[1] - 1, -1, -1):
        left = rows[len(chosen) :]
        if not len(left):
            break
        v = left[:, c].copy()
        column = math.sqrt(v @ v)
        if column < MIN_PIVOT_SHARE * max(left.max(), -left.min()):
            continue
        # Turn the remaining null vectors so that only the first of them touches this column, then set it aside.
        v[0] += math.copysign(column, v[0])
        left -= v[:, None] * ((v @ left) * (2.0 / (v @ v)))
        chosen.append(c)
    return sorted(chosen)


def _snapped(a: NDArray[np.floating], accuracy: Array) -> Array:
    """Coefficients of small integers and halves made exact where rounding, or what they are not known to, missed them."""
    nearest = np.round(2.0 * a) / 2.0
    near = np.abs(a - nearest) < np.minimum(np.maximum(SNAPPED * np.maximum(1.0, np.abs(a)), accuracy), LARGEST_SNAP)
    return np.where(near, nearest, a)


NUMERICAL_SOURCE = "numerically"  # how the source of base parameters begins that come from a motion
# Relative, of printed coefficients from a motion, and from the closed rules: about what conditioning leaves of the first, and lengths and
# angles in a file of the second
MOTION_ACCURACY, RULE_ACCURACY = (1e-8, 1e-10)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BaseParameters:
    """Base parameters χ = K φ of the standard parameters φ (`parameters`, all of the tree's, in order).

    `columns` are the standard columns that stay, so (D T) φ = (D T)[:, columns] χ, where T adds tied columns and blanks known
    ones (``parameters.estimated_matrix()``; the identity where all are estimated). `dead` parameters have no effect. `gap` is the ratio
    of the last singular value kept to the first dropped, of columns scaled by typical sizes: a rank with a small gap is a
    matter of taste.
    """

    parameters: ParameterSet
    columns: tuple[int, ...]
    matrix: Array
    dead: tuple[int, ...]
    gap: float
    singular_values: Array
    source: str

    @property
    def count(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The kept parameter's own name, with an R (regrouped) where others are added to it."""
        own = self.parameters.names
        return tuple(
            own[c] + ("R" if np.count_nonzero(row) > 1 else "")
            for c, row in zip(self.columns, self.matrix, strict=True)
        )

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(self.parameters.units[c] for c in self.columns)

    def reduce(self, values: ArrayLike) -> Array:
        """χ from standard parameters φ."""
        phi = np.asarray(values, dtype=np.float64)
        if phi.shape != (len(self.parameters),):
            raise DataError("wrong number of parameters.", expected=f"({len(self.parameters)},)", found=f"{phi.shape}")
        # A parameter nobody knows matters only where it is used.
        used = np.any(self.matrix != 0.0, axis=0)
        return self.matrix[:, used] @ phi[used]

    def relations(self) -> list[str]:
        """Every group with more than one member, as in "ZZ6R = ZZ6 + XX9 + XX12"."""
        own, names = self.parameters.names, self.names
        known = MOTION_ACCURACY if self.source.startswith(NUMERICAL_SOURCE) else RULE_ACCURACY
        lines = []
        for r in np.flatnonzero(np.count_nonzero(self.matrix, axis=1) > 1):
            c, row = self.columns[r], self.matrix[r]
            others = [(own[k], float(row[k])) for k in np.flatnonzero(row) if k != c]
            lines.append(f"{names[r]} = {own[c]}" + "".join(_term(n, a, known) for n, a in others))
        return lines

    def fate(self, name: str) -> str:
        """What became of a parameter: "alone", "grouped" (it leads or joins a group) or "dead"."""
        k = self.parameters.index(name)
        if k in self.dead or not self.matrix[:, k].any():
            return "dead"
        alone = k in self.columns and np.count_nonzero(self.matrix[self.columns.index(k)]) == 1
        return "alone" if alone else "grouped"

    def groups_of(self, name: str) -> list[str]:
        """The relations a parameter takes part in."""
        k = self.parameters.index(name)
        part = {self.names[r] for r in np.flatnonzero(self.matrix[:, k])}
        return [line for line in self.relations() if line.split(" = ")[0] in part]

    def __repr__(self) -> str:
        return f"BaseParameters({self.count} of {len(self.parameters)} standard parameters, {self.source})"

    def _repr_html_(self) -> str:
        return above("veridyn.report.notebook", "show_base")(self)._repr_html_()

    def summary(self) -> str:
        """The count, the relations and the dead parameters in a few lines."""
        lines = [f"{self.count} base parameters of {len(self.parameters)} standard ones ({self.source})"]
        if np.isfinite(self.gap):
            lines[0] += f", singular values drop by {self.gap:.1e} behind the last"
        lines += ["  " + relation for relation in self.relations()]
        if self.dead:
            lines.append("  without effect: " + ", ".join(self.parameters.names[k] for k in self.dead))
        return "\n".join(lines)


@takes_machine
def base_parameters(
    machine: Machine,
    motion: Motion | Sequence[Motion] | None = None,
    *,
    rows: Rows = "all",
    tolerance: float = RANK_TOLERANCE,
) -> BaseParameters:
    """The base parameters of a machine by the closed rules, or those that a motion excites, by rank.

    Only estimated parameters are grouped: known ones belong to the measured side, tied ones count as one with what they are tied to. The
    closed rules cover all rows of rigid bodies. With elements, with a coordinate that several joints share, with closed loops, or with
    fewer rows, rank on generic states decides.

    Parameters
    ----------
    machine : Machine
        The machine; values of its parameters are not needed.
    motion : Motion or sequence of Motion, optional; logs are prepared by :func:`veridyn.motion` with default settings
        Samples that decide which parameters are identifiable; by default whatever any motion can excite.
    rows : "all", "joints", "base", "actuated", or names
        The equations that are measured; all of them by default.
    tolerance : float
        Ratio of singular values, with columns in typical sizes, below which a direction counts as not excited; 1e-9 by default.

    Returns
    -------
    BaseParameters
        ``count``, ``names``, ``units``, ``relations()`` such as "ZZ6R = ZZ6 + XX9 + XX12", ``dead`` parameters and ``summary()``.

    Raises
    ------
    DataError
        The motion does not belong to the machine.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)  # moves in the x-y plane, gravity along −y
    >>> base = vd.base_parameters(pendulum)
    >>> base.count, base.names
    (3, ('ZZ_rod', 'MX_rod', 'MY_rod'))
    """
    with one_blas_thread():
        return _base_parameters(machine, motion, rows, tolerance)


def _base_parameters(
    machine: Machine, motion: Motion | Sequence[Motion] | None, rows: Rows, tolerance: float
) -> BaseParameters:
    p = machine.parameters
    if motion is not None:
        several = [motion] if isinstance(motion, Motion) else list(motion)
        R = np.zeros((0, len(p)))
        for part in several:
            machine.check_motion(part)
            R = _absorb(R, machine, part, rows)
        source = f"{NUMERICAL_SOURCE}, on {sum(len(m) for m in several)} samples"
    elif not machine.elements and not machine.shares_coordinates and not machine.closed and rows == "all":
        R, source = structural(machine), "by the closed rules"
    else:
        R = _absorb(np.zeros((0, len(p))), machine, generic_motion(machine), rows, engine="numpy")
        source = "by rank on generic states"
    return named(group(R @ p.estimated_matrix(), p.typical, tolerance), p, source)


def named(groups: Groups, parameters: ParameterSet, source: str) -> BaseParameters:
    """Groups of columns as base parameters; columns of known and tied parameters are zero by construction, and are not called dead."""
    dead = tuple(k for k in groups.dead if parameters.states[k] == "estimated")
    return BaseParameters(
        parameters=parameters,
        columns=groups.kept,
        matrix=groups.matrix,
        dead=dead,
        gap=groups.gap,
        singular_values=groups.singular_values,
        source=source,
    )


def generic_motion(machine: Machine, samples: int = 0) -> Motion:
    """Unrelated values of every coordinate, rate and acceleration: a point without symmetry at every sample, the same every time.

    Of a machine with loops, of every independent coordinate near home.
    """
    rng = np.random.default_rng(20061)  # any seed; generic points differ only on a set of measure zero
    rows = len(machine.rows) - machine.n + len(machine.independent)
    N = samples or 4 * len(machine.parameters) // max(1, rows) + 60
    q, qd, qdd = (rng.normal(size=(N, machine.n)) for _ in range(3))
    base = BaseMotion(*(rng.normal(size=(N, 3)) * s for s in (1.0, 3.0, 10.0, 5.0))) if machine.base == "free" else None
    signals = {name: rng.normal(size=N) for name in machine.signals}
    t = np.arange(N, dtype=np.float64)
    if machine.closed:
        whole, own = closed_positions(machine, N, rng), list(machine.independent)
        fast, hard = 3.0 * qd[:, own], 10.0 * qdd[:, own]
        moved = closed_motion(machine, t, whole[:, own], fast, hard, start=whole, base=base, path=False)
        return replace(moved, signals=signals)
    return Motion(t, q, qd, qdd, base, signals=signals)


def _absorb(R: Array, machine: Machine, motion: Motion, rows: Rows, engine: Engine = "auto") -> Array:
    for block in blocks(len(motion), 512):
        D = regressor(machine, motion[block], rows, engine=engine)
        R = triangle_of(np.vstack([R, D.reshape(-1, D.shape[2])]))
    return R


def _term(name: str, a: float, accuracy: float) -> str:
    """A term with the fewest digits that give its coefficient to a relative accuracy."""
    sign, size = " + " if a > 0 else " - ", abs(a)
    texts = (f"{size:.{digits}g}" for digits in range(1, 17))
    text = next((text for text in texts if abs(float(text) - size) <= accuracy * size), f"{size!r}")
    return sign + (name if text == "1" else f"{text}*{name}")
