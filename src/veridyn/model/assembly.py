"""Where the ends of joints sit on bodies, and where a closed machine stands when it is put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from veridyn.spatial.transforms import MDH, Placement


@dataclass(frozen=True)
class Attachment:
    """A frame on a body, or on the ground; the axis of a cut joint is the frame's z."""

    body: str
    placement: MDH | Placement = field(default_factory=Placement)


@dataclass(frozen=True)
class Assembly:
    """Where the machine stands when put together: coordinates that are held as given, and guesses of others (0 where not named).

    It decides which of several ways to assemble the machine is meant, and where solvers start.
    """

    hold: Mapping[str, float] = field(default_factory=dict)
    guess: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("hold", "guess"):
            values = {str(k): float(v) for k, v in getattr(self, name).items()}
            object.__setattr__(self, name, MappingProxyType(values))

    def __reduce__(self) -> tuple[type[Assembly], tuple[dict[str, float], dict[str, float]]]:
        return Assembly, (dict(self.hold), dict(self.guess))
