"""The program of all rows: its outputs are the tables of the streaming path, with the measurement taken in."""

from __future__ import annotations

import numpy as np
import pytest

from batch_machines import MACHINES, measured
from strangers.evaluate import evaluate
from veridyn.identify.equation_program import equation_program
from veridyn.identify.observation import stream
from veridyn.mechanics.engine import sample_arrays, uniform_values
from veridyn.mechanics.tree.of_machine import tree_of

SAMPLES = 12


@pytest.mark.parametrize("name", MACHINES)
def test_rows_are_those_of_the_streamed_blocks(name: str) -> None:
    machine = MACHINES[name]()
    known = machine.parameters.known({machine.parameters.names[3]: 0.5})
    machine = machine.with_parameters(known)
    m = measured(MACHINES[name](), SAMPLES)
    plan = stream(machine, m, engine="numpy").plan
    program = equation_program(plan, m)
    names = [n for n in program.samples if not n.startswith("y.")]
    given = dict(zip(names, sample_arrays(tree_of(machine), m, names), strict=True))
    given |= {n: m.forces[:, int(n[2:]) - len(machine.rows) + machine.n] for n in program.samples if n.startswith("y.")}
    given |= dict(
        zip(program.parameters, uniform_values(machine, machine.parameters.values, program.parameters), strict=True)
    )
    values = [np.broadcast_to(x, SAMPLES) for x in evaluate(program.graph, program.outputs, given)]
    (job,) = plan.jobs(m)
    (block,) = plan.blocks(job)
    for k, A in enumerate(block.equations):
        first, count = program.sets[k]
        whole = np.zeros((SAMPLES, len(plan.columns[k]) + 1))
        place = {c: i for i, c in enumerate((*plan.columns[k], -1))}
        whole[:, [place[c] for c in program.entries[k]]] = np.array(values[first : first + count]).T
        np.testing.assert_allclose(whole, A, rtol=1e-11, atol=1e-11)


def test_goals_go_column_by_column() -> None:
    machine = MACHINES["arm"]()
    m = measured(machine, SAMPLES)
    program = equation_program(stream(machine, m, engine="numpy").plan, m)
    every = [c for own in program.entries for c in own]
    ordered = [every[k] for k in program.goals]
    assert sorted(program.goals) == list(range(len(every))) and ordered[-7:] == [-1] * 7
    assert ordered[:-7] == sorted(ordered[:-7])
