"""Motions: shapes, clocks and numbers are checked when they are made, all at once."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.motion import BaseMotion, Motion, Pose

EYE = np.tile(np.eye(3), (4, 1, 1))


def test_a_pose_holds_what_it_was_given() -> None:
    pose = Pose(np.arange(4.0), EYE, np.ones((4, 3)))
    assert len(pose) == 4 and pose.position.dtype == np.float64


@pytest.mark.parametrize(
    ("t", "R", "p", "text"),
    [
        (np.arange(4.0), EYE[:3], np.ones((4, 3)), r"pose.rotation: wrong shape"),
        (np.arange(4.0), EYE, np.full((4, 3), np.nan), r"pose.position: it holds NaN"),
        (np.arange(4.0), 1.1 * EYE, np.ones((4, 3)), r"no rotations"),
        (np.arange(4.0), EYE * np.array([1.0, 1.0, -1.0]), np.ones((4, 3)), r"det R = -1"),
        (np.array([0.0, 1.0, 1.0, 2.0]), EYE, np.ones((4, 3)), r"stands still or runs backwards"),
    ],
)
def test_what_is_no_pose_is_refused(t: np.ndarray, R: np.ndarray, p: np.ndarray, text: str) -> None:
    with pytest.raises(DataError, match=text):
        Pose(t, R, p)


N = 6
T = np.linspace(0.0, 1.0, N)


def motion(**changes: object) -> Motion:
    rng = np.random.default_rng(0)
    fields = {"t": T, "q": rng.random((N, 2)), "qd": rng.random((N, 2)), "qdd": rng.random((N, 2))}
    return Motion(**(fields | changes))


def with_base(**changes: object) -> Motion:
    three = np.ones((N, 3))
    return motion(base=BaseMotion(**({"omega": three, "omega_dot": three, "acceleration": three} | changes)))


def test_lists_become_arrays() -> None:
    m = Motion([0, 1], [[1], [2]], [[0], [0]], [[0], [0]], signals={"i": [1, 2]}, wrenches={"a": [[0] * 6] * 2})
    assert m.q.dtype == np.float64
    assert (len(m), m.n) == (2, 1)
    assert m.signals["i"].shape == (2,)
    assert m.wrenches["a"].shape == (2, 6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"qd": np.zeros((N, 3))}, r"motion.qd: wrong shape.\nExpected \(6, 2\), found \(6, 3\)"),
        ({"qdd": np.zeros((N - 1, 2))}, r"motion.qdd: wrong shape"),
        ({"q": np.zeros(N)}, r"motion.q: wrong shape.\nExpected \(6, n\), found \(6,\)"),
        ({"t": np.zeros((N, 1))}, r"motion.t: the clock is not a line of times.\nExpected \(N,\), found \(6, 1\)"),
        ({"forces": np.zeros((N, 1))}, r"motion.forces: wrong shape"),
        ({"wrenches": {"arm": np.zeros((N, 3))}}, r"motion.wrenches\['arm'\]: wrong shape.\nExpected \(6, 6\)"),
        ({"signals": {"i": np.zeros((N, 1))}}, r"motion.signals\['i'\]: wrong shape"),
        (
            {"q": np.where(np.eye(N, 2) > 0, np.nan, 0)},
            r"NaN or infinite values.\nFound 2 of 12, the first at sample 0",
        ),
        ({"signals": {"i": np.full(N, np.inf)}}, r"motion.signals\['i'\]: it holds NaN or infinite"),
        (
            {"t": np.array([0, 1, 2, 2, 3, 4])},
            "stands still or runs backwards.\nExpected increasing times, found 2 s then 2 s at sample 3",
        ),
        ({"t": T[::-1]}, "runs backwards"),
        ({"t": np.full(N, np.nan)}, "clock holds NaN"),
    ],
)
def test_faults(changes: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        motion(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"omega": np.zeros((N, 2))}, r"motion.base.omega: wrong shape.\nExpected \(6, 3\)"),
        ({"velocity": np.full((N, 3), np.nan)}, r"motion.base.velocity: it holds NaN"),
    ],
)
def test_faults_of_the_base(changes: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        with_base(**changes)


def test_all_faults_at_once() -> None:
    with pytest.raises(DataError) as caught:
        motion(t=T[::-1], qd=np.zeros((N, 3)), wrenches={"arm": np.zeros(3)}, signals={"i": np.full(N, np.nan)})
    assert {fault.where for fault in caught.value.faults} == {
        "motion.qd",
        "motion.wrenches['arm']",
        "motion.signals['i']",
        "motion.t",
    }


def test_forces_may_be_unmeasured() -> None:
    forces = np.full((N, 2), np.nan)
    assert np.isnan(motion(forces=forces).forces).all()


@pytest.mark.parametrize("part", [slice(1, 4), np.array([0, 2, 5]), T > 0.5])
def test_some_of_the_samples(part: slice | np.ndarray) -> None:
    three = np.arange(3.0 * N).reshape(N, 3)
    whole = motion(
        base=BaseMotion(three, three + 1, three + 2, three + 3),
        forces=np.ones((N, 2)),
        wrenches={"a": np.ones((N, 6))},
        signals={"i": T},
    )
    some = whole[part]
    assert len(some) == len(T[part])
    np.testing.assert_array_equal(some.q, whole.q[part])
    np.testing.assert_array_equal(some.base.velocity, three[part] + 3)
    np.testing.assert_array_equal(some.signals["i"], T[part])
    assert some.forces.shape == (len(some), 2)
    assert some.wrenches["a"].shape == (len(some), 6)


def test_a_slice_copies_nothing() -> None:
    whole = motion()
    assert np.shares_memory(whole[1:3].q, whole.q)


def test_one_sample_is_a_motion() -> None:
    assert len(motion()[2:3]) == 1
