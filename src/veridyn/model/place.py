"""Places on bodies, in every formulation: where joints end, sensors and loads sit, and where a closed machine stands when assembled.

Names that every part of a description uses, the ground's and those of inertial parameters, are here as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked_record
from veridyn.arrays import Array, Record
from veridyn.errors import Faults, did_you_mean, within
from veridyn.spatial.rotations import MDH, Placement

GROUND = "ground"
Numbers = tuple[float, ...]
QUARTER_TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
PARALLEL_SINE = 1e-6  # sine of the smallest angle between an axis and the direction beside it
Home = tuple[str, Array, Array]  # a body, and where on it another frame sits: rotation (3, 3) and position (3,)


def parameter_name(symbol: str, label: str) -> str:
    """The name of a body's parameter: ZZ6 for the label '6', ZZ_forearm for 'forearm'."""
    return f"{symbol}{label}" if label[:1].isdigit() else f"{symbol}_{label}"


def numbers(values: ArrayLike) -> Numbers:
    """Any sequence of numbers, or one, as a tuple of floats."""
    return tuple(float(v) for v in np.asarray(values, dtype=np.float64).reshape(-1))


@checked_record
@dataclass(frozen=True)
class Marker:
    """A place on a body (or on "ground"), in that body's frame, with an axis and, where it matters, a direction beside it.

    Of a joint, `axis` is its axis. Of a sensor, `axis` and `side` are its own x and y; see :func:`frame`.

    Examples
    --------
    >>> import veridyn as vd
    >>> imu = vd.Marker("forearm", at=[0.2, 0.0, 0.05], axis=[1.0, 0.0, 0.0], side=[0.0, 0.0, 1.0])
    >>> vd.Sensor("imu", "accelerometer", imu, 0.05).on.body
    'forearm'
    """

    body: str
    at: Sequence[float]
    axis: Sequence[float] = ()
    side: Sequence[float] = ()

    def __post_init__(self) -> None:
        for part in ("at", "axis", "side"):
            object.__setattr__(self, part, numbers(getattr(self, part)))

    def moved(self, body: str, rotation: Array, position: Array) -> Marker:
        """The same place given on another body, on which the frame of this one sits at `rotation` and `position`."""
        return Marker(
            body,
            numbers(position + rotation @ np.array(self.at)),
            numbers(rotation @ np.array(self.axis)) if self.axis else (),
            numbers(rotation @ np.array(self.side)) if self.side else (),
        )


PointRef = str | Marker


def moved_place(on: PointRef, homes: Mapping[str, Home], with_axes: bool = False) -> PointRef:
    """A place on a tree given on the body it is now part of; `with_axes`, axes that were the old body's are written out."""
    body = on.body if isinstance(on, Marker) else on
    if body not in homes:
        return on
    new, R, p = homes[body]
    if new == body and np.array_equal(R, np.eye(3)) and not np.any(p):
        return on
    place = on if isinstance(on, Marker) else Marker(body, (0.0, 0.0, 0.0))
    if with_axes and not place.axis:
        place = replace(place, axis=(1.0, 0.0, 0.0), side=(0.0, 1.0, 0.0))
    return place.moved(new, R, p)


def frame(marker: Marker) -> tuple[Array, Array, Array]:
    """Axis, side and the third direction of a marker in its body's frame: right-handed unit vectors; in the plane the third is zero."""
    axis = np.array(marker.axis)
    axis = axis / np.linalg.norm(axis)
    if len(axis) == 2:
        return axis, QUARTER_TURN @ axis, np.zeros(2)
    side = np.array(marker.side) if marker.side else np.eye(3)[np.argmin(np.abs(axis))]
    side = side - (side @ axis) * axis
    side = side / np.linalg.norm(side)
    return axis, side, np.cross(axis, side)


def check_place(at: object, dimension: int, where: str, faults: Faults) -> bool:
    """Whether this is a place or direction: as many finite numbers as there are dimensions."""
    x = np.asarray(at, dtype=np.float64)
    good = x.shape == (dimension,) and bool(np.isfinite(x).all())
    if not good:
        faults.add(
            "this is no place or direction here.",
            where=where,
            expected=f"{dimension} finite numbers",
            found=f"{x.tolist()}",
        )
    return good


def check_marker(marker: Marker, bodies: Collection[str], dimension: int, where: str, faults: Faults) -> None:
    """Refuse a marker on a body that does not exist, or with numbers that give no place or no axes."""
    if marker.body != GROUND and marker.body not in bodies:
        faults.add(f"there is no body '{marker.body}'.", where=where, hint=did_you_mean(marker.body, [*bodies]))
    on = f"on '{marker.body}'"
    check_place(marker.at, dimension, within(where, f"marker {on}"), faults)
    if marker.side and not marker.axis:
        faults.add(
            "the marker has a side and no axis.", where=within(where, f"marker {on}"), expected="axis= and side="
        )
        return
    if not marker.axis or not check_place(marker.axis, dimension, within(where, f"axis {on}"), faults):
        return
    if not np.any(marker.axis):
        faults.add("the axis has length zero.", where=within(where, f"axis {on}"))
    elif marker.side and dimension == 2:
        faults.add(
            "in the plane the side follows from the axis.", where=within(where, f"marker {on}"), expected="no side="
        )
    elif marker.side and check_place(marker.side, 3, within(where, f"side {on}"), faults):
        a, s = np.array(marker.axis), np.array(marker.side)
        if np.linalg.norm(np.cross(a, s)) < PARALLEL_SINE * np.linalg.norm(a) * max(np.linalg.norm(s), 1e-300):
            faults.add("the side is along the axis.", where=within(where, f"marker {on}"))


@dataclass(frozen=True)
class Attachment:
    """A frame on a body, or on the ground; the axis of a cut joint is the frame's z."""

    body: str
    placement: MDH | Placement = field(default_factory=Placement)


@checked_record
@dataclass(frozen=True)
class Assembly(Record):
    """Where the machine stands when put together: coordinates that are held as given, and guesses of others (0 where not named).

    It decides which of several ways to assemble the machine is meant, and where solvers start.
    """

    hold: Mapping[str, float] = field(default_factory=dict)
    guess: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("hold", "guess"):
            values = {str(k): float(v) for k, v in getattr(self, name).items()}
            object.__setattr__(self, name, MappingProxyType(values))
