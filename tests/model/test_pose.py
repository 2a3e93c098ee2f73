import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.pose import Pose

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
