"""YAML as plain values, each with its line: what a schema checks, and where it says so.

    plain_yaml("a: {b: [1, two]}\\n") → {"a": {"b": [1, "two"]}}, lines {("a",): 1, ("a", "b"): 1, ("a", "b", 0): 1, …}

Keys that stand twice, tags and merge keys are refused, all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from veridyn.errors import FileError
from veridyn.files.yaml_nodes import compose, kind_of, line_of
from veridyn.files.yaml_reader import Reader

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class PlainYaml:
    """`values` of the document, and the line of every place in it; that of a key is the line the key stands on."""

    values: dict[str, Any]
    lines: Mapping[Place, int]
    source: str

    def line(self, place: Place) -> int | None:
        """The line of a place, or of what holds it where the place itself is not in the file."""
        while place not in self.lines and place:
            place = place[:-1]
        return self.lines.get(place)


def plain_yaml(text: str, source: str = "") -> PlainYaml:
    """The values of one YAML document of keys and values; a :class:`FileError` lists all that is wrong with its form."""
    root = compose(text, source)
    read = Reader()
    lines: dict[Place, int] = {(): 1}
    values = _plain(root, (), read, lines)
    if read.faults:
        raise FileError(sorted(read.faults.found, key=lambda fault: fault.line or 0), source)
    return PlainYaml(values, lines, source)


def _plain(node: Node, place: Place, read: Reader, lines: dict[Place, int]) -> Any:
    where = ".".join(map(str, place))
    if isinstance(node, MappingNode):
        out: dict[str, Any] = {}
        for name, key, value in read.items(node, where):
            if name == "<<":
                read.fault(key, "merge keys (<<) are not part of the format.", where, hint="Write the keys out.")
                continue
            lines[(*place, name)] = line_of(key)
            out[name] = _plain(value, (*place, name), read, lines)
        return out
    if isinstance(node, SequenceNode):
        items = read.sequence(node, where, "this")
        for k, item in enumerate(items):
            lines[(*place, k)] = line_of(item)
        return [_plain(item, (*place, k), read, lines) for k, item in enumerate(items)]
    kind = kind_of(node)
    if kind == "nothing":
        return None
    if kind == "true or false":
        return str(node.value).lower() == "true"
    if kind == "a number":
        return _number(str(node.value))
    return read.text(node, where, "this")


def _number(text: str) -> int | float | str:
    """A number as written; text where it is one only by older rules of YAML (12:30)."""
    plain = text.replace("_", "").lower()
    try:
        return int(plain, 0) if plain.lstrip("+-").startswith(("0x", "0o")) else int(plain)
    except ValueError:
        pass
    try:
        return float(plain.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text
