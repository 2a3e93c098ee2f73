"""A body of a tree and the joint that carries it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from veridyn.model.names import GROUND, parameter_name
from veridyn.spatial.transforms import MDH, Placement

JointKind = Literal["turning", "sliding", "fixed"]
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
    joint: JointKind = "turning"
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
