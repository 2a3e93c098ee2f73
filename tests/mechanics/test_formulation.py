"""The protocol of a formulation: every implementation has all of it, names do not depend on it, and refusals give their reason."""

import pickle

import numpy as np
import pytest

import veridyn as vd
from one_machine import FORMULATIONS, MACHINES, crane, fourbar
from veridyn.errors import CapabilityError
from veridyn.mechanics.formulated import formulated, in_joints
from veridyn.mechanics.formulation import Formulated, MachineModel, RunSettings, require
from veridyn.papers.buggy.machine import buggy


def members(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


@pytest.mark.parametrize("form", ["tree", "points", "freedoms"])
def test_a_formulation_has_all_of_the_protocol(form: str) -> None:
    machine = buggy() if form == "freedoms" else crane()
    made = formulated(machine.with_formulation("tree" if form == "tree" else "natural"))
    model, q, qd = made.prepared(RunSettings(unknown=()))
    assert model.kernel == form and isinstance(model.form, Formulated) and isinstance(made, Formulated)
    assert [name for name in members(MachineModel) if not hasattr(model, name)] == []
    assert (len(q), len(qd)) == (model.nq, model.nv) and len(model.names) == len(model.rate_names) == model.f
    assert set(made.capabilities) == set(formulated(crane().with_formulation("tree")).capabilities)
    assert (made.regressor is None) == (made.capabilities["regressor"] is not None)


@pytest.mark.parametrize("name", MACHINES)
def test_a_change_and_a_difference_are_inverse_and_a_step_has_its_derivative(name: str) -> None:
    for formulation in FORMULATIONS:
        model, q, qd = formulated(MACHINES[name]().with_formulation(formulation)).prepared(RunSettings())
        rng, n = np.random.default_rng(0), 2 * model.f + len(model.unknown)
        d, u, loads = 1e-3 * rng.standard_normal(n), model.start_unknown, model.loads()
        there = model.changed(q, qd, u, d)
        np.testing.assert_allclose(model.difference(*there, q, qd), d[: 2 * model.f], rtol=0, atol=1e-12)
        step = model.advanced(q, qd, u, 1e-3, loads, True, 0.0, 0)
        ends = []
        for way in (1.0, -1.0):
            at = model.changed(q, qd, u, way * d)
            moved = model.advanced(*at, u + way * d[2 * model.f :], 1e-3, loads, False, 0.0, 0)
            ends.append(model.difference(moved.found.q, moved.found.qd, step.found.q, step.found.qd))
        numeric, scale = 0.5 * (ends[0] - ends[1]), np.abs(d).max()
        np.testing.assert_allclose(step.found.F[: 2 * model.f] @ d, numeric, rtol=0, atol=1e-6 * scale)  # of order d²


@pytest.mark.parametrize("name", MACHINES)
def test_names_do_not_depend_on_the_formulation(name: str) -> None:
    """Coordinates, states, outputs, and the channels of a log that act."""
    machine = MACHINES[name]()
    logged = ["force.q1", "force.phi", "force.x", "motor", "encoder", "q.x"]
    found = []
    for formulation in FORMULATIONS:
        form = formulated(machine.with_formulation(formulation))
        model, _, _ = form.prepared(RunSettings())
        outputs = model.readout(form.sensors).names
        found.append((model.names, model.rate_names, model.unknown, outputs, form.inputs_in(logged), form.drives))
        units = tuple(map(model.unit_of, model.names)), tuple(map(model.force_unit, model.unknown))
        found[-1] = (*found[-1], units)
    assert found[0] == found[1]


def test_a_drive_names_the_unknown_force_of_its_coordinate() -> None:
    for formulation in FORMULATIONS:
        model, _, _ = formulated(crane().with_formulation(formulation)).prepared(RunSettings(unknown=("motor",)))
        assert model.unknown == ("x",)


def test_what_a_formulation_has_not_is_one_error_with_its_reason() -> None:
    form = formulated(fourbar())
    with pytest.raises(CapabilityError, match=r"formulation natural has no regressor: its equations") as caught:
        require(form, "regressor", where=form.name)
    error = caught.value
    assert (error.formulation, error.asked) == ("natural", "regressor") and "'tree'" in error.instead
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.reason, again.instead) == (str(error), error.reason, error.instead)
    assert isinstance(error, vd.errors.ModelError)
    require(in_joints(fourbar()), *form.capabilities)  # a tree has it all


def test_a_free_base_in_natural_coordinates_has_the_names_of_its_points() -> None:
    """The exception that docs/capabilities.md gives: its sets of coordinates are made of components of points and vectors."""
    ten = [0.1, 0.0, 0.0, 0.2, 0.0, 0.3, 0.0, 0.0, 0.0, 2.0]
    floating = vd.Joint(name="free", kind="floating", a="ground", b="box")
    box = vd.Machine.build([vd.Link(name="box", inertia=ten)], [floating])
    names = {}
    for formulation in FORMULATIONS:
        model, _, _ = formulated(box.with_formulation(formulation)).prepared(RunSettings(unknown=()))
        names[formulation] = model.names
    assert names["tree"] == ("base.x", "base.y", "base.z", "base.roll", "base.pitch", "base.yaw")
    assert len(names["natural"]) == 6 and not any(name.startswith("base.") for name in names["natural"])
