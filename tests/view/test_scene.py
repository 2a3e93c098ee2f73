import json

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.view.scene import FINE, Layer, scene


def swinging(frames: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    t = np.linspace(0.0, 10.0, frames)
    points = np.zeros((frames, 2, 3))
    points[:, 1, 0], points[:, 1, 2] = np.sin(t), -np.cos(t)
    return t, points


def test_the_payload_gives_the_points_back_to_a_step_of_the_grid() -> None:
    t, points = swinging()
    made = scene(t, [Layer("rod", points, [(0, 1)], trails=[1])], "A pendulum", frames=50)
    data = json.loads(made.payload())
    assert len(data["t"]) == 50 and data["t"][0] == 0.0 and data["t"][-1] == 10.0
    back = np.array(data["layers"][0]["points"]).reshape(50, 2, 3) * data["step"] + data["low"]
    assert np.abs(back - made.layers[0].points).max() <= 0.5001 * data["step"]
    assert data["step"] == pytest.approx(np.ptp(made.layers[0].points, axis=(0, 1)).max() / FINE)


def test_a_machine_that_the_eye_follows_is_as_fine_as_one_that_stays() -> None:
    """A rod of two metres that travels a kilometre: its points come back to half of 2 m/FINE."""
    t = np.linspace(0.0, 10.0, 40)
    ends = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    points = ends + np.array([100.0, 3.0, 0.0]) * t[:, None, None]
    data = json.loads(scene(t, [Layer("rod", points, [(0, 1)])], "far", follow=True).payload())
    back = np.array(data["layers"][0]["points"]).reshape(len(t), 2, 3) * data["step"] + data["low"]
    assert data["step"] == pytest.approx(2.0 / FINE) and np.abs(back - points).max() <= 0.5001 * data["step"]


def test_frames_are_even_in_time_even_where_samples_are_not() -> None:
    t = np.concatenate([np.linspace(0, 1, 900), np.linspace(1.01, 10, 100)])
    made = scene(t, [Layer("rod", np.random.default_rng(1).normal(size=(1000, 1, 3)), [])], "x", frames=20)
    assert np.abs(np.diff(made.t) - 10 / 19).max() < 0.11


def test_a_label_cannot_end_the_script() -> None:
    t, points = swinging(5)
    assert "</script>" not in scene(t, [Layer("</script><b>", points, [])], "x").payload()


@pytest.mark.parametrize(
    ("points", "segments", "said"),
    [
        (np.zeros((4, 2, 3)), [], r"layer 'rod': .*wrong shape.*\n.*\(5, points, 3\), found \(4, 2, 3\)"),
        (np.full((5, 2, 3), np.nan), [], "not finite"),
        (np.zeros((5, 2, 3)), [(0, 2)], r"points that are not there.*\n.*\(0, 2\)"),
    ],
)
def test_points_that_cannot_be_shown_are_named(points: np.ndarray, segments: list, said: str) -> None:
    with pytest.raises(DataError, match=said):
        scene(np.arange(5.0), [Layer("rod", points, segments)], "x")
