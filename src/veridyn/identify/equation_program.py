"""The equations [W_j | Y_j] of all rows as one program for a processor that keeps them on the device.

As :mod:`veridyn.identify.tables`, with the measurement taken in: the last column of a row is Γ_j, the input "y.j", less what wrenches and
known parameters ask of the row. Columns that are zero whatever the motion are not written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veridyn.identify.equation_plan import EquationPlan
from veridyn.identify.tables import equations
from veridyn.mechanics.formula import formula
from veridyn.model.motion import Motion
from veridyn.symbolic.expression import Graph, Number, live

MEASURED = "y."


@dataclass(frozen=True, eq=False, kw_only=True)
class EquationProgram:
    """Expressions of all rows, one after the other: row k has the columns `entries[k]`, −1 the measurement, from `sets[k]` on.

    `sets`: (first, count) of each row among the outputs.
    """

    graph: Graph
    outputs: list[Number]
    samples: tuple[str, ...]
    parameters: tuple[str, ...]
    sets: tuple[tuple[int, int], ...]
    entries: tuple[tuple[int, ...], ...]

    @property
    def goals(self) -> list[int]:
        """The outputs column by column: entries of one column share more than entries of one row."""
        every = [c for own in self.entries for c in own]
        return sorted(range(len(every)), key=lambda k: (every[k] < 0, every[k], k))


def equation_program(plan: EquationPlan, motion: Motion) -> EquationProgram:
    """The program of a plan whose rows stand for themselves: open trees, no rows added along a path."""
    f = formula(plan.machine, equations(plan.machine, plan.rows, plan.wanted, motion))
    made = dict(zip(f.labels, f.outputs, strict=True))
    outputs: list[Number] = []
    sets, entries = [], []
    for k, r in enumerate(plan.rows):
        own = [c for c in plan.columns[k] if (r, c) in made]
        known = made.get((r, -1), 0.0)
        measured: Number = f.graph.input(f"{MEASURED}{r}") if isinstance(plan.force(motion, r), np.ndarray) else 0.0
        sets.append((len(outputs), len(own) + 1))
        outputs += [made[r, c] for c in own]
        outputs.append(f.graph.add(measured, -known))
        entries.append((*own, -1))
    used = set(live(f.graph, outputs))
    measured_inputs = [name for name, n in f.graph.inputs.items() if name.startswith(MEASURED) and n in used]
    return EquationProgram(
        graph=f.graph,
        outputs=outputs,
        samples=(*f.samples, *measured_inputs),
        parameters=f.parameters,
        sets=tuple(sets),
        entries=tuple(entries),
    )
