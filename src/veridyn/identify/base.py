"""Base parameters: the smallest set that decides the dynamics, and how the standard parameters group into it.

Without a motion, by the closed rules of :mod:`veridyn.mechanics.tree.rules` (what is identifiable by some motion); with one,
numerically (what this motion identifies). Paper 000, section III.B.5; Gautier and Khalil 1990, Gautier 1991.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.identify.grouping import RANK_TOLERANCE, Groups, group
from veridyn.identify.regression.linear_algebra import one_blas_thread, triangle_of
from veridyn.lazy import above
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.mechanics.tree.dynamics.engine import Engine
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.loops.closure import closed_motion, closed_positions
from veridyn.mechanics.tree.recursion.inputs import blocks
from veridyn.mechanics.tree.rules import structural
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.model.parameters import ParameterSet

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
