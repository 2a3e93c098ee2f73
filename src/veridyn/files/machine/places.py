"""Places and directions in a model file: names of points and bodies, markers, and components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from veridyn.errors import within
from veridyn.files.yaml_reader import Reader
from veridyn.model.place import Marker, PointRef
from veridyn.model.point_parts import DirectionRef

MARKER = ("body", "at", "axis", "side")


@dataclass
class Places:
    """Reads places in two or three dimensions; the names of the points decide what [A, B] means."""

    read: Reader
    dimension: int = 3
    points: list[str] = field(default_factory=list)

    def number(self, at: Mapping[str, Node], where: str, key: str, default: float = float("nan")) -> float:
        return self.read.number(at[key], where, key) if key in at else default

    def text(self, at: Mapping[str, Node], where: str, key: str) -> str:
        return self.read.optional_text(at, where, key)

    def truth(self, at: Mapping[str, Node], where: str, key: str, default: bool = False) -> bool:
        return self.read.truth(at[key], where, key, default) if key in at else default

    def vector(self, node: Node, where: str, name: str) -> list[float]:
        return self.read.numbers(node, where, name, self.dimension)

    def place(self, node: Node, where: str) -> PointRef:
        """The name of a point or body, or a marker {body, at, axis, side}; without `at` it sits in the origin of the body's frame."""
        if not isinstance(node, MappingNode):
            return self.read.text(node, where, "a place") or ""
        at = self.read.mapping(node, within(where, "marker"), MARKER, ("body",))
        body = self.text(at, where, "body")
        parts = {key: self.vector(at[key], where, key) for key in MARKER[1:] if key in at}
        return Marker(body, parts.get("at", [0.0] * self.dimension), parts.get("axis", ()), parts.get("side", ()))

    def pair(self, node: Node, where: str) -> tuple[PointRef, PointRef] | None:
        """Two places; None, and a fault, where there are not two."""
        ends = [self.place(item, where) for item in self.read.sequence(node, where, "its two places")]
        if len(ends) != 2:
            expected = "[{body: NAME, at: [x, y, z]}, {body: NAME, at: [x, y, z]}], or names of points"
            self.read.fault(node, "it acts between two places.", where, expected, f"{len(ends)}")
            return None
        return ends[0], ends[1]

    def direction(self, node: Node, where: str) -> DirectionRef:
        """A vector's name, two points, a marker, or components."""
        if isinstance(node, SequenceNode):
            names = [str(item.value) for item in node.value if isinstance(item, ScalarNode)]
            if len(names) == 2 and all(name in self.points for name in names):
                return names[0], names[1]
            return self.vector(node, where, "a direction")
        return self.place(node, where)
