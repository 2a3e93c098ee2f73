"""Every machine of this package, of its tests and made at random is written and read back without a difference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from strangers import graph_machines, machine_files
from strangers.machines import MACHINES
from strangers.natural_mechanisms import parallelogram, rack_and_pinion, random_mechanism, turning_fourbar
from strangers.random_trees import random_open_machine
from strangers.twins import crane_twin, linkage_twin, spatial_twin
from studies.small_arm import small_arm
from veridyn.errors import FileError, ModelError
from veridyn.files.access import shipped_files
from veridyn.files.machine.load import load_model, parse_machine
from veridyn.files.machine.write import model_text, save_model
from veridyn.files.machine.write_parts import differences
from veridyn.mechanics.natural.description.mechanism import Mechanism
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.description.to_machine import machine_of_mechanism
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import coulomb, spring, tyre
from veridyn.model.link import Joint, Link, LinkCapsule
from veridyn.model.load import Drive, Force, Torque
from veridyn.model.machine import Machine
from veridyn.model.parameters import Drift, Uncertainty
from veridyn.model.place import Assembly, Attachment, Marker
from veridyn.model.sensor import Sensor
from veridyn.spatial.rotations import MDH, Placement, rpy

SHIPPED = [file for file in shipped_files().values() if file.suffix == ".yaml"]
FILES = {name: text for name, text in vars(machine_files).items() if name.isupper() and isinstance(text, str)}
GRAPHS = {
    "slider_crank": graph_machines.slider_crank,
    "rssr": graph_machines.rssr,
    "arm": graph_machines.seven_joint_arm,
}
OTHERS = {
    **GRAPHS,
    **MACHINES,
    "parallelogram": lambda: machine_of_mechanism(parallelogram()),
    "rack": lambda: machine_of_mechanism(rack_and_pinion()),
    "turning four-bar": lambda: machine_of_mechanism(turning_fourbar()),
}
TWINS = (crane_twin, linkage_twin, spatial_twin)


def back(machine: Machine) -> Machine:
    """What is read from what is written; refused unless it is the same."""
    again = parse_machine(model_text(machine), "written.yaml")
    assert differences(machine, again) == ()
    return again


@pytest.mark.parametrize("file", SHIPPED, ids=lambda f: f.stem)
def test_shipped_machines(file: Path) -> None:
    again = back(load_model(file))
    assert model_text(again) == model_text(load_model(file))


@pytest.mark.parametrize("name", FILES)
def test_mechanisms_of_the_tests(name: str) -> None:
    machine = parse_machine(FILES[name], name)
    again = back(machine)
    assert mechanism_of(again).coordinates == mechanism_of(machine).coordinates


@pytest.mark.parametrize("name", OTHERS)
def test_machines_of_the_tests(name: str) -> None:
    back(OTHERS[name]())


@pytest.mark.parametrize("made", TWINS)
def test_twins(made) -> None:
    twin = made()
    for part in vars(twin).values():
        if isinstance(part, Tree | Mechanism):
            back(machine_of_tree(part) if isinstance(part, Tree) else machine_of_mechanism(part))


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32 - 1), base=st.sampled_from(["fixed", "free"]), inertia=st.booleans(), shared=st.booleans()
)
def test_random_trees(seed: int, base: str, inertia: bool, shared: bool) -> None:
    rng = np.random.default_rng(seed)
    back(random_open_machine(rng, base=base, virtual=0.2, shared=shared, inertia=inertia))  # pyright: ignore[reportArgumentType]


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1), dimension=st.sampled_from([2, 3]), bodies=st.integers(1, 4))
@example(seed=275, dimension=3, bodies=1)  # products of inertia that rounding makes unequal
def test_random_mechanisms(seed: int, dimension: int, bodies: int) -> None:
    back(machine_of_mechanism(random_mechanism(np.random.default_rng(seed), dimension, bodies).mechanism))


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
numbers = st.floats(-1e3, 1e3)
vectors = st.tuples(numbers, numbers, numbers)
placements = st.one_of(
    st.builds(MDH, *[numbers] * 6),
    st.builds(lambda angles, p: Placement(rpy(*angles), p), vectors, vectors),
    st.just(Placement()),
)
capsules = st.one_of(
    st.builds(LinkCapsule, vectors, vectors, st.floats(1e-3, 1.0)),
    st.builds(lambda x, r: LinkCapsule(x, x, r), vectors, st.floats(1e-3, 1.0)),
)


@st.composite
def graphs(draw: st.DrawFn) -> Machine:
    """A chain of joints of every kind between frames, with loads, sensors, elements, prescribed coordinates and an uncertainty."""
    count = draw(st.integers(1, 4))
    links = []
    for k in range(count):
        frames = draw(st.dictionaries(st.sampled_from(["tip", "side"]), placements, max_size=2))
        m, c, r = draw(st.floats(0.1, 10)), np.array(draw(vectors)) * 1e-3, draw(st.floats(0.1, 2))
        ten = np.concatenate([np.array([r, 0, 0, r, 0, r]) * 10 + 0 * m, m * 1e-3 * c, [m]])
        known = draw(st.booleans())
        links.append(
            Link(
                name=f"b{k}",
                inertia=ten if known else None,
                frames=frames,
                label=draw(st.sampled_from(["", f"{k}"])),
                capsules=draw(st.lists(capsules, max_size=3)),
            )
        )
    joints, kinds = [], ("turning", "sliding", "cylindrical", "universal", "planar", "spherical", "fixed", "floating")
    for k in range(count):
        before = "ground" if k == 0 else f"b{draw(st.integers(0, k - 1))}"
        end = draw(st.sampled_from([before, Attachment(before, draw(placements))]))
        frames = [*links[k].frames]
        own = draw(st.sampled_from([f"b{k}", *(f"b{k}.{f}" for f in frames), Attachment(f"b{k}", draw(placements))]))
        kind = draw(st.sampled_from(kinds))
        probe = Joint(name=f"j{k}", kind=kind, a=end, b=own)  # pyright: ignore[reportArgumentType]
        named = tuple(f"c{k}{i}" for i in range(len(probe.course.steps))) if draw(st.booleans()) else ()
        joints.append(
            replace(probe, coordinates=named, actuated=draw(st.booleans()), cut=draw(st.sampled_from(["auto", "no"])))
        )
    coordinates = [c for j in joints for c in j.coordinate_names]
    free = joints[0].kind == "floating"
    used = [c for c in coordinates if not (free and c in joints[0].coordinate_names)]
    loads = [Force("push", Marker("b0", draw(vectors)), draw(vectors)), Torque("twist", "b0", draw(vectors))]
    sensors = [
        Sensor("imu", "accelerometer", Marker("b0", draw(vectors), (1, 0, 0), (0, 1, 0)), 0.1, axes="xz", rate=50.0)
    ]
    elements, assembly = [], Assembly()
    if used:
        c = draw(st.sampled_from(used))
        loads.append(Drive("drive", c, draw(numbers)))
        sensors.append(
            Sensor(
                "encoder", "coordinate", c, 0.01, quantum=draw(st.just(0.0) | st.floats(1e-9, 1)), bias=draw(numbers)
            )
        )
        elements = [spring({c: -2.0}, draw(st.one_of(st.just(np.nan), numbers)), draw(names)), coulomb(c, 1.0, "fs")]
        assembly = Assembly({}, {c: draw(numbers)})
    machine = Machine.build(
        links,
        joints,
        name=draw(names),
        elements=elements,
        loads=loads,
        sensors=sensors,
        assembly=assembly,
        gravity=draw(vectors),
    )
    if elements:
        machine = machine.with_parameters(machine.parameters.known(["fs"]))
        root = np.array([[draw(st.floats(0.01, 10)), 0.0], [draw(numbers), draw(st.floats(0.01, 10))]])
        machine = machine.with_uncertainty(Uncertainty(("fs", machine.parameters.names[0]), root @ root.T))
    return machine


@settings(max_examples=7, deadline=None, suppress_health_check=list(HealthCheck))
@given(machine=graphs())
def test_random_graphs(machine: Machine) -> None:
    back(machine)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(machine=graphs())
def test_more_random_graphs(machine: Machine) -> None:
    back(machine)


def test_parameters_states_and_formulation_of_described_machines() -> None:
    crane = load_model(SHIPPED[[f.stem for f in SHIPPED].index("crane")])
    other = crane.with_formulation("tree").with_elements([coulomb("x", 2.0, "fs")])
    other = other.with_parameters(
        other.parameters.replacing({"M_load": 300.0}).known(["M_load"]).tied({"YY_load": "XX_load"})
    )
    other = other.with_parameters(other.parameters.drifting({"fs": Drift(0.3, 900.0)}))
    sized = other.with_uncertainty(Uncertainty(("fs", "M_load"), np.diag([0.25, 4.0])))
    again = back(sized)
    assert dict(again.parameters.drifts) == {"fs": Drift(0.3, 900.0)}
    assert again.formulation == "tree" and again.parameters["M_load"] == 300.0
    assert "sigma: {fs: 0.5, M_load: 2.0}" in model_text(sized)
    assert [b.mass for b in mechanism_of(back(crane.with_parameters({"M_load": 300.0}))).bodies] == [80.0, 3.0, 300.0]


def test_a_pose_that_is_not_that_of_the_points_is_kept() -> None:
    crane = load_model(SHIPPED[[f.stem for f in SHIPPED].index("crane")])
    assert "assembly" not in model_text(crane)
    moved = replace(crane, assembly=Assembly({"x": 1.0}, {"swing": 0.2}))
    assert dict(back(moved).assembly.hold) == {"x": 1.0}


def test_what_a_file_cannot_hold_is_refused_by_part() -> None:
    crane = load_model(SHIPPED[[f.stem for f in SHIPPED].index("crane")])
    other = replace(crane, joints=(replace(crane.joints[0], name="track"), *crane.joints[1:]))
    with pytest.raises(ModelError, match=r"crane: a model file cannot hold its joints"):
        model_text(other)


def test_a_file_is_never_written_over_in_silence(tmp_path: Path) -> None:
    file = tmp_path / "arm.yaml"
    machine = graph_machines.seven_joint_arm()
    save_model(machine, file)
    assert differences(load_model(file), machine) == ()
    with pytest.raises(FileError, match="nothing is written over"):
        save_model(machine, file)
    save_model(machine, file, overwrite=True)
    save_model(machine.with_formulation("natural"), file, overwrite=True)
    assert load_model(file).formulation == "natural"
    assert [f.name for f in tmp_path.iterdir()] == ["arm.yaml"]


def test_the_suffix_chooses_the_format(tmp_path: Path) -> None:
    """A URDF and an MJCF are those of the exporters; what is of another program is refused, and nothing is written."""
    machine = small_arm()
    for name, beginning in (
        ("a.urdf", "<?xml"),
        ("a.xml", "<mujoco"),
        ("a.mjcf", "<mujoco"),
        ("a.yaml", "veridyn: 2"),
        ("a", "veridyn: 2"),
    ):
        save_model(machine, tmp_path / name)
        assert (tmp_path / name).read_text().startswith(beginning), name
        if name != "a":
            assert load_model(tmp_path / name).coordinates == machine.coordinates
    for name in ("a.sdf", "a.json", "a.png", "a.py"):
        with pytest.raises(FileError, match="a model file is not written into a") as caught:
            save_model(machine, tmp_path / name)
        assert ".yaml" in caught.value.faults[0].expected and not (tmp_path / name).exists()


def test_a_tyre() -> None:
    """A law with its own states, on a wheel."""
    law = {"UNLOADED_RADIUS": 0.3, "VERTICAL_STIFFNESS": 2e5, "FNOMIN": 4e3}
    slips = {"C_KAPPA": 8e4, "C_ALPHA": 6e4, "SIGMA_KAPPA": 0.3, "SIGMA_ALPHA": 0.4}
    rolling = tyre(Marker("wheel", (0, 0, 0), axis=(0, 1, 0)), {**law, **slips}, kind="linear_tyre")
    wheel = Link(name="wheel", inertia=[1.0, 0, 0, 1.0, 0, 1.0, 0, 0, 0, 20.0])
    machine = Machine.build([wheel], [Joint(name="free", kind="floating", a="ground", b="wheel")], elements=[rolling])
    again = back(machine)
    assert again.elements == machine.elements
    with pytest.raises(ModelError, match=r"element 'tyre_wheel' \(line \d+\): there is no body 'weel'"):
        parse_machine(model_text(machine).replace("wheel: {body: wheel", "name: tyre_wheel, wheel: {body: weel"))
