"""A mechanism becomes a machine that keeps its points, and whose tree has its coordinates. Dynamics: test_formulations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers import machine_files
from veridyn.errors import ModelError
from veridyn.files.access import shipped
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.files.machine.write_parts import differences
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism, machine_of_points
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.point_parts import Rotor, ten_of

FILES = {name: text for name, text in vars(machine_files).items() if name.isupper() and isinstance(text, str)}
SHIPPED = ("fourbar", "crane", "spatial")


def _mechanism(name: str) -> Mechanism:
    if name in FILES:
        return mechanism_of(parse_machine(FILES[name], name))
    text = shipped(f"veridyn:{name}.yaml").read_text(encoding="utf-8")
    return mechanism_of(parse_machine(text))


@pytest.mark.parametrize("name", [*SHIPPED, *FILES])
def test_every_mechanism_comes_back_as_it_was(name: str) -> None:
    m = _mechanism(name)
    back = mechanism_of(machine_of_mechanism(m))
    assert (back.name, back.dimension, back.gravity) == (m.name, m.dimension, m.gravity)
    assert (back.points, back.vectors, back.coordinates) == (m.points, m.vectors, m.coordinates)
    assert back.bodies == m.bodies
    assert (back.joints, back.added, back.racks) == (m.joints, m.added, m.racks)
    assert (back.springs, back.dampers, back.loads, back.sensors) == (m.springs, m.dampers, m.loads, m.sensors)


@pytest.mark.parametrize("name", SHIPPED)
def test_points_bodies_and_joints_make_the_machine_of_the_file(name: str) -> None:
    file = load_model(f"veridyn:{name}.yaml")
    d = file.description
    assert d is not None
    made = machine_of_points(
        d.points,
        d.bodies,
        name=file.name,
        vectors=d.vectors,
        joints=d.joints,
        added=d.added,
        racks=d.racks,
        elements=file.elements,
        loads=file.loads,
        sensors=file.sensors,
        gravity=file.gravity[: file.dimension].tolist(),
    )
    assert differences(made, file) == ()


def test_joints_are_found_from_what_bodies_share() -> None:
    def kinds(name: str) -> dict[str, tuple[str, tuple[str, ...]]]:
        return {j.name: (j.kind, j.coordinate_names) for j in machine_of_mechanism(_mechanism(name)).joints}

    assert kinds("fourbar") == {
        "A": ("turning", ("phi",)),
        "B": ("turning", ("B",)),
        "1": ("turning", ("q1",)),
        "2": ("turning", ("q2",)),
    }
    assert kinds("crane") == {"rail": ("sliding", ("x",)), "T": ("turning", ("swing",)), "L": ("fixed", ())}
    assert kinds("RSSR")["rod"] == ("distance", ())
    assert kinds("SLIDES") == {"rail": ("sliding", ("x",)), "tube": ("cylindrical", ("h", "r"))}
    assert [j.kind for j in machine_of_mechanism(_mechanism("HINGE")).joints] == ["turning", "turning"]
    assert kinds("FREE")["b_float"][0] == "floating"


def test_a_drive_makes_its_joint_actuated_and_a_rotor_is_a_motor_inertia() -> None:
    m = replace(_mechanism("fourbar"), rotors=(Rotor("Ia", "phi", 0.7),))
    machine = machine_of_mechanism(m)
    assert machine.actuated_coordinates == ("phi",)
    assert mechanism_of(machine).rotors == m.rotors
    assert machine.parameters["Ia"] == 0.7


def test_links_have_the_ten_numbers_of_the_bodies_and_new_ones_reach_the_mechanism() -> None:
    m = _mechanism("crane")
    machine = machine_of_mechanism(m)
    for body in m.bodies:
        assert np.array_equal(machine.by_name[body.name].ten, ten_of(body, 2))
    heavier = machine.with_parameters({"M_load": 300.0})
    assert [b.mass for b in mechanism_of(heavier).bodies] == [80.0, 3.0, 300.0]
    assert mechanism_of(heavier).bodies[:2] == m.bodies[:2]


def test_what_a_tree_cannot_carry_is_refused_by_name_and_stays_in_natural_coordinates() -> None:
    for name, words in (
        ("STEERING", "rack 'teeth': a tree has no racks"),
        ("WATT", "coordinate 'h': it is no coordinate of a joint"),
        ("CHAIN", "share v and no point"),
    ):
        machine = machine_of_mechanism(_mechanism(name))
        assert mechanism_of(machine).n > 0
        with pytest.raises(ModelError, match=words):
            _ = tree_of(machine)
