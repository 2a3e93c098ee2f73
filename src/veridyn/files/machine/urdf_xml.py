"""The XML of a URDF or MJCF file, with the line and the bytes of every element; what could run or fetch something is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from veridyn.errors import Fault, Faults, FileError, at_line, did_you_mean
from veridyn.files.expressions import ROUNDED_QUARTER_TURN, snap_quarter_turns
from veridyn.files.yaml_nodes import text_of


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
