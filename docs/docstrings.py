"""Docstrings as the site shows them: roles such as :class:`Fault` become code, tables with === rules become Markdown tables."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
RULE = re.compile(r"^\s*=+(?:\s+=+)+\s*$")


class PlainDocstrings(griffe.Extension):
    """Rewrites every docstring before it is parsed; the source stays as it is."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = _tables(text)


def _tables(text: str) -> str:
    out: list[str] = []
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        rules = [k for k in range(i, min(i + 200, len(lines))) if RULE.match(lines[k])][:3]
        if rules and rules[0] == i and len(rules) == 3:
            starts = [m.start() for m in re.finditer("=+", lines[i])]
            out += ["", *_markdown(lines[i + 1 : rules[1]], lines[rules[1] + 1 : rules[2]], starts), ""]
            i = rules[2] + 1
        else:
            out.append(lines[i])
            i += 1
    return "\n".join(out)


def _markdown(head: list[str], body: list[str], starts: list[int]) -> list[str]:
    ends = [*starts[1:], None]

    def cells(line: str) -> str:
        parts = [re.sub(r"([|*_])", r"\\\1", line[a:b].strip()) for a, b in zip(starts, ends)]
        return "| " + " | ".join(parts) + " |"

    return [cells(" ".join(head)), "|" + "---|" * len(starts), *(cells(line) for line in body)]
