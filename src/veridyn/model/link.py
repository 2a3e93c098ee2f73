"""The parts of a machine's graph: bodies with frames, and joints between two frames.

A joint moves its frame `b` against its frame `a`. With all coordinates zero both frames coincide, except for a universal joint, whose
`b` is then turned by a right angle about x. M(q) takes components in `b` to components in `a`:

=========== ========================= ======================================= =====================
kind        coordinates               M(q)                                    free directions
=========== ========================= ======================================= =====================
turning     angle                     Rz(q)                                   1 turn
sliding     way                       Tz(q)                                   1 slide
cylindrical z, angle                  Tz(q1) Rz(q2)                           1 slide, 1 turn
universal   1, 2                      Rz(q1) Rx(π/2) Rz(q2)                   2 turns
planar      x, y, angle               Tx(q1) Ty(q2) Rz(q3)                    2 slides, 1 turn
spherical   yaw, pitch, roll          Rz(q1) Ry(q2) Rx(q3)                    3 turns
floating    x, y, z, yaw, pitch, roll Tx Ty Tz Rz Ry Rx                       all six
fixed       –                         1                                       none
distance    –                         the two origins are `length` apart      five
=========== ========================= ======================================= =====================

The space that a body takes is a set of capsules, each all that is within a radius of a segment in the body's frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked_record
from veridyn.arrays import Array, Record
from veridyn.errors import Faults
from veridyn.model.place import Attachment, parameter_name
from veridyn.spatial.rotations import MDH, Placement, rot_x, rot_z, rotation_to_axis

Three = tuple[float, float, float]


@dataclass(frozen=True)
class LinkCapsule:
    """All that is within `radius` [m] of the segment from `start` to `end` [m] in the frame of its body; a sphere where both are one."""

    start: Three
    end: Three
    radius: float


def check_capsule(capsule: LinkCapsule, where: str, faults: Faults) -> None:
    """Add what is wrong with a capsule: its ends are three finite numbers each, and its radius is finite and above zero."""
    for name, end in (("start", capsule.start), ("end", capsule.end)):
        x = np.array(end, dtype=np.float64)
        if x.shape != (3,) or not np.isfinite(x).all():
            faults.add(f"its {name} is not a point.", where=where, expected="three finite numbers, m", found=f"{end}")
    if not 0.0 < capsule.radius < np.inf:
        faults.add("a radius must be above zero.", where=where, expected="m, finite", found=f"{capsule.radius:g}")


JointKind = Literal[
    "turning", "sliding", "spherical", "universal", "cylindrical", "planar", "floating", "fixed", "distance"
]
KINDS: tuple[str, ...] = get_args(JointKind)
Cut = Literal["auto", "yes", "no"]
CUT_CHOICES: tuple[str, ...] = get_args(Cut)
End = str | Attachment  # "body", "body.frame", or a frame written out
IDENTITY = np.eye(3)


@dataclass(frozen=True)
class JointStep:
    """One coordinate of a joint: how it moves, its word in default names, and the rotation of its frame in the one before."""

    motion: Literal["turning", "sliding"]
    word: str
    turned: Array


@dataclass(frozen=True)
class Course:
    """The motion of a joint as steps along z axes, and the rotation of the frame `b` in the frame of the last step."""

    steps: tuple[JointStep, ...]
    last: Array


Move = tuple[Literal["turning", "sliding"], str, str]


def _along(*moves: Move) -> Course:
    """Steps along the axes x, y, z, each turned back so that the frame at the end is parallel to the first where no coordinate turns."""
    steps, before = [], IDENTITY
    for motion, word, axis in moves:
        here = IDENTITY if axis == "z" else rotation_to_axis(IDENTITY["xyz".index(axis)])
        steps.append(JointStep(motion, word, before.T @ here))
        before = here
    return Course(tuple(steps), before.T)


_SLIDES: tuple[Move, ...] = (("sliding", "x", "x"), ("sliding", "y", "y"), ("sliding", "z", "z"))
_TURNS: tuple[Move, ...] = (("turning", "yaw", "z"), ("turning", "pitch", "y"), ("turning", "roll", "x"))
COURSES: Mapping[str, Course] = MappingProxyType(
    {
        "turning": _along(("turning", "", "z")),
        "sliding": _along(("sliding", "", "z")),
        "cylindrical": _along(("sliding", "z", "z"), ("turning", "angle", "z")),
        "universal": Course(
            (JointStep("turning", "1", IDENTITY), JointStep("turning", "2", rot_x(np.pi / 2))), IDENTITY
        ),
        "planar": _along(*_SLIDES[:2], ("turning", "angle", "z")),
        "spherical": _along(*_TURNS),
        "floating": _along(*_SLIDES, *_TURNS),
        "fixed": Course((), IDENTITY),
        "distance": Course((), IDENTITY),
    }
)


@checked_record
@dataclass(frozen=True, eq=False, kw_only=True)
class Link(Record):
    """A body of a machine.

    Parameters
    ----------
    inertia : ten numbers XX XY XZ YY YZ ZZ MX MY MZ M about the origin of its frame; None where they are unknown, NaN where one is.
    frames : name → placement in the body's own frame; "body.name" stands for it wherever a joint has an end.
    real : False for a body without mass, which has no inertial parameters.
    label : what follows XX in the names of its parameters; by default the name.
    capsules : the space that it takes, which designed motions keep apart from that of others and from the floor.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # mass, centre, inertia about it
    >>> rod = vd.Link(name="rod", inertia=inertia, frames={"tip": vd.spatial.MDH(d=1.0)})
    >>> hinge = vd.Joint(name="hinge", a="ground", b="rod")
    >>> vd.Machine.build([rod], [hinge]).parameters["ZZ_rod"]  # 0.1 + 2 · 0.5² kg*m^2, about the origin
    0.6
    """

    name: str
    inertia: ArrayLike | None = None
    frames: Mapping[str, MDH | Placement] = field(default_factory=dict)
    real: bool = True
    label: str = ""
    capsules: tuple[LinkCapsule, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "capsules", tuple(self.capsules))
        object.__setattr__(self, "frames", MappingProxyType(dict(self.frames)))
        if self.inertia is not None:
            object.__setattr__(self, "inertia", np.array(self.inertia, dtype=np.float64))

    @property
    def ten(self) -> Array:
        """The ten numbers, NaN where unknown and zero for a body without mass."""
        if self.inertia is None:
            return np.full(10, np.nan) if self.real else np.zeros(10)
        return np.asarray(self.inertia, dtype=np.float64)

    def parameter(self, symbol: str) -> str:
        """The name of one of its parameters: ZZ6 for link '6', ZZ_forearm for link 'forearm'."""
        return parameter_name(symbol, self.label or self.name)


@dataclass(frozen=True, kw_only=True)
class Joint:
    """A joint between two frames; see the table of the module for the kinds.

    Parameters
    ----------
    a, b : "body", "body.frame" or an :class:`~veridyn.model.place.Attachment`; "ground" is a body.
    coordinates : names of its coordinates in the order of the table. By default the joint's name, with the coordinate's word behind it
        where there are several. Joints that name the same coordinate share it: each moves by `ratio` times the coordinate.
    actuated : whether its coordinates have motors, or the names of those that have.
    cut : "yes" where a loop is cut open at this joint, "no" where it must not be, "auto" to let veridyn choose.
    length : of a distance (m).

    Examples
    --------
    >>> import veridyn as vd
    >>> rods = vd.Link(name="upper", frames={"elbow": vd.spatial.MDH(d=0.4)}), vd.Link(name="lower")
    >>> hinges = vd.Joint(name="q1", a="ground", b="upper"), vd.Joint(name="q2", a="upper.elbow", b="lower")
    >>> vd.Machine.build(rods, hinges).coordinates
    ('q1', 'q2')
    """

    name: str
    kind: JointKind = "turning"
    a: End
    b: End
    coordinates: tuple[str, ...] = ()
    ratio: float = 1.0
    actuated: bool | tuple[str, ...] = False
    cut: Cut = "auto"
    length: float = 0.0

    @property
    def course(self) -> Course:
        return COURSES[self.kind]

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of its coordinates, its own or the default ones."""
        if self.coordinates or self.kind not in COURSES:
            return self.coordinates
        stem = f"q{self.name}" if self.name[:1].isdigit() else self.name
        words = [step.word for step in self.course.steps]
        return (stem,) if words == [""] else tuple(f"{stem}_{word}" for word in words)

    @property
    def motors(self) -> tuple[bool, ...]:
        """Whether each of its coordinates has a motor."""
        names = self.coordinate_names
        return (
            tuple(name in self.actuated for name in names)
            if isinstance(self.actuated, tuple)
            else (bool(self.actuated),) * len(names)
        )


def moved_by(joint: Joint, values: ArrayLike) -> tuple[Array, Array]:
    """M(q) of a joint as a rotation and a position, for values of its own coordinates; `ratio` counts."""
    R, p = np.eye(3), np.zeros(3)
    for step, value in zip(joint.course.steps, np.atleast_1d(np.asarray(values, dtype=np.float64)), strict=True):
        R = R @ step.turned
        if step.motion == "turning":
            R = R @ rot_z(float(joint.ratio * value))
        else:
            p = p + R[:, 2] * joint.ratio * value
    return R @ joint.course.last, p


def values_of(joint: Joint, R: Array, p: Array) -> Array:
    """The coordinates nearest a pose of the frame `b` in the frame `a`: exact where the joint allows the pose."""
    turn = np.arctan2
    about_z = turn(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])
    found = {
        "turning": [about_z],
        "sliding": [p[2]],
        "cylindrical": [p[2], about_z],
        "universal": [turn(R[0, 2], -R[1, 2]), turn(R[2, 0], R[2, 1])],
        "planar": [p[0], p[1], about_z],
        "spherical": _angles(R),
        "floating": [*p, *_angles(R)],
    }.get(joint.kind, [])
    return np.array(found, dtype=np.float64) / joint.ratio


def _angles(R: Array) -> list[float]:
    """Yaw, pitch and roll of R = Rz Ry Rx."""
    yaw = float(np.arctan2(R[1, 0], R[0, 0]))
    level = rot_z(yaw).T @ R
    return [yaw, np.arctan2(-level[2, 0], level[0, 0]), np.arctan2(-level[1, 2], level[1, 1])]


def as_placement(R: Array, p: Array) -> Placement:
    return Placement(R, np.where(np.abs(p) < 1e-300, 0.0, p))


def chained(first: MDH | Placement, second: MDH | Placement) -> MDH | Placement:
    """The placement of a frame that sits at `second` in a frame that sits at `first`."""
    if is_identity(second):
        return first
    if is_identity(first):
        return second
    return as_placement(first.rotation @ second.rotation, first.position + first.rotation @ second.position)


def inverted(placement: MDH | Placement) -> Placement:
    R = placement.rotation.T
    return as_placement(R, -R @ placement.position)


def is_identity(placement: MDH | Placement) -> bool:
    return bool(np.array_equal(placement.rotation, IDENTITY) and not np.any(placement.position))
