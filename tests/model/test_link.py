"""Joints between frames: their motion, its inverse, and their names."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from veridyn.errors import Faults
from veridyn.model.link import COURSES, Joint, Link, LinkCapsule, check_capsule, moved_by, values_of

GOOD = LinkCapsule((0.0, 0.0, 0.0), (0.4, 0.0, 0.0), 0.05)


def faults(capsule: LinkCapsule) -> list[str]:
    found = Faults()
    check_capsule(capsule, "body 'arm', capsule 1", found)
    return [str(f) for f in found.found]


def test_each_fault_has_its_place() -> None:
    assert faults(GOOD) == []
    bad = LinkCapsule((0.0, 0.0), (np.inf, 0.0, 0.0), -0.1)  # pyright: ignore[reportArgumentType]
    start, end, radius = faults(bad)
    assert "body 'arm', capsule 1: its start is not a point." in start and "its end is not a point." in end
    assert "a radius must be above zero." in radius and "-0.1" in radius
    assert len(faults(LinkCapsule(GOOD.start, GOOD.end, float("nan")))) == 1


def test_capsules_travel_between_processes_with_their_body() -> None:
    link = Link(name="arm", capsules=[GOOD])  # pyright: ignore[reportArgumentType]
    assert pickle.loads(pickle.dumps(link)).capsules == (GOOD,)


SAMPLE = (0.3, -0.4, 0.5, 0.7, -0.6, 0.2)


def _closed_form(kind: str, q: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """M(q) as the table of the module says it, by SciPy's rotations."""

    def turn(axes: str, *angles: float) -> np.ndarray:
        return Rotation.from_euler(axes, angles).as_matrix()

    none = np.zeros(3)
    return {
        "turning": lambda: (turn("Z", q[0]), none),
        "sliding": lambda: (np.eye(3), np.array([0, 0, q[0]])),
        "cylindrical": lambda: (turn("Z", q[1]), np.array([0, 0, q[0]])),
        "universal": lambda: (turn("ZXZ", q[0], np.pi / 2, q[1]), none),
        "planar": lambda: (turn("Z", q[2]), np.array([q[0], q[1], 0])),
        "spherical": lambda: (turn("ZYX", *q), none),
        "floating": lambda: (turn("ZYX", *q[3:]), np.array(q[:3])),
        "fixed": lambda: (np.eye(3), none),
    }[kind]()


@pytest.mark.parametrize("kind", [kind for kind in COURSES if kind != "distance"])
def test_the_motion_is_that_of_the_table_and_values_invert_it(kind: str) -> None:
    joint = Joint(name="j", kind=kind, a="ground", b="body")
    q = SAMPLE[: len(joint.course.steps)]
    R, p = moved_by(joint, q)
    expected = _closed_form(kind, q)
    assert np.abs(R - expected[0]).max() <= 1e-15 * 10
    assert np.abs(p - expected[1]).max() <= 1e-15
    assert values_of(joint, R, p) == pytest.approx(q, abs=1e-14)


def test_a_ratio_scales_the_coordinate() -> None:
    joint = Joint(name="j", a="ground", b="body", ratio=-2.0)
    R, p = moved_by(joint, [0.2])
    assert pytest.approx(-0.4) == np.arctan2(R[1, 0], R[0, 0])
    assert values_of(joint, R, p) == pytest.approx([0.2])


def test_default_names_of_coordinates() -> None:
    assert Joint(name="elbow", a="ground", b="x").coordinate_names == ("elbow",)
    assert Joint(name="7", a="ground", b="x").coordinate_names == ("q7",)
    hip = Joint(name="hip", kind="spherical", a="ground", b="x")
    assert hip.coordinate_names == ("hip_yaw", "hip_pitch", "hip_roll")
    assert Joint(name="hip", kind="fixed", a="ground", b="x").coordinate_names == ()
    assert Joint(name="hip", kind="universal", a="ground", b="x", coordinates=("u", "v")).coordinate_names == ("u", "v")


def test_motors_of_single_coordinates() -> None:
    joint = Joint(name="j", kind="cylindrical", a="ground", b="x", actuated=("j_z",))
    assert joint.motors == (True, False)
    assert Joint(name="j", kind="planar", a="ground", b="x", actuated=True).motors == (True, True, True)


def test_a_link_travels_between_processes() -> None:
    link = Link(name="arm", inertia=np.arange(10.0), label="3")
    back = pickle.loads(pickle.dumps(link))
    assert (back.name, back.label, back.real) == ("arm", "3", True)
    assert np.array_equal(back.ten, link.ten)
    assert np.isnan(Link(name="arm").ten).all()
    assert not Link(name="ring", real=False).ten.any()
