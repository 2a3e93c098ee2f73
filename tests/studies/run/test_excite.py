"""Motions one may run: limits of URDF files against Pinocchio and coal, which read the same files, and what is not checked, by name;
a trajectory message is read back as YAML."""

from __future__ import annotations

import sysconfig
import warnings
from dataclasses import replace
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin
import pytest
from ruamel.yaml import YAML

from identify.smooth_arm import truth
from strangers.pinocchio_oracle import PinModel
from veridyn.errors import FileError, IdentificationError, IdentificationWarning
from veridyn.files.machine.write import save_model
from veridyn.model.link import LinkCapsule
from veridyn.studies.config.study import load_study
from veridyn.studies.run.excite import ExcitationStudy, excitation, joint_trajectory

ROBOTS = Path(sysconfig.get_path("purelib")) / "cmeel.prefix" / "share" / "example-robot-data" / "robots"
public = pytest.mark.skipif(not ROBOTS.is_dir(), reason="the package example-robot-data is not installed")
HEAD = """
veridyn: 1
kind: excite
model: {file: %s}
motion: {harmonics: 1, frequency: 0.1%s}
search: {starts: 1, iterations: 4}
rate: 25
periods: 1
"""


def designed(folder: Path, robot: str, motion: str = "", more: str = "", noise: bool = True) -> ExcitationStudy:
    file = folder / "study.yaml"
    file.write_text(HEAD % (ROBOTS / robot if robot.endswith("urdf") else robot, motion) + more, encoding="utf-8")
    with warnings.catch_warnings():
        if noise:
            warnings.simplefilter("ignore")
        return excitation(load_study(file))


def samples(study: ExcitationStudy) -> tuple[np.ndarray, ...]:
    return study.plan.samples()


@public
def test_a_continuous_joint_beside_a_range_without_zero(tmp_path: Path) -> None:
    """A Kinova: joint 1 turns without end, joint 2 goes from 0.82 to 5.46. Ranges and speeds are kept, and what was not seen is listed."""
    done = designed(tmp_path, "kinova_description/robots/kinova.urdf")
    _, q, qd, _ = samples(done)
    names = done.plan.coordinates
    k = names.index("j2s6s200_joint_2")
    assert q[:, k].min() > 0.8203 and q[:, k].max() < 5.463 and np.abs(qd[:, k]).max() < 0.6284
    centre = done.plan.trajectory.centre[k]
    assert centre == pytest.approx((0.8203 + 5.4629) / 2.0, abs=1.5)
    assert done.plan.unchecked == (
        "acceleration of every joint",
        "collisions within the machine",
        "collisions with the floor",
    )
    assert done.plan.noise.assumed and done.figures["limits_not_checked"] == 3.0
    assert "range of j2s6s200_joint_1" not in done.plan.used


@public
def test_efforts_are_those_of_pinocchio_and_within_the_urdf(tmp_path: Path) -> None:
    """The arm of a Talos: inverse dynamics by Pinocchio with the friction of the file stays below every effort, as the plan states;
    without these limits the same study asks the shoulder for more than it may give."""
    robot = "talos_data/robots/talos_left_arm.urdf"
    model = pin.buildModelFromUrdf(str(ROBOTS / robot))

    def most(done: ExcitationStudy) -> dict[str, float]:
        _, q, qd, qdd = samples(done)
        order = [done.plan.coordinates.index(model.names[j]) for j in range(1, model.njoints)]
        data = model.createData()
        tau = np.array([pin.rnea(model, data, *(x[i][order] for x in (q, qd, qdd))) for i in range(len(q))])
        tau += model.friction * np.sign(qd[:, order]) + model.damping * qd[:, order]
        return dict(zip(model.names.tolist()[1:], np.abs(tau).max(axis=0).tolist(), strict=True))

    more = "limits: {force: {gripper_left_joint: 5}%s}\n"
    done = designed(tmp_path, robot, more=more % "")
    found = most(done)
    allowed = dict(zip(model.names.tolist()[1:], model.effortLimit.tolist(), strict=True))
    allowed["gripper_left_joint"] = 5.0
    for name, value in found.items():
        assert value < allowed[name]
        assert value <= done.plan.used[f"force of {name}"] * allowed[name] * 1.01
    assert not any("force" in x for x in done.plan.unchecked)
    free = designed(tmp_path, robot, more="limits: {urdf: [range, speed]}\n")
    assert max(v / model.effortLimit[k] for k, v in enumerate(most(free).values())) > 1.0
    assert "force of every joint" in free.plan.unchecked
    with pytest.raises(IdentificationError, match=r"force of gripper_left_joint: the dry friction of the model alone"):
        designed(tmp_path, robot)


PANDA = "panda_description/urdf/panda_collision.urdf"
POSE = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
START = ", ".join(f"panda_joint{k}: {x}" for k, x in enumerate(POSE, 1))


@public
def test_no_shape_of_the_urdf_touches_another_or_the_floor(tmp_path: Path) -> None:
    """A Panda with a floor, from where it stands: coal sees no collision of the file's own shapes in any pair that was checked, along
    the whole table from the first sample, which is the pose that was given. In random poses it sees collisions of both kinds."""
    model = pin.buildModelFromUrdf(str(ROBOTS / PANDA))
    shapes = pin.buildGeomFromUrdf(
        model, str(ROBOTS / PANDA), pin.GeometryType.COLLISION, package_dirs=[str(ROBOTS.parents[1])]
    )
    links = [g.name.rsplit("_", 1)[0] for g in shapes.geometryObjects]
    motion = f", centre: {{panda_joint4: -1.7}}, start: {{{START}, panda_finger_joint1: 0.02}}"
    more = "limits: {acceleration: 8, collision: {floor: 0.0, margin: 0.01, ignore: [[panda_link0, floor]]}}\n"
    done = designed(tmp_path, PANDA, motion, more)
    checked = {tuple(n.removeprefix("distance ").split(" to ")) for n in done.plan.used if n.startswith("distance ")}
    assert ("panda_link0", "panda_link5") in checked and ("panda_link5", "the floor") in checked
    _, q, _, _ = samples(done)
    assert q[0] == pytest.approx([*POSE, 0.02])
    for a, b in checked:
        for i in (k for k, x in enumerate(links) if x == a):
            for j in (k for k, x in enumerate(links) if x == b):
                shapes.addCollisionPair(pin.CollisionPair(min(i, j), max(i, j)))
    data, geometry = model.createData(), shapes.createData()
    ground, still = coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0), coal.Transform3s()

    def touching(row: np.ndarray) -> tuple[bool, bool]:
        """Whether checked shapes touch each other, and the floor."""
        full = pin.neutral(model)
        for name, value in (*zip(done.plan.coordinates, row, strict=True), ("panda_finger_joint2", row[-1])):
            full[model.joints[model.getJointId(name)].idx_q] = value
        each = pin.computeCollisions(model, data, shapes, geometry, full, True)
        low = False
        for k, g in enumerate(shapes.geometryObjects):
            if (links[k], "the floor") in checked:
                place = coal.Transform3s(geometry.oMg[k].rotation, geometry.oMg[k].translation)
                low |= bool(
                    coal.collide(g.geometry, place, ground, still, coal.CollisionRequest(), coal.CollisionResult())
                )
        return each, low

    assert not np.any([touching(row) for row in q[::4]])
    rng = np.random.default_rng(0)
    low, high = model.lowerPositionLimit[:8], model.upperPositionLimit[:8]
    assert np.any([touching(rng.uniform(low, high)) for _ in range(40)], axis=0).all()


ARM = """
limits:
  actuators: {q1: {range: [-2, 2], speed: 2}, q2: {range: [-2, 2], speed: 2}, q3: {range: [-2, 2], speed: 2},
    q4: {range: [-2, 2], speed: 2}}
  collision: {shapes: given, margin: 0.02, floor: -0.45, capsules: [
    {body: ground, start: [0, 0, -0.4], end: [0, 0, 0.1], radius: 0.1}, {body: "2", start: [0, 0, 0], end: [0.4, 0, 0], radius: 0.05},
    {body: "3", start: [0, 0, 0], end: [0, -0.3, 0], radius: 0.05}, {body: "4", start: [0, 0, 0.1], radius: 0.04}]}
"""


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("arm") / "arm.yaml"
    save_model(truth(), file)
    return str(file)


def test_capsules_of_a_study_are_kept_apart(tmp_path: Path, arm: str) -> None:
    done = designed(tmp_path, arm, ", centre: {q2: 1.2}", ARM)
    names = [n for n in done.plan.used if n.startswith("distance ")]
    assert names == [
        "distance ground to 3", "distance ground to 4", "distance 2 to 4",
        "distance 2 to the floor", "distance 3 to the floor", "distance 4 to the floor",
    ]  # fmt: skip
    assert all(0.0 < done.plan.used[n] < 1.0 for n in names)
    touching = "distance ground to 2 (touching in every posture)"
    assert done.plan.unchecked == ("acceleration of every joint", "force of every joint", touching)


IN_THE_MODEL = {
    "2": LinkCapsule((0.0, 0.0, 0.0), (0.4, 0.0, 0.0), 0.05),
    "3": LinkCapsule((0.0, 0.0, 0.0), (0.0, -0.3, 0.0), 0.05),
    "4": LinkCapsule((0.0, 0.0, 0.1), (0.0, 0.0, 0.1), 0.04),
}
BARE = """
limits:
  actuators: {q1: {range: [-2, 2], speed: 2}, q2: {range: [-2, 2], speed: 2}, q3: {range: [-2.6, 2.6], speed: 2},
    q4: {range: [-2, 2], speed: 2}}
  collision: {margin: 0.02, floor: -0.45%s}
"""


def with_capsules(folder: Path) -> str:
    machine = truth()
    links = (replace(k, capsules=(IN_THE_MODEL[k.name],) if k.name in IN_THE_MODEL else ()) for k in machine.links)
    save_model(replace(machine, links=tuple(links)), folder / "capsules.yaml", overwrite=True)
    return str(folder / "capsules.yaml")


def sampled(capsule: LinkCapsule, R: np.ndarray, p: np.ndarray, count: int = 41) -> np.ndarray:
    """Points (N, count, 3) of the segment."""
    line = np.linspace(capsule.start, capsule.end, count)
    return p[:, None] + np.einsum("nij,kj->nki", R, line)


def test_capsules_of_a_model_file_are_kept_apart(tmp_path: Path) -> None:
    """Poses by Pinocchio, points of the segments by brute force: bodies 2 and 4 stay apart and everything above the floor by the
    margin, as the shares of the limits say; without the section the same search goes through both. A body without capsules is listed."""
    file = with_capsules(tmp_path)
    done = designed(tmp_path, file, ", centre: {q2: 1.2}", BARE % "")
    names = [n for n in done.plan.used if n.startswith("distance ")]
    assert names == [
        "distance 2 to 4", "distance 2 to the floor", "distance 3 to the floor", "distance 4 to the floor",
    ]  # fmt: skip
    assert "collisions of 1 (no capsule in the model file)" in done.plan.unchecked
    stranger = PinModel(truth())

    def gaps(study: ExcitationStudy) -> dict[str, float]:
        """Least distance of the surfaces, as sampled."""
        q = samples(study)[1][::2]
        points = {name: sampled(c, *stranger.frame_pose(q, name)) for name, c in IN_THE_MODEL.items()}
        out = {
            f"distance {name} to the floor": float(x[:, :, 2].min()) + 0.45 - IN_THE_MODEL[name].radius
            for name, x in points.items()
        }
        between = np.linalg.norm(points["2"][:, :, None] - points["4"][:, None, :1], axis=-1).min()
        return out | {"distance 2 to 4": float(between) - 0.09}

    assert min(gaps(done).values()) > 0.02 - 1e-3  # of the sampling
    free = designed(tmp_path, file, ", centre: {q2: 1.2}", BARE.split("  collision")[0])
    assert min(gaps(free).values()) < 0.0


def test_capsules_of_the_study_stand_for_those_of_the_model_file(tmp_path: Path, arm: str) -> None:
    """A body with capsules in both has those of the study; shapes: given reads none of the file; a file without any is refused."""
    wide = ", capsules: [{body: '4', start: [0, 0, 0.1], radius: 5}]"
    done = designed(tmp_path, with_capsules(tmp_path), ", centre: {q2: 1.2}", BARE % wide)
    assert "distance 2 to 4 (touching in every posture)" in done.plan.unchecked
    assert "distance 3 to the floor" in done.plan.used
    assert "there is no shape to check" in refused(tmp_path, with_capsules(tmp_path), more=BARE % ", shapes: given")
    assert "the model has no shapes" in refused(tmp_path, arm, more=BARE % "")


def refused(folder: Path, arm: str, motion: str = "", more: str = ARM) -> str:
    with pytest.raises((FileError, IdentificationError)) as error:
        designed(folder, arm, motion, more)
    return str(error.value)


def test_bad_input_is_named_with_its_place(tmp_path: Path, arm: str) -> None:
    assert "'9' is no body" in refused(tmp_path, arm, more=ARM.replace('body: "4"', 'body: "9"'))
    assert "collision.ignore[1]" in refused(
        tmp_path, arm, more=ARM.replace("margin:", "ignore: [[flor, '2']], margin:")
    )
    assert "there is no shape to check" in refused(tmp_path, arm, more="limits: {collision: {shapes: given}}")
    one = ARM.replace(
        "shapes: given",
        "shapes: given, ignore: [['2', floor], ['3', floor], ['4', floor], ['2', '4'], [ground, '2'], [ground, '3'], [ground, '4']]",
    )
    assert "no pair of these capsules can touch" in refused(tmp_path, arm, more=one)
    assert "radius" in refused(tmp_path, arm, more=ARM.replace("radius: 0.1}", "radius: -1}"))
    assert "an acceleration must be above zero" in refused(
        tmp_path, arm, more=ARM.replace("limits:", "limits:\n  acceleration: -3")
    )
    assert "'q9' is no actuator" in refused(
        tmp_path, arm, more=ARM.replace("limits:", "limits:\n  acceleration: {q9: 3}")
    )
    assert "no place is given for q2, q3, q4" in refused(tmp_path, arm, ", start: {q1: 0}")
    assert "start, range of q1: the machine does not stand within its limits" in refused(
        tmp_path, arm, ", start: {q1: 3, q2: 1, q3: 0, q4: 0}"
    )
    assert "no deviation is given for q2, q3, q4" in refused(tmp_path, arm, more=ARM + "noise: {sigma: {q1: 1}}\n")
    assert "a force must be above zero" in refused(
        tmp_path, arm, more=ARM.replace("limits:", "limits:\n  force: {q1: -3}")
    )


def test_noise_is_never_assumed_silently(tmp_path: Path, arm: str) -> None:
    with pytest.warns(IdentificationWarning, match="no noise is given, so 1 N or"):
        done = designed(tmp_path, arm, ", centre: {q2: 1.2}", ARM, noise=False)
    assert done.plan.noise.assumed and "only their ratios count" in done.plan.summary()


def test_meshes_of_packages_that_are_not_found_are_named(tmp_path: Path) -> None:
    """Where no shape is left to check, the message says which bodies, which meshes, and where packages are looked for."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(
        f'<link name="{n}">{inertial}<collision><geometry><mesh filename="package://arm_description/{n}.stl"/></geometry>'
        "</collision></link>"
        for n in ("base", "upper", "lower")
    )
    joints = "".join(
        f'<joint name="{c}" type="revolute"><parent link="{a}"/><child link="{b}"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1" velocity="1" effort="10"/></joint>'
        for c, a, b in (("j1", "base", "upper"), ("j2", "upper", "lower"))
    )
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm">{links}{joints}</robot>')
    said = refused(tmp_path, str(tmp_path / "arm.urdf"), more="limits: {collision: {margin: 0.02}}")
    assert "there is no shape to check" in said
    assert "upper (its mesh package://arm_description/upper.stl is not found)" in said
    assert "ROS_PACKAGE_PATH" in said


@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_a_message_is_read_back(version: tuple[int, int]) -> None:
    """Fields of trajectory_msgs/JointTrajectory; numbers stay numbers in YAML 1.1 too, the times add up."""
    rng = np.random.default_rng(0)
    t = np.arange(130) / 100.0
    q, qd, qdd, effort = (rng.normal(size=(130, 2)) * 10.0 ** rng.integers(-9, 2, (130, 2)) for _ in range(4))
    reader = YAML(typ="safe", pure=True)
    reader.version = version
    said = reader.load(joint_trajectory(("a", "yes"), t, q, qd, qdd, effort))
    assert list(said) == ["header", "joint_names", "points"] and said["joint_names"] == ["a", "yes"]
    assert said["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    points = said["points"]
    assert list(points[0]) == ["positions", "velocities", "accelerations", "effort", "time_from_start"]
    for key, values in (("positions", q), ("velocities", qd), ("accelerations", qdd), ("effort", effort)):
        assert np.array([p[key] for p in points], dtype=np.float64) == pytest.approx(values, abs=1e-9)
    times = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in points]
    assert times == pytest.approx(t) and all(isinstance(p["time_from_start"]["sec"], int) for p in points)


def test_without_efforts_the_list_is_empty() -> None:
    one = np.ones((1, 1))
    said = YAML(typ="safe").load(joint_trajectory(("a",), np.zeros(1), one, one, one))
    assert said["points"][0]["effort"] == []
