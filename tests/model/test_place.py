"""Places on bodies: their axes, the same place seen from another body, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.random_trees import random_rotation
from veridyn.errors import Faults
from veridyn.model.place import Marker, check_marker, frame


def test_axes_are_right_handed_and_square() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        axis, side = rng.normal(size=(2, 3))
        for marker in (Marker("b", (0, 0, 0), axis, side), Marker("b", (0, 0, 0), axis)):
            R = np.column_stack(frame(marker))
            assert np.abs(R.T @ R - np.eye(3)).max() < 1e-14 and np.linalg.det(R) > 0.0
            assert R[:, 0] @ axis == pytest.approx(np.linalg.norm(axis))
        assert np.column_stack(frame(Marker("b", (0, 0, 0), axis, side)))[:, 1] @ side > 0.0
    x, y, none = frame(Marker("b", (0, 0), (3.0, 4.0)))
    assert x == pytest.approx((0.6, 0.8)) and y == pytest.approx((-0.8, 0.6)) and not none.any()


def test_a_place_on_another_body_is_the_same_place() -> None:
    rng = np.random.default_rng(1)
    R, p = random_rotation(rng), rng.normal(size=3)
    marker = Marker("b", rng.normal(size=3), rng.normal(size=3), rng.normal(size=3))
    moved = marker.moved("a", R, p)
    assert moved.body == "a" and moved.at == pytest.approx(p + R @ np.array(marker.at))
    assert np.column_stack(frame(moved)) == pytest.approx(R @ np.column_stack(frame(marker)))
    assert Marker("b", (1, 2, 3)).moved("a", R, p).axis == ()


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        (Marker("lever", (0, 0, 0)), "there is no body 'lever'.* Did you mean 'level'"),
        (Marker("level", (0, 0)), "marker on 'level': this is no place or direction here"),
        (Marker("level", (0, 0, float("nan"))), "this is no place or direction here"),
        (Marker("level", (0, 0, 0), (1, 0)), "axis on 'level': this is no place or direction here"),
        (Marker("level", (0, 0, 0), (0, 0, 0)), "the axis has length zero"),
        (Marker("level", (0, 0, 0), (0, 0, 1), (0, 0, -2)), "the side is along the axis"),
        (Marker("level", (0, 0, 0), (0, 0, 1), (0, 0)), "side on 'level': this is no place or direction here"),
        (Marker("level", (0, 0, 0), side=(0, 0, 1)), "the marker has a side and no axis"),
    ],
)
def test_what_is_refused(marker: Marker, message: str) -> None:
    faults = Faults()
    check_marker(marker, ["level"], 3, "sensor 's'", faults)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        raise ValueError("\n".join(str(f) for f in faults.found))


def test_in_the_plane_the_axis_is_enough() -> None:
    faults = Faults()
    check_marker(Marker("level", (0, 0), (1, 0), (0, 1)), ["level"], 2, "sensor 's'", faults)
    check_marker(Marker("ground", (0, 0), (1, 0)), ["level"], 2, "sensor 't'", faults)
    assert [f.where for f in faults.found] == ["sensor 's', marker on 'level'"]
