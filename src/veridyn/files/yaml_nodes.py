"""YAML read so that every value keeps its line: a file becomes text, and a text becomes nodes.

Nodes are composed and never constructed: no tag makes an object, a name such as 010 stays as it was written, and keys
that stand twice are still there to be reported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.scanner import Scanner

from veridyn.errors import Fault, FileError, did_you_mean

MAX_CHARACTERS = 1_000_000
REMEMBERED_CHARACTERS = 100_000  # of a text whose nodes are kept; those of the largest machines take a few megabytes
LONGEST_TAG = 200  # characters; the time to read one grows with its square
MAX_NODES = 100_000  # written, and after aliases are followed; a car with 38 joints has about two thousand

MAX_DEPTH = 50  # of brackets inside brackets: the scanner takes a time for each token that grows with it; a description has five

_CORE = "tag:yaml.org,2002:"
_SCALARS: Mapping[str, str] = {
    "str": "text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
    "timestamp": "a date",
    "merge": "text",
}
_XML = re.compile(r"\s*<[?!a-zA-Z]")
_XML_KINDS = {"<robot": "a URDF file ends in .urdf", "<mujoco": "an MJCF file ends in .xml or .mjcf"}
_CUT = ("end of stream", "<stream end>")  # what the parser says when the text stops in the middle


class _BoundedScanner(Scanner):
    """Stops at the first bracket beyond the bound, and at a tag without end."""

    def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:
        if self.flow_level >= MAX_DEPTH:
            line = int(self.reader.line) + 1
            raise FileError(Fault("brackets are nested too deeply.", expected=f"at most {MAX_DEPTH} levels", line=line))
        super().fetch_flow_collection_start(TokenClass, to_push)

    def fetch_tag(self) -> None:
        if not any(c in " \t\r\n\0" for c in self.reader.prefix(LONGEST_TAG)):
            raise MarkedYAMLError(problem="a tag is too long", problem_mark=self.reader.get_mark())
        super().fetch_tag()


class _BoundedComposer(Composer):
    """Stops at the first value beyond the bound: reading all of a large file to refuse it would take minutes."""

    made = 0

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        self.made += 1
        if self.made > MAX_NODES:
            what, line = "it holds more values than any description.", self.parser.peek_event().start_mark.line + 1
            raise FileError(Fault(what, "", f"at most {MAX_NODES} values", "", "Is it a log?", int(line)))
        return super().compose_node(parent, index)


def compose(text: str, source: str = "") -> MappingNode:
    """The top mapping of one YAML document; a :class:`FileError` where the text is anything else.

    Nodes are only looked at, never changed, so that a text of moderate length that is read again need not be parsed again.
    """
    return (_remembered if len(text) <= REMEMBERED_CHARACTERS else _composed)(text, source)


def _composed(text: str, source: str) -> MappingNode:
    if not text.strip():
        raise FileError("the file is empty.", expected="a YAML document", source=source)
    if len(text) > MAX_CHARACTERS:
        what = f"the file has {len(text)} characters."
        raise FileError(what, where="", expected=f"at most {MAX_CHARACTERS}", hint="Is it a log?", source=source)
    if _XML.match(text):
        raise FileError(_xml_fault(text, source), source)
    yaml = YAML(typ="safe", pure=True)  # as the default, less the comments, which take a third of the time
    yaml.Composer, yaml.Scanner = _BoundedComposer, _BoundedScanner
    try:
        yaml.composer.warn_double_anchors = False  # a later anchor hides an earlier one: that is legal
        root = yaml.compose(text)
    except FileError as error:  # of the bounds above
        raise FileError(error.faults, source) from None
    except MarkedYAMLError as error:
        raise FileError(_syntax_fault(error, text), source) from error
    except YAMLError as error:
        at = getattr(error, "position", None)
        line = text.count("\n", 0, at) + 1 if isinstance(at, int) else None
        raise FileError(Fault("a control character cannot stand in a text file.", line=line), source) from error
    except RecursionError:
        raise FileError("values are nested too deeply.", source=source) from None
    except (ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError, NotImplementedError) as error:
        # The parser stumbles over a few malformed texts without saying where.
        raise FileError(f"this is not YAML: {error}.", source=source) from error
    if not isinstance(root, MappingNode):
        found = "nothing but comments" if root is None else "a list" if isinstance(root, SequenceNode) else "plain text"
        raise FileError("this is not a YAML document of keys and values.", found=found, source=source)
    if _expanded(root, {}) > MAX_NODES:
        what = "its aliases (*name) repeat without end, or too often."
        raise FileError(what, where="", expected=f"at most {MAX_NODES} values", source=source)
    return root


_remembered = lru_cache(maxsize=8)(_composed)


def text_of(file: Path) -> str:
    """What a text file holds; whatever hinders reading it is a :class:`FileError`."""
    try:
        if file.is_dir():
            raise FileError("this is a folder.", expected="a file", found=str(file), source=file.name)
        if file.exists() and (not file.is_file() or file.stat().st_size > 4 * MAX_CHARACTERS):
            raise FileError(
                "this is too large, or no plain file.", found=str(file), hint="Is it a log?", source=file.name
            )
        raw = file.read_bytes()
    except FileNotFoundError:
        beside = sorted(p.name for p in file.parent.glob("*.y*ml")) if file.parent.is_dir() else []
        raise FileError(
            "there is no such file.", found=str(file), hint=did_you_mean(file.name, beside), source=file.name
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"the file cannot be read: {reason}.", found=str(file), source=file.name) from error
    if b"\0" in raw:
        raise FileError(
            "this is not a text file: it holds NUL bytes.", hint="Is it complete, and the right one?", source=file.name
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        fault = Fault(
            "this is not text in UTF-8.", found=f"the byte {raw[error.start]:#04x}", hint="Save it as UTF-8.", line=line
        )
        raise FileError(fault, file.name) from error


def line_of(node: Node) -> int:
    """The line a node begins on, from 1."""
    return int(node.start_mark.line) + 1


def tag_of(node: Node) -> str:
    """A node's tag in its short form."""
    return str(node.tag).replace(_CORE, "!!")


def name_in(node: Node) -> str | None:
    """The name an item gives itself, before anything about it has been checked."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.value == "name" and isinstance(value, ScalarNode) and value.value:
                return str(value.value)
    return None


def kind_of(node: Node) -> str:
    """What a node is, in words; "tagged" where its tag asks for anything but that."""
    tag = str(node.tag)
    if isinstance(node, MappingNode):
        return "keys and values" if tag == _CORE + "map" else "tagged"
    if isinstance(node, SequenceNode):
        return "a list" if tag == _CORE + "seq" else "tagged"
    return _SCALARS.get(tag.removeprefix(_CORE), "tagged") if tag.startswith(_CORE) else "tagged"


def _xml_fault(text: str, source: str) -> Fault:
    """What a file of XML is, and how it is read instead."""
    name = source.rpartition("/")[2]
    if name.lower().endswith(".xacro") or "<xacro:" in text:
        expanded = name[:-6] if name.lower().endswith(".xacro") else name
        expanded = expanded if expanded.lower().endswith(".urdf") else f"{expanded}.urdf"
        hint = f"Expand it first: xacro {name} > {expanded}"
        return Fault("this is a xacro file, not yet a URDF.", hint=hint)
    known = next((kind for tag, kind in _XML_KINDS.items() if tag in text), "")
    return Fault("this is XML, not YAML.", hint=f"The name of {known}." if known else "")


def _syntax_fault(error: MarkedYAMLError, text: str) -> Fault:
    mark = error.problem_mark
    line = None if mark is None else int(mark.line) + 1
    problem = (error.problem or "it cannot be parsed").strip()
    if "another document" in problem:
        return Fault(
            "a second document begins.", expected="one document in a file", hint="Drop the line ---.", line=line
        )
    if any(words in problem for words in _CUT):
        opened = error.context_mark
        hint = f"What begins on line {int(opened.line) + 1} is never closed. " if opened is not None else ""
        last = text.rstrip("\n").count("\n") + 1
        return Fault("the file ends in the middle of a value.", hint=hint + "Is the file complete?", line=last)
    if "'\\t'" in problem:
        return Fault("a tab stands where spaces are expected.", hint="YAML indents with spaces only.", line=line)
    return Fault(f"this is not YAML: {problem}.", hint="Look at this line and the one above it.", line=line)


def _expanded(node: Node, sizes: dict[int, float]) -> float:
    """How many values a node holds once aliases are followed, inside itself without end counting as infinite."""
    if id(node) in sizes:
        return sizes[id(node)]
    sizes[id(node)] = math.inf  # met again before it is counted: an alias to something it stands in
    total = 1.0
    if isinstance(node, MappingNode):
        total += sum(_expanded(key, sizes) + _expanded(value, sizes) for key, value in node.value)
    elif isinstance(node, SequenceNode):
        total += sum(_expanded(item, sizes) for item in node.value)
    sizes[id(node)] = total
    return total
