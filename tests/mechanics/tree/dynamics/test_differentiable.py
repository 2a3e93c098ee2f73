"""Functions of a machine and their products as graphs: outputs of the dynamics, gradients of differences, ties, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batch_machines import arm, states
from strangers.evaluate import evaluate
from studies.small_arm import small_arm
from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import MachineFunction, machine_function
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, mass_matrix
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.model.elements.element import maxwell
from veridyn.model.machine import Machine
from veridyn.model.parameters import Tie

SAMPLES = 5


def inputs_of(function: MachineFunction, machine: Machine, seed: int = 1) -> dict[str, np.ndarray]:
    """Samples of every input by name; parameters are those of the machine."""
    m = states(machine, SAMPLES, seed)
    arrays = {"q": m.q, "qd": m.qd, "qdd": m.qdd, "forces": m.forces}
    given = {n: arrays[name][:, k] for name, names in function.arrays.items() for k, n in enumerate(names)}
    return given | dict(zip(function.parameters, machine.parameters.values, strict=False))


@pytest.mark.parametrize("quantity", ["inverse", "forward", "mass", "regressor"])
def test_outputs_are_those_of_the_dynamics(quantity: str) -> None:
    machine = small_arm()
    m, f = states(machine, SAMPLES, 1), machine_function(machine, quantity)
    values = evaluate(f.graph, f.outputs, inputs_of(f, machine))
    found = np.stack([np.broadcast_to(v, SAMPLES) for v in values], axis=-1).reshape(SAMPLES, *f.shape)
    expected = {
        "inverse": lambda: inverse_dynamics(machine, m),
        "forward": lambda: forward_dynamics(machine, m).qdd,
        "mass": lambda: mass_matrix(machine, m.q),
        "regressor": lambda: regressor(machine, m),
    }[quantity]()
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("quantity", ["inverse", "forward", "mass", "regressor", "poses"])
def test_products_are_those_of_differences(quantity: str) -> None:
    machine = small_arm()
    f = machine_function(machine, quantity, ["2"] if quantity == "poses" else ())
    given = inputs_of(f, machine)
    rng = np.random.default_rng(2)
    weights = {name: rng.normal(size=SAMPLES) for name in f.weights}
    slopes = [x for part in f.product([True] * len(f.inputs)) for x in part]
    names = [name for columns in f.inputs for name in columns]

    def goal(values: dict[str, np.ndarray]) -> np.ndarray:
        outputs = evaluate(f.graph, f.outputs, values)
        return sum(np.broadcast_to(w * y, SAMPLES) for w, y in zip(weights.values(), outputs, strict=True))

    for name, found in zip(names, evaluate(f.graph, slopes, given | weights), strict=True):
        step = 1e-6
        ends = [goal({**given, name: given[name] + side * step}) for side in (1.0, -1.0)]
        np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2.0 * step), rtol=1e-6, atol=1e-6)


def test_what_is_not_wanted_is_not_made() -> None:
    f = machine_function(arm(), "inverse")
    assert [len(x) for x in f.product([False, True, False, False])] == [0, 7, 0, 0]


def test_the_gradient_by_a_tied_parameter_is_that_of_the_other() -> None:
    plain = small_arm()
    p = plain.parameters
    tied = plain.with_parameters(p.tied({p.names[-1]: Tie(p.names[-3], 0.5)}))
    f = machine_function(tied, "inverse")
    free = machine_function(plain, "inverse")
    given = {**inputs_of(free, plain), **{name: np.ones(SAMPLES) for name in f.weights}}
    given[f.parameters[-1]] = 0.5 * given[f.parameters[-3]]
    ours, theirs = (
        np.array([np.sum(x) for x in evaluate(g.graph, g.product([False] * 3 + [True])[-1], given)]) for g in (f, free)
    )
    assert ours[-1] == 0.0
    assert ours[-3] == pytest.approx(theirs[-3] + 0.5 * theirs[-1])


def test_a_machine_with_inputs_of_other_kinds_is_refused_by_name() -> None:
    machine = small_arm()
    with_state = replace(machine, elements=(*machine.elements, maxwell("q1", 0.1, 20.0)))
    with pytest.raises(DataError, match="states of their own"):
        machine_function(with_state, "inverse")
