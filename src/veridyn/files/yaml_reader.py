"""Values out of YAML: checked one by one, or plain with their lines; what is wrong is collected with its line, and reading goes on.

:class:`Reader` takes values out of nodes. :func:`plain_yaml` gives them all at once, for a schema to check:

    plain_yaml("a: {b: [1, two]}\\n") → {"a": {"b": [1, "two"]}}, lines {("a",): 1, ("a", "b"): 1, ("a", "b", 0): 1, …}

Keys that stand twice, tags and merge keys are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from veridyn.errors import Faults, FileError, ModelError, did_you_mean
from veridyn.files.expressions import MAX_NUMBER, evaluate
from veridyn.files.yaml_nodes import compose, kind_of, line_of, tag_of

NAN = float("nan")
LONGEST_WORD = 40  # characters of a value that a message shows
EXAMPLES = {  # what a part of a model file looks like, by its word in messages
    "body": "{name: arm, joint: turning}",
    "joint": "{name: elbow, kind: turning, a: upper.tip, b: lower}",
    "element": "{kind: inertia, on: joint1}",
    "load": "{name: motor, kind: drive, on: joint1, value: 2.0}",
    "sensor": "{name: encoder, kind: coordinate, on: joint1, sigma: 0.001}",
    "controller": "{name: servo, kind: pd, on: joint1, rate: 1000, kp: 100, kd: 5}",
    "point": "{name: A, at: [0, 0]}",
    "vector": "{name: u, along: [1, 0]}",
    "coordinate": "{name: phi, of: [A, B], from: [1, 0]}",
    "rack": "{name: rack, distance: x, angle: phi, radius: 0.05}",
}
Place = tuple[str | int, ...]


@dataclass
class Reader:
    """Takes values out of nodes; what is wrong goes to `faults` with its line, and a harmless value comes back.

    `notes`: what is odd, and read all the same. `constants` are what formulas may use. In the methods, `where` names the item of the file
    that a value belongs to, and `name` the value.
    """

    faults: Faults = field(default_factory=Faults)
    notes: Faults = field(default_factory=Faults)
    constants: dict[str, float] = field(default_factory=dict)

    def fault(
        self, node: Node, what: str, where: str = "", expected: str = "", found: str = "", hint: str = ""
    ) -> None:
        self.faults.add(what, where=where, expected=expected, found=found, hint=hint, line=line_of(node))

    def items(self, node: Node, where: str, example: str = "{key: value}") -> Iterator[tuple[str, Node, Node]]:
        """Key, node of the key and node of the value, each key once; `example`: what is right, for a fault where it is no mapping."""
        if not isinstance(node, MappingNode):
            word = where.partition(" ")[0]
            whole = " number " in where and word in EXAMPLES  # a part of a list, which has no name yet
            subject = f"{'an' if word[0] in 'aeiou' else 'a'} {word}" if whole else "it"
            shown = EXAMPLES[word] if whole else example
            self.fault(node, f"{subject} is a mapping, such as {shown}; found {_words_of(node)}.", where)
            return
        if not self._untagged(node, where):
            return
        seen: dict[str, int] = {}
        for key, value in node.value:
            name = self.text(key, where, "a key")
            if name in seen:
                self.fault(
                    key, f"'{name}' stands twice.", where, found=f"the first on line {seen[name]}", hint="Drop one."
                )
            elif name is not None:
                seen[name] = line_of(key)
                yield name, key, value

    def named(self, node: Node, section: str, word: str) -> Iterator[tuple[str, Node, Node, bool]]:
        """Name, node of the name, node of the item, and whether the name stands inside it: of a list of items that each have a name, or of
        a mapping from names to items."""
        if isinstance(node, MappingNode):
            for name, key, item in self.items(node, section):
                yield name, key, item, False
            return
        for k, item in enumerate(self.sequence(node, "", section), 1):
            where = f"{word} number {k}"
            if not isinstance(item, MappingNode):
                list(self.items(item, where))
                continue
            given = [value for key, value in item.value if isinstance(key, ScalarNode) and key.value == "name"]
            if not given or kind_of(given[0]) == "nothing":
                self.fault(item, "the key 'name' is missing.", where)
            elif name := self.text(given[0], where, "name"):
                yield name, item, item, True

    def mapping(self, node: Node, where: str, allowed: Sequence[str], required: Sequence[str] = ()) -> dict[str, Node]:
        """The values of known keys by name. A key that is unknown, missing or without a value is a fault."""
        out: dict[str, Node] = {}
        unfit = not isinstance(node, MappingNode)
        example = ", ".join(f"{key}: …" for key in (required or allowed[:2]))
        for name, key, value in self.items(node, where, f"{{{example}}}"):
            if name == "<<":
                self.fault(key, "merge keys (<<) are not part of the format.", where, hint="Write the keys out.")
            elif name not in allowed:
                self.fault(key, f"there is no key '{name}' here.", where, hint=did_you_mean(name, allowed))
            elif kind_of(value) == "nothing":
                self.fault(key, f"'{name}' has no value.", where, hint="Give it one, or drop the key.")
                required = [r for r in required if r != name]
            else:
                out[name] = value
        for name in required:
            if name not in out and not unfit:
                self.fault(node, f"the key '{name}' is missing.", where)
        return out

    def sequence(self, node: Node, where: str, name: str) -> list[Node]:
        if not isinstance(node, SequenceNode):
            self.fault(node, f"{name} must be a list.", where, "[a, b], or lines that begin with -", kind_of(node))
            return []
        self._untagged(node, where)
        return list(node.value)

    def text(self, node: Node, where: str, name: str) -> str | None:
        """A name, as written: 7 is "7" and 010 is "010"."""
        if not self._untagged(node, where):
            return None
        if isinstance(node, ScalarNode) and kind_of(node) not in ("nothing", "true or false"):
            return str(node.value)
        hint = "Put it in quotes." if _is_truth(node) else ""
        self.fault(node, f"{name} must be text.", where, "", kind_of(node), hint)
        return None

    def optional_text(self, at: Mapping[str, Node], where: str, key: str) -> str:
        """The text under a key of a mapping that was read, empty where there is none."""
        return (self.text(at[key], where, key) or "") if key in at else ""

    def texts(self, node: Node, where: str, name: str) -> list[str]:
        found = [self.text(item, where, f"an entry of {name}") for item in self.sequence(node, where, name)]
        return [text for text in found if text is not None]

    def choice(self, node: Node, where: str, name: str, choices: Sequence[str]) -> str | None:
        text = self.text(node, where, name)
        if text is not None and text not in choices:
            self.fault(node, f"'{text}' is no {name}.", where, hint=did_you_mean(text, choices))
            return None
        return text

    def truth(self, node: Node, where: str, name: str, fallback: bool) -> bool:
        """true or false, or the 1 and 0 of the tables of the literature."""
        if isinstance(node, ScalarNode) and self._untagged(node, where):
            if _is_truth(node) or kind_of(node) == "a number":
                value = {"true": True, "false": False, "1": True, "0": False}.get(str(node.value).lower())
                if value is not None:
                    return value
            self.fault(node, f"{name} is neither true nor false.", where, "true or false", f"{node.value}")
        elif not isinstance(node, ScalarNode):
            self.fault(node, f"{name} is neither true nor false.", where, "true or false", kind_of(node))
        return fallback

    def number(self, node: Node, where: str, name: str, fallback: float = NAN, unknown: bool = False) -> float:
        """A finite number or a formula. With `unknown`, that word stands for NaN."""
        kind = kind_of(node)
        if not self._untagged(node, where):
            return fallback
        if kind not in ("a number", "text"):
            self.fault(node, f"{name} is not a number.", where, "a number or a formula", kind)
            return fallback
        text = str(node.value)
        if unknown and text == "unknown":
            return NAN
        plain = _plain_number(text) if kind == "a number" else None
        if plain is not None:
            if math.isfinite(plain) and abs(plain) > MAX_NUMBER:
                self.fault(node, f"{name} is too large a number.", where, f"at most {MAX_NUMBER:g}, in SI units", text)
                return fallback
            if not math.isfinite(plain):
                hint = "Write unknown where nobody knows it." if unknown else ""
                self.fault(node, f"{name} is not a finite number.", where, found=text, hint=hint)
                return fallback
            return plain
        try:
            return evaluate(text, self.constants)
        except ModelError as error:
            reason = error.faults[0]
            self.fault(node, f"{name}: {reason.what}", where, hint=reason.hint)
            return fallback

    def numbers(self, node: Node, where: str, name: str, count: int, fallback: float = NAN) -> list[float]:
        """A list of so many numbers."""
        items = self.sequence(node, where, name)
        if isinstance(node, SequenceNode) and len(items) != count:
            self.fault(node, f"{name} has the wrong shape.", where, f"{count} numbers", f"{len(items)}")
            items = []
        return [self.number(item, where, f"entry {k} of {name}", fallback) for k, item in enumerate(items, 1)] or [
            fallback
        ] * count

    def matrix(self, node: Node, where: str, name: str, shape: tuple[int, int]) -> list[list[float]] | None:
        """Rows of numbers; None where it is not a matrix of this shape."""
        rows, columns = shape
        before = len(self.faults.found)
        items = self.sequence(node, where, name)
        lengths = [len(row.value) if isinstance(row, SequenceNode) else 0 for row in items]
        if isinstance(node, SequenceNode) and lengths != [columns] * rows:
            found = f"{len(items)} rows of " + (", ".join(str(k) for k in lengths) or "nothing")
            self.fault(node, f"{name} has the wrong shape.", where, f"{rows} rows of {columns} numbers", found)
        if len(self.faults.found) > before:
            return None
        values = [self.numbers(row, where, f"row {k} of {name}", columns) for k, row in enumerate(items, 1)]
        return None if len(self.faults.found) > before else values

    def _untagged(self, node: Node, where: str) -> bool:
        if kind_of(node) != "tagged":
            return True
        self.fault(
            node, f"the tag '{tag_of(node)}' is not part of the format.", where, hint="Values are plain; drop the tag."
        )
        return False


def _words_of(node: Node) -> str:
    """A value that is no mapping, as it stands in the file."""
    kind = kind_of(node)
    if not isinstance(node, ScalarNode) or kind in ("nothing", "tagged"):
        return kind
    text = str(node.value)
    short = text if len(text) <= LONGEST_WORD else text[: LONGEST_WORD - 1] + "…"
    if kind == "text":
        return f"the {'text' if ' ' in short else 'word'} '{short}'"
    return f"the number {short}" if kind == "a number" else short


def _is_truth(node: Node) -> bool:
    return kind_of(node) == "true or false"


def _plain_number(text: str) -> float | None:
    """A YAML number as written, or None where it is one only by older rules of YAML (12:30)."""
    plain = text.replace("_", "").lower()
    try:
        if plain.startswith(("0x", "0o")):
            return float(int(plain, 0))
        return float(plain.replace(".inf", "inf").replace(".nan", "nan"))
    except (ValueError, OverflowError):
        return None


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
