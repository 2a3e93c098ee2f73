"""Values put into a copy of the file that a machine came from: attributes and elements of its XML, every other byte as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from veridyn.errors import Fault, Faults, ModelError, did_you_mean, part_at
from veridyn.files.machine.urdf_xml import XmlNode
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.model.graph import Body
from veridyn.model.machine import Machine

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
