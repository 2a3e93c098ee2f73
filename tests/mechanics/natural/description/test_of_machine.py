"""Points and vectors for a machine: as few as carry it, named as the joints, and refusals by name. Dynamics: test_formulations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers.graph_machines import random_machine, rssr, seven_joint_arm, slider_crank
from veridyn.errors import CapabilityError, ModelError
from veridyn.mechanics.natural.description.of_machine import mechanism_of, mechanism_with, rounded
from veridyn.mechanics.natural.equations.freedoms import mobility
from veridyn.mechanics.natural.equations.system import system_of
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import coulomb, drag, maxwell, offset, spring
from veridyn.model.link import Joint, Link
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.machine import Machine
from veridyn.model.place import Assembly, Attachment, Marker
from veridyn.model.point_parts import Angle, Distance, Elevation
from veridyn.model.sensor import Sensor
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement

BOX = from_centre(1.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.1, 0.15]))


def test_a_particle_is_one_point_a_rod_two_and_a_body_has_three_directions() -> None:
    ball = Link(name="ball", inertia=from_centre(2.0, (0, 0, 0), np.zeros((3, 3))))
    rod = Link(name="rod", inertia=from_centre(2.0, (0.5, 0, 0), np.diag([0.0, 0.2, 0.2])))
    box = Link(name="box", inertia=BOX)
    end = Attachment("rod", Placement(position=(1.0, 0, 0)))
    joints = [
        Joint(name="pin", kind="spherical", a="ground", b="rod"),
        Joint(name="weld", kind="fixed", a=end, b="ball"),
        Joint(name="hook", kind="spherical", a=end, b="box"),
    ]
    mechanism = mechanism_of(Machine.build([ball, rod, box], joints, name="chain"))
    sizes = {b.name: (len(b.points), len(b.vectors)) for b in mechanism.bodies}
    assert sizes == {"ball": (2, 0), "rod": (2, 0), "box": (1, 3)}
    assert mechanism.coordinates[:3] == ("hook.x", "hook.y", "hook.z")
    assert mobility(system_of(mechanism), system_of(mechanism).guess).degrees_of_freedom == 2 + 3


def test_parallel_axes_share_one_vector() -> None:
    links = [Link(name=f"link{k}", inertia=BOX) for k in range(3)]
    ends = ["ground", *(Attachment(f"link{k}", Placement(position=(1.0, 0, 0))) for k in range(2))]
    joints = [Joint(name=f"j{k}", a=end, b=f"link{k}") for k, end in enumerate(ends)]
    mechanism = mechanism_of(Machine.build(links, joints, name="planar arm"))
    fixed = [v.name for v in mechanism.vectors if v.fixed]
    assert fixed == ["j0_axis"]
    assert all("j0_axis" in b.vectors for b in mechanism.bodies)


@pytest.mark.parametrize("machine", [rssr, seven_joint_arm, slider_crank], ids=lambda m: m.__name__)
def test_no_constraint_is_redundant_and_the_freedoms_are_those_of_the_tree(machine) -> None:
    system = system_of(mechanism_of(machine()))
    from veridyn.mechanics.natural.equations.position import position

    found = mobility(system, position(system))
    assert found.redundant == ()
    assert found.degrees_of_freedom == len(tree_of(machine()).independent) or tree_of(machine()).loops


def test_coordinates_have_the_names_and_values_of_the_tree() -> None:
    kinds = ("turning", "sliding", "cylindrical", "universal", "planar", "fixed")
    machine = random_machine(3, kinds)
    tree = tree_of(machine)
    q = 0.7 * np.random.default_rng(3).standard_normal(tree.n)
    posed = replace(machine, assembly=Assembly(hold=dict(zip(tree.coordinates, q.tolist(), strict=True))))
    mechanism = mechanism_with(posed, "all")
    system = system_of(mechanism)
    assert {a.name for a in mechanism.added} == set(tree.coordinates)
    assert np.abs(system.constraints.values(system.guess)).max() <= 1e-13
    assert system.guess[[mechanism.index(c) for c in tree.coordinates]] == pytest.approx(q, abs=1e-13)


def test_only_coordinates_that_something_uses_are_added() -> None:
    machine = random_machine(3, ("turning", "sliding", "universal"))
    assert mechanism_of(machine).added == ()
    used = replace(
        machine,
        elements=(spring("sliding1", 3.0), offset("sliding1", 0.5)),
        sensors=(Sensor("enc", "coordinate", "universal2_1", 0.01),),
    )
    assert [(a.name, type(a)) for a in mechanism_of(used).added] == [("sliding1", Distance), ("universal2_1", Angle)]
    assert mechanism_of(used).loads == (Drive("off_sliding1", "sliding1", -0.5),)
    assert [a.name for a in mechanism_with(machine, ["turning0"]).added] == ["turning0"]
    with pytest.raises(ModelError, match="there is no coordinate 'turning'"):
        mechanism_with(machine, ["turning"])


def test_sensors_and_loads_on_bodies_are_carried() -> None:
    machine = replace(
        random_machine(3, ("spherical",)),
        loads=(Force("push", "body0", (1.0, 0, 0)), Torque("turn", "body0", (0, 0, 1.0))),
        sensors=(Sensor("acc", "accelerometer", Marker("body0", (0.1, 0, 0)), 0.1),),
    )
    mechanism = mechanism_of(machine)
    assert mechanism.loads[0] == Force("push", Marker("body0", (0, 0, 0)), (1.0, 0, 0))
    system_of(mechanism)


def test_what_natural_coordinates_cannot_carry_is_refused_all_at_once() -> None:
    machine = random_machine(3, ("turning", "sliding"))
    acting = (
        maxwell("turning0", 1.0, 1.0, "creep"),
        drag("fx", 1.0, "wind"),
    )
    with pytest.raises(ModelError) as found:
        _ = mechanism_of(replace(machine, elements=(*acting, spring("turning0"))))
    text = str(found.value)
    assert (
        "Not built: its steps carry no states of elements but slips of tyres" in text
        and "a whole body's motion" in text
    )
    assert "element 'creep': natural coordinates have no element of kind maxwell." in text
    assert "element 'wind': natural coordinates have no element of kind drag." in text
    assert "element 'k_turning0': its value is unknown" in text
    assert text.count("Use formulation: tree.") == 2


def test_dry_friction_is_rounded_off_for_steps_and_refused_where_it_should_hold() -> None:
    machine = random_machine(3, ("turning", "sliding")).with_elements([coulomb("turning0", 1.0)])
    mechanism = mechanism_of(machine)
    assert [e.kind for e in mechanism.laws] == ["coulomb"] and mechanism.friction_speed == 0.0
    assert rounded(mechanism, 0.05).friction_speed == 0.05
    with pytest.raises(CapabilityError, match=r"(?s)dry friction that holds.*fs_turning0.*friction_speed"):
        rounded(mechanism, 0.0)
    smooth = mechanism_of(random_machine(3, ("turning", "sliding")))
    assert rounded(smooth, 0.0) is smooth and rounded(smooth, 0.05) is smooth


def test_a_pitch_is_an_elevation() -> None:
    mechanism = mechanism_with(random_machine(3, ("spherical",)), "all")
    assert isinstance(next(a for a in mechanism.added if a.name == "spherical0_pitch"), Elevation)


def test_shared_and_geared_coordinates_are_refused_by_name() -> None:
    links = [Link(name=name, inertia=BOX) for name in "ab"]
    geared = [Joint(name=x, a="ground", b=x, coordinates=("q",), ratio=r) for x, r in (("a", 1.0), ("b", -1.0))]
    with pytest.raises(ModelError, match="natural coordinates do not share the coordinate 'q' between joints"):
        _ = mechanism_of(Machine.build(links, geared))
    with pytest.raises(ModelError, match="no ratio of 3 between a joint and its coordinate"):
        _ = mechanism_of(Machine.build(links[:1], [replace(geared[0], ratio=3.0)]))
