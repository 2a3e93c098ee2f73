"""A machine as a table of bodies, each a row: the body, the one that carries it, where its frame sits, and the joint between them.

The other way to describe a machine, by links and joints between frames, is :mod:`veridyn.model.link`; a table becomes one of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from numpy.typing import ArrayLike

from veridyn.errors import Faults, ModelError, did_you_mean, part_at
from veridyn.model.assembly import Attachment
from veridyn.model.graph import unique
from veridyn.model.link import Joint, JointKind, Link
from veridyn.model.names import GROUND, parameter_name
from veridyn.spatial.transforms import MDH, Placement

BodyJoint = Literal["turning", "sliding", "fixed"]
SIGMA: dict[str, int] = {"turning": 0, "sliding": 1, "fixed": 2}  # σ of paper 000, section III.A


@dataclass(frozen=True)
class Body:
    """One row of the description: a body, its antecedent, where its frame sits, and the joint along that frame's z axis.

    `antecedent` None or "ground" stands for the ground; the root of a free tree has none. A `real` body has ten inertial
    parameters, a virtual one has none (it only carries a frame or a degree of freedom). Joints that name the same
    `coordinate` share it: each moves by `ratio` times the coordinate. A passive joint (μ = 0) has no motor, so its force is
    zero but for its elements. `label` is what follows XX in the names of the parameters; by default the body's name.
    """

    name: str
    antecedent: str | None = GROUND
    joint: BodyJoint = "turning"
    placement: MDH | Placement = MDH()
    _: KW_ONLY
    actuated: bool = True
    real: bool = True
    coordinate: str = ""
    ratio: float = 1.0
    label: str = ""

    @property
    def sigma(self) -> int:
        """σ: 0 turning, 1 sliding, 2 fixed."""
        return SIGMA[self.joint]

    @property
    def coordinate_name(self) -> str:
        """The coordinate's own name where given, else the body's: body '7' has q7, body 'elbow' has elbow."""
        if self.joint == "fixed":
            return ""
        return self.coordinate or (f"q{self.name}" if self.name[:1].isdigit() else self.name)

    def parameter(self, symbol: str) -> str:
        """The name of one of its parameters: ZZ6 for body '6', ZZ_forearm for body 'forearm'."""
        return parameter_name(symbol, self.label or self.name)


@dataclass(frozen=True)
class Loop:
    """A cut joint between two frames: `joint` is one of :data:`CUTS`; `length` (m) belongs to "distance" alone.

    A cut joint has no motor, no friction and no coordinate. Cut a loop where that is so; a motor or friction stays with a joint of
    the tree.
    """

    name: str
    joint: str
    first: Attachment
    second: Attachment
    length: float = 0.0

    @property
    def where(self) -> str:
        return part_at("loop", self.name)


def links_of(bodies: Iterable[Body], inertia: Mapping[str, ArrayLike], machine: str) -> list[Link]:
    """The links of a table; `inertia`: body → its ten numbers, unknown where it is not named."""
    rows = list(bodies)
    real = [b.name for b in rows if b.real]
    faults = Faults()
    for name in inertia:
        if name not in real:
            hint = did_you_mean(name, real)
            faults.add("there is no body of that name that has a mass.", where=part_at("inertia", name), hint=hint)
    faults.raise_if_any(ModelError, machine)
    return [Link(name=b.name, inertia=inertia.get(b.name), real=b.real, label=b.label) for b in rows]


def joints_of_bodies(bodies: Iterable[Body], base: str, taken: Iterable[str] = ()) -> list[Joint]:
    """The joints that carry the bodies of a table; each has its body's name unless that is `taken` by another joint.

    The first body of a free `base` floats.
    """
    joints: list[Joint] = []
    used = set(taken)
    for j, b in enumerate(bodies):
        name = unique(b.name, used, "joint")
        used.add(name)
        joints.append(_joint(b, name, floats=base == "free" and j == 0))
    return joints


def joint_of_loop(loop: Loop) -> Joint:
    """The joint at which a loop is cut open."""
    kind: JointKind = loop.joint  # pyright: ignore[reportAssignmentType]
    return Joint(name=loop.name, kind=kind, a=loop.first, b=loop.second, cut="yes", length=loop.length)


def _joint(b: Body, name: str, floats: bool) -> Joint:
    if floats:
        return Joint(name=name, kind="floating", a=Attachment(GROUND, b.placement), b=b.name, cut="no")
    own = b.coordinate_name
    explicit = b.coordinate or (own if own and name != b.name else "")
    return Joint(
        name=name,
        kind=b.joint,
        a=Attachment(b.antecedent or GROUND, b.placement),
        b=b.name,
        coordinates=(explicit,) if explicit else (),
        ratio=b.ratio if b.joint != "fixed" else 1.0,
        actuated=b.actuated,
        cut="no",
    )
