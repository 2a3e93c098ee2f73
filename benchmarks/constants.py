"""Numeric constants at the top of modules, by room: ``python -m benchmarks.constants [--json]``.

A constant is a name in capitals (a leading underscore allowed) that a module binds, by = or with an annotation, to a number, to
arithmetic of numbers, or to a tuple of them; ``A, B = 5.0, 3.0`` binds two. Flags are not numbers. A constant has a comment where one
stands on the lines of its statement, or alone on the line above it, or above an unbroken run of constants that it heads. It counts as
chosen where that comment has the word "(chosen)".
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "veridyn"
NAME = re.compile(r"_?[A-Z][A-Z0-9_]*")
CHOSEN = "(chosen)"


@dataclass(frozen=True)
class Constant:
    """`module` relative to the package, with slashes; `comment` is empty where there is none."""

    module: str
    line: int
    name: str
    comment: str

    @property
    def chosen(self) -> bool:
        return CHOSEN in self.comment


def is_number(node: ast.expr) -> bool:
    """Whether an expression is a number, arithmetic of numbers, or a tuple of them; names such as ``np.pi`` alone are none."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float | complex) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(map(is_number, sides)) and all(
            is_number(x) or isinstance(x, ast.Name | ast.Attribute) for x in sides
        )
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(is_number, node.elts))
    return False


def _bound(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names that a statement binds, each with its own expression."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None and isinstance(statement.target, ast.Name):
        yield statement.target.id, statement.value
    if not isinstance(statement, ast.Assign):
        return
    for target in statement.targets:
        if isinstance(target, ast.Name):
            yield target.id, statement.value
        elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            for name, value in zip(target.elts, statement.value.elts, strict=False):
                if isinstance(name, ast.Name):
                    yield name.id, value


def constants_of(text: str, module: str) -> list[Constant]:
    """The numeric constants of one module's source."""
    stated = [(statement, _numbers(statement)) for statement in ast.parse(text).body]
    stated = [(statement, names) for statement, names in stated if names]
    if not stated:
        return []
    lines = text.splitlines(keepends=True)[: stated[-1][0].end_lineno]  # comments further down belong to no constant
    notes = {
        at.start[0]: at.string.lstrip("# ").strip()
        for at in tokenize.generate_tokens(StringIO("".join(lines)).readline)
        if at.type == tokenize.COMMENT
    }
    alone = {k for k in notes if lines[k - 1].lstrip().startswith("#")}
    out: list[Constant] = []
    heading, last = "", -1  # the comment above a run of constants, and the line on which the run ended
    for statement, names in stated:
        first, end = statement.lineno, statement.end_lineno or statement.lineno
        above = notes[first - 1] if first - 1 in alone else ""
        heading = above or (heading if first == last + 1 else "")
        inside = next((notes[k] for k in range(end, first - 1, -1) if k in notes), "")
        out += [Constant(module, first, name, inside or heading) for name in names]
        last = end
    return out


def _numbers(statement: ast.stmt) -> list[str]:
    return [name for name, value in _bound(statement) if NAME.fullmatch(name) and is_number(value)]


def constants(source: Path = SOURCE) -> list[Constant]:
    """Those of every module below a folder."""
    return [
        c
        for file in sorted(source.rglob("*.py"))
        for c in constants_of(file.read_text(encoding="utf-8"), file.relative_to(source).as_posix())
    ]


def room_of(module: str, depth: int) -> str:
    """The folder of a module to that depth; a module at the top is a room of its own."""
    folders = module.split("/")[:-1]
    return "/".join(folders[:depth]) or module.removesuffix(".py")


def counted(found: Iterable[Constant], depth: int = 1) -> dict[str, dict[str, int]]:
    """How many constants each room has, how many of them without a comment, and how many chosen."""
    out: dict[str, dict[str, int]] = {}
    for c in found:
        row = out.setdefault(room_of(c.module, depth), {"constants": 0, "uncommented": 0, "chosen": 0})
        row["constants"] += 1
        row["uncommented"] += not c.comment
        row["chosen"] += c.chosen
    return dict(sorted(out.items()))


def main(arguments: Sequence[str] | None = None) -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.constants", description="Numeric constants by room.")
    asked.add_argument("--json", action="store_true")
    asked.add_argument("--depth", type=int, default=2, help="folders by which a room is named")
    asked.add_argument("--list", metavar="ROOM", help="name the constants of one room, or module, as well")
    given = asked.parse_args(arguments)
    found = constants()
    rooms = counted(found, given.depth)
    every = {
        "constants": len(found),
        "uncommented": sum(not c.comment for c in found),
        "chosen": sum(c.chosen for c in found),
    }
    listed = [c for c in found if given.list and c.module.startswith(given.list)]
    if given.json:
        rows = [{"module": c.module, "line": c.line, "name": c.name, "comment": c.comment} for c in listed]
        print(json.dumps({"rooms": rooms, "all": every} | ({"listed": rows} if given.list else {}), indent=1))
        return
    width = max(len(room) for room in rooms) + 1
    print(f"{'room':{width}}{'constants':>12}{'uncommented':>13}{'chosen':>8}")
    for room, row in {**rooms, "all": every}.items():
        print(f"{room:{width}}{row['constants']:12d}{row['uncommented']:13d}{row['chosen']:8d}")
    for c in listed:
        print(f"{c.module}:{c.line} {c.name}" + (f"  # {c.comment}" if c.comment else ""))


if __name__ == "__main__":
    main()
