"""Every URDF of example-robot-data is read, and moves as in Pinocchio, which reads the same file."""

import re
import sysconfig
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_urdf import exact_urdf, pin_forces
from strangers.random_trees import random_motion
from veridyn.errors import DataWarning, ModelError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf, read_urdf
from veridyn.identify.base import base_parameters
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
pytestmark = pytest.mark.skipif(not ROBOTS.is_dir(), reason="the package example-robot-data is not installed")
EMPTY = "ur_description/urdf/ur3.urdf"  # <robot> without a link, as a failed xacro left it

# Of version 6.0.0, with the number of coordinates and of links whose inertia no physical body has. Both by this reader; coordinates are
# compared with Pinocchio's joints below.
FILES = {
    "a1_description/urdf/a1.urdf": (12, 0),
    "alex_description/urdf/alex_nub_hands.urdf": (19, 0),
    "alex_description/urdf/alex_psyonic_hands.urdf": (39, 4),
    "alex_description/urdf/alex_sake_hands.urdf": (23, 0),
    "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf": (13, 0),
    "allegro_hand_description/urdf/allegro_left_hand.urdf": (16, 4),
    "allegro_hand_description/urdf/allegro_right_hand.urdf": (16, 4),
    "anymal_b_simple_description/robots/anymal-kinova.urdf": (18, 1),
    "anymal_b_simple_description/robots/anymal.urdf": (12, 1),
    "anymal_c_simple_description/urdf/anymal.urdf": (12, 5),
    "asr_twodof_description/urdf/TwoDofs.urdf": (2, 0),
    "b1_description/urdf/b1-z1.urdf": (19, 1),
    "b1_description/urdf/b1.urdf": (12, 1),
    "baxter_description/urdf/baxter.urdf": (17, 0),
    "bolt_description/robots/bolt.urdf": (6, 0),
    "borinot_description/urdf/borinot_flying_arm_2.urdf": (2, 0),
    "centauro_description/urdf/centauro.urdf": (39, 0),
    "double_pendulum_description/urdf/double_pendulum.urdf": (2, 0),
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf": (2, 0),
    "double_pendulum_description/urdf/double_pendulum_simple.urdf": (2, 0),
    "finger_edu_description/robots/finger_edu.urdf": (3, 0),
    "g1_description/urdf/g1_29dof_rev_1_0.urdf": (29, 0),
    "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf": (43, 0),
    "go1_description/urdf/go1.urdf": (12, 1),
    "go2_description/urdf/go2.urdf": (12, 0),
    "hector_description/robots/quadrotor_base.urdf": (0, 0),
    "hextilt_description/urdf/hextilt_flying_arm_5.urdf": (5, 0),
    "human_description/robots/human.urdf": (36, 0),
    "hyq_description/robots/hyq_no_sensors.urdf": (12, 5),
    "icub_description/robots/icub.urdf": (32, 0),
    "icub_description/robots/icub_reduced.urdf": (29, 0),
    "iris_description/robots/iris.urdf": (4, 0),
    "iris_description/robots/iris_simple.urdf": (0, 0),
    "kinova_description/robots/kinova.urdf": (6, 0),
    "laikago_description/urdf/laikago.urdf": (12, 0),
    "panda_description/urdf/panda.urdf": (8, 0),
    "panda_description/urdf/panda_collision.urdf": (8, 0),
    "pr2_description/urdf/pr2.urdf": (20, 2),
    "quadruped_description/urdf/quadruped.urdf": (8, 0),
    "romeo_description/urdf/romeo.urdf": (33, 0),
    "romeo_description/urdf/romeo_laas_small.urdf": (33, 5),
    "romeo_description/urdf/romeo_small.urdf": (31, 2),
    "simple_humanoid_description/urdf/simple_humanoid.urdf": (29, 0),
    "simple_humanoid_description/urdf/simple_humanoid_classical.urdf": (29, 0),
    "so_arm_description/urdf/so100.urdf": (6, 0),
    "so_arm_description/urdf/so101.urdf": (6, 0),
    "solo_description/robots/solo.urdf": (8, 0),
    "solo_description/robots/solo12.urdf": (12, 0),
    "talos_data/robots/talos_full_v2.urdf": (32, 0),
    "talos_data/robots/talos_full_v2_box.urdf": (32, 0),
    "talos_data/robots/talos_left_arm.urdf": (7, 0),
    "talos_data/robots/talos_reduced.urdf": (32, 0),
    "talos_data/robots/talos_reduced_box.urdf": (32, 0),
    "talos_data/robots/talos_reduced_corrected.urdf": (32, 0),
    "tiago_description/robots/tiago.urdf": (48, 2),
    "tiago_description/robots/tiago_dual.urdf": (101, 2),
    "tiago_description/robots/tiago_no_hand.urdf": (12, 2),
    "tiago_pro_description/robots/tiago_pro.urdf": (23, 0),
    "ur_description/urdf/ur10_joint_limited_robot.urdf": (6, 0),
    "ur_description/urdf/ur10_robot.urdf": (6, 0),
    "ur_description/urdf/ur3_gripper.urdf": (6, 0),
    "ur_description/urdf/ur3_joint_limited_robot.urdf": (6, 0),
    "ur_description/urdf/ur3_robot.urdf": (6, 0),
    "ur_description/urdf/ur5_gripper.urdf": (6, 0),
    "ur_description/urdf/ur5_joint_limited_robot.urdf": (6, 0),
    "ur_description/urdf/ur5_robot.urdf": (6, 0),
    "xarm_description/urdf/xarm7.urdf": (7, 0),
    "z1_description/urdf/z1.urdf": (7, 0),
}
QUICK = ("go1", "allegro_left", "TwoDofs", "panda.urdf", "tiago_no_hand", "talos_left_arm", "hyq", "psyonic")


def listed() -> list[object]:
    """All files; those that `make test` leaves out are marked slow."""
    return [
        pytest.param(f, marks=() if any(q in f for q in QUICK) else pytest.mark.slow, id=Path(f).stem) for f in FILES
    ]


def test_the_list_is_complete() -> None:
    found = {str(file.relative_to(ROBOTS)) for file in ROBOTS.rglob("*.urdf")}
    assert found == {*FILES, EMPTY}


@pytest.mark.parametrize("name", listed())
def test_it_is_read_with_one_line_for_each_kind_of_oddity(name: str, recwarn: pytest.WarningsRecorder) -> None:
    coordinates, broken = FILES[name]
    machine = load_model(ROBOTS / name)
    texts = [str(w.message) for w in recwarn]
    assert len(machine.coordinates) == coordinates
    assert len(texts) <= 3
    lines = [t for t in texts if "no physical body has" in t]
    assert [int(re.findall(r", (\d+) of", t)[0]) for t in lines] == ([broken] if broken else [])
    assert not any("\n" in t for t in lines)
    unknown = {n.split("_", 1)[1] for n in machine.parameters.missing()}
    assert len(unknown) == broken
    if broken:
        with pytest.raises(ModelError, match="no distribution of mass has this inertia") as e:
            load_model(ROBOTS / name, strict=True)
        assert sum("no distribution" in f.what for f in e.value.faults) == broken


@pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")
@pytest.mark.parametrize("name", listed())
def test_it_moves_as_in_pinocchio(name: str) -> None:
    """Joints, mass, and the forces of base and joints at random states, quarter turns being exact for both."""
    file = ROBOTS / name
    machine = load_urdf(file, "free", impossible="keep")
    machine = machine.with_parameters({e.parameter_name: 0.0 for e in machine.elements})
    model = pin.buildModelFromXML(exact_urdf(file), pin.JointModelFreeFlyer())
    said = read_urdf(file.read_bytes(), file.name)
    followers = {j.name: said.followed(j) for j in said.joints.values() if j.moves and j.leader}
    assert set(machine.coordinates) | set(followers) == set(list(model.names)[2:])
    mass = sum(machine.parameters[link.parameter("M")] for link in machine.links if link.real)
    assert mass == pytest.approx(pin.computeTotalMass(model), rel=1e-12)
    motion = random_motion(np.random.default_rng(7), machine, 2, wrenches=False)
    expected = pin_forces(model, machine, motion, followers)
    found = inverse_dynamics(machine, motion, engine="numpy")
    # Two recursions of sums and products: rounding only.
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * max(1.0, float(np.abs(expected).max())))


def test_a_file_without_a_link_is_refused() -> None:
    with pytest.raises(ModelError, match="there is no link"):
        load_model(ROBOTS / EMPTY)


@pytest.mark.filterwarnings("ignore:.*SI units:veridyn.errors.DataWarning")
def test_the_dummy_root_of_go1_keeps_its_mass_and_leaves_its_moments_open() -> None:
    with pytest.warns(DataWarning, match=r"go1.urdf, 1 of 46 links has an inertia that no physical body has \(base\)"):
        machine = load_model(ROBOTS / "go1_description/urdf/go1.urdf", base="free")
    assert machine.parameters["M_base"] == 1e-6
    assert machine.parameters.missing() == tuple(f"{symbol}_base" for symbol in ("XX", "XY", "XZ", "YY", "YZ", "ZZ"))


@pytest.mark.filterwarnings("ignore::veridyn.errors.DataWarning")
@pytest.mark.parametrize(
    "name",
    [
        "xarm_description/urdf/xarm7.urdf",
        "asr_twodof_description/urdf/TwoDofs.urdf",
        "hextilt_description/urdf/hextilt_flying_arm_5.urdf",
    ],
)
def test_rounded_angles_and_rotors_have_the_rank_of_exact_angles(name: str) -> None:
    """By the regressor of Pinocchio with quarter turns in full, a column for each rotor, on random states: singular values above 1e-9."""
    file = ROBOTS / name
    machine = load_urdf(file, "fixed", impossible="keep")
    machine = Machine.build(
        [replace(link, inertia=None) for link in machine.links],
        machine.joints,
        gravity=machine.gravity,
        elements=[Element(kind="inertia", on={c: 1.0}) for c in machine.coordinates],
    )
    base = base_parameters(machine)
    model = pin.buildModelFromXML(exact_urdf(file))
    data, rng, n = model.createData(), np.random.default_rng(3), model.nv
    assert n == len(machine.coordinates)
    W = []
    for _ in range(40 + 20 * n):
        q, v, a = pin.integrate(model, pin.neutral(model), rng.normal(size=n)), rng.normal(size=n), rng.normal(size=n)
        rigid = pin.computeJointTorqueRegressor(model, data, q, v, a).reshape(n, -1)
        W.append(np.column_stack([rigid, np.diag(a)]))
    s = np.linalg.svd(np.vstack(W), compute_uv=False)
    assert base.count == np.count_nonzero(s > 1e-9 * s[0])
    assert not any("99999" in line for line in base.relations())
