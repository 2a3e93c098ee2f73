"""The XML of a URDF or MJCF file, with the line and the bytes of every element; what could run or fetch something is refused.

Values are put into a copy of the file that a machine came from: attributes and elements change, every other byte stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

import numpy as np

from veridyn.errors import Fault, Faults, FileError, ModelError, at_line, did_you_mean, part_at
from veridyn.files.expressions import ROUNDED_QUARTER_TURN, snap_quarter_turns
from veridyn.files.yaml_nodes import text_of
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.model.graph import Body
from veridyn.model.machine import Machine


@dataclass
class XmlNode:
    """An element of the file. `start` is the byte of its ``<``; `end` that of its ``</``, or what follows ``<…/>``."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    start: int
    end: int = -1
    children: list[XmlNode] = field(default_factory=list)

    def walk(self, without: Sequence[str] = ()) -> Iterator[XmlNode]:
        """This element and all below it, except those under the tags named, in the order of the file."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in reversed(node.children) if child.tag not in without]

    def first(self, tag: str) -> XmlNode | None:
        return next((child for child in self.children if child.tag == tag), None)


@dataclass
class XmlReader:
    """Collects what is wrong with a file (`faults`) and what is odd, or not read (`notes`), each with its line."""

    faults: Faults = field(default_factory=Faults)
    notes: Faults = field(default_factory=Faults)

    def fault(
        self, node: XmlNode, what: str, where: str = "", expected: str = "", found: str = "", hint: str = ""
    ) -> None:
        self.faults.add(what, where=where, expected=expected, found=found, hint=hint, line=node.line)

    def note(
        self, node: XmlNode, what: str, where: str = "", expected: str = "", found: str = "", hint: str = ""
    ) -> None:
        self.notes.add(what, where=where, expected=expected, found=found, hint=hint, line=node.line)

    def exact(self, node: XmlNode, where: str, angles: Sequence[float]) -> list[float]:
        """Angles (rad) with rounded quarter turns made exact, and noted."""
        turns, changed = snap_quarter_turns(angles)
        if changed:
            self.note(node, ROUNDED_QUARTER_TURN, where, found=changed)
        return turns


def bytes_of(file: Path, kind: str = "urdf") -> bytes:
    """The text of a file as UTF-8 without a byte-order mark; `kind` is how the names of such files end."""
    try:
        missing = file.parent.is_dir() and not file.exists()
    except OSError:
        missing = False  # what hinders it is said below
    if missing:
        beside = sorted(p.name for p in file.parent.glob(f"*.{kind}"))
        fault = Fault("there is no such file.", found=str(file), hint=did_you_mean(file.name, beside))
        raise FileError(fault, file.name)
    return text_of(file).encode("utf-8")


def parse_xml(data: bytes, source: str, kind: str = "URDF") -> XmlNode:
    """The root element. No document type is read, so no entity can be declared, expanded or fetched. `kind` stands in messages."""
    if not data.strip():
        raise FileError("the file is empty.", expected=f"{_article(kind)} {kind} file", source=source)
    parser = expat.ParserCreate("utf-8")
    opened: list[XmlNode] = []
    roots: list[XmlNode] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        node = XmlNode(tag, attributes, parser.CurrentLineNumber, parser.CurrentByteIndex)
        (opened[-1].children if opened else roots).append(node)
        opened.append(node)

    def end(_: str) -> None:
        opened.pop().end = parser.CurrentByteIndex

    def refuse(*_: object) -> None:
        fault = Fault(
            "a document type is declared.", found="<!DOCTYPE", hint=f"Drop it: {_article(kind)} {kind} file needs none."
        )
        raise FileError(at_line(fault, parser.CurrentLineNumber), source)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        what = f"this is not XML: {expat.ErrorString(error.code)}."
        hint = f"<{opened[-1].tag}> of line {opened[-1].line} is never closed. Is the file complete?" if opened else ""
        raise FileError(Fault(what, hint=hint, line=error.lineno), source) from error
    return roots[0]


def _article(kind: str) -> str:
    return "an" if kind == "MJCF" else "a"


def refuse_xacro(root: XmlNode, source: str) -> None:
    """Refuse a file that xacro has not expanded alone: all else about it would be noise."""
    left = [node for node in root.walk() if node.tag.startswith("xacro:")]
    for part in root.children:
        if part.tag in ("link", "joint"):
            left += [
                node
                for node in part.walk(without=("visual", "collision"))
                if any("${" in value or "$(" in value for value in node.attributes.values())
            ]
    if left:
        first = min(left, key=lambda node: node.start)
        found = f"{len(left)} elements to expand, the first <{first.tag}>"
        hint = "Expand it first: xacro robot.urdf.xacro > robot.urdf"
        raise FileError(Fault("this is a xacro file, not yet a URDF.", found=found, hint=hint, line=first.line), source)


_TAG = re.compile(rb"<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*(/?>)")
_ATTRIBUTE = re.compile(rb"\s+([^\s=]+)\s*=\s*(\"[^\"]*\"|'[^']*')")


@dataclass
class XmlEdits:
    """Changes to a text: byte range → new bytes."""

    data: bytes
    changes: list[tuple[int, int, bytes]] = field(default_factory=list)

    def set(self, node: XmlNode, values: Mapping[str, str]) -> None:
        """Replace attributes of an element; those it does not have are added at the end of its tag."""
        tag = self._tag(node)
        at = {m[1].decode(): m.span(2) for m in _ATTRIBUTE.finditer(self.data, tag.start(), tag.end())}
        new = ""
        for key, value in values.items():
            if key in at:
                first, last = at[key]
                self.changes.append((first + 1, last - 1, value.encode()))
            else:
                new += f' {key}="{value}"'
        if new:
            self.changes.append((tag.start(1), tag.start(1), new.encode()))

    def insert(self, node: XmlNode, tag: str, values: Mapping[str, str]) -> None:
        """Add an element as the first child of one that has children, indented as these are."""
        at = self._tag(node).end()
        gap = re.compile(rb"\s*").match(self.data, at)
        new = f"<{tag}" + "".join(f' {key}="{value}"' for key, value in values.items()) + "/>"
        self.changes.append((at, at, (gap[0] if gap else b"") + new.encode()))

    def replace(self, node: XmlNode, tag: str, values: Mapping[str, str]) -> None:
        """Put another element without children in the place of one; whether that had any is the caller's to know."""
        old = self._tag(node)
        new = f"<{tag}" + "".join(f' {key}="{value}"' for key, value in values.items()) + old[1].decode()
        self.changes.append((old.start(), old.end(), new.encode()))

    def applied(self) -> bytes:
        out, at = b"", 0
        for first, last, new in sorted(self.changes):
            out += self.data[at:first] + new
            at = last
        return out + self.data[at:]

    def _tag(self, node: XmlNode) -> re.Match[bytes]:
        found = _TAG.match(self.data, node.start)
        if found is None:
            raise ModelError(Fault(f"the tag <{node.tag}> cannot be edited.", line=node.line))
        return found


def check_same_machine(machine: Machine, plain: Machine, source: str) -> None:
    faults = Faults()
    mine, theirs = ({b.name: b for b in bodies_of(m)} for m in (machine, plain))
    for name in [n for n in mine if n not in theirs]:
        hint = did_you_mean(name, list(theirs))
        faults.add("the file has no such link.", where=part_at("body", name), hint=hint)
    for name in [n for n in theirs if n not in mine]:
        faults.add("the tree has no such body.", where=part_at("link", name), hint=did_you_mean(name, list(mine)))
    for name in [n for n in mine if n in theirs]:
        a, b = mine[name], theirs[name]
        for what, x, y in _differences(a, b):
            faults.add(f"its {what} is another one in the file.", where=part_at("body", name), expected=y, found=x)
        if not (
            np.allclose(a.placement.rotation, b.placement.rotation, rtol=0.0, atol=1e-12)
            and np.allclose(a.placement.position, b.placement.position, rtol=1e-12, atol=1e-12)
        ):
            faults.add("its frame sits elsewhere in the file.", where=part_at("body", name))
    if faults:
        first = Fault(f"the tree is not the machine of {source}.", hint="Save it like the file it was loaded from.")
        raise ModelError([first, *faults.found], source)


def _differences(a: Body, b: Body) -> list[tuple[str, str, str]]:
    def facts(body: Body) -> dict[str, str]:
        moving = body.joint != "fixed"
        return {
            "antecedent": body.antecedent or "ground",
            "joint": body.joint,
            "coordinate": body.coordinate_name,
            "ratio": f"{body.ratio:.12g}" if moving else "",
            "kind": "real" if body.real else "virtual (no <inertial>)",
        }

    return [(key, x, y) for (key, x), y in zip(facts(a).items(), facts(b).values(), strict=True) if x != y]
