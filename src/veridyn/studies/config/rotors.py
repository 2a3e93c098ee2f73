"""Rotor inertia that a first study file proposes: for every joint that a gear, a transmission or an armature is known of.

The rotor of a motor turns r times as fast as its joint and adds r² times its inertia there, often more than the bodies behind it. A
model without it is fitted all the same, and its other parameters are wrong. What is known of motors stands in the machine's transmission,
and in ``<transmission>`` of a URDF; the armature of an MJCF file is an element of the machine already.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from veridyn.files.machine.urdf_xml import bytes_of, parse_xml
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.studies.config.text import flow

LISTED_JOINTS = 6  # that a comment names
ROUNDED_DECIMALS = 12  # of a ratio between two joints: what an inverse leaves of 1 and 0


def rotor_lines(model: Path, machine: Machine) -> list[str]:
    """Elements of a study, one a line, and a comment on the driven joints of which nothing is known."""
    there = [_direction(e.on) for e in machine.elements if e.kind == "inertia"]
    known = {tuple(sorted(on.items())): why for on, why in _known(model, machine)}
    lines = []
    for pairs, why in known.items():
        on = dict(pairs)
        if _direction(on) not in there:
            where = flow(next(iter(on))) if len(on) == 1 else _combination(on)
            lines.append(f"    - {{kind: inertia, on: {where}}} # guessed: the rotor of a motor; {why}")
    with_rotor = {c for pairs in known for c, _ in pairs} | {
        c for e in machine.elements if e.kind == "inertia" for c in e.on
    }
    without = [c for c in machine.actuated_coordinates if c not in with_rotor]
    if without:
        named = ", ".join(without[:LISTED_JOINTS]) + (", …" if len(without) > LISTED_JOINTS else "")
        example = f"{{kind: inertia, on: {flow(without[0])}}}"
        lines.append(
            f"    # no gear, transmission or armature is known of {named}; where a motor turns through a gear: - {example}"
        )
    return lines


def urdf_transmissions(file: Path) -> tuple[str, ...]:
    """Joints that a ``<transmission>`` of a URDF names, also one inside ``<ros2_control>``, in the order of the file."""
    root = parse_xml(bytes_of(file), file.name)
    inside = (part for node in root.walk() if node.tag == "transmission" for part in node.walk() if part.tag == "joint")
    return tuple(dict.fromkeys(name for part in inside if (name := part.attributes.get("name", "").strip())))


def motor_combinations(transmission: Transmission) -> dict[str, dict[str, float]]:
    """Motor → the joints it turns with, as multiples of the one that it turns with most: rows of T⁻¹ without their ratios."""
    out = {}
    for motor, row in zip(transmission.motors, np.linalg.inv(transmission.matrix), strict=True):
        shares = np.round(row / row[np.argmax(np.abs(row))], ROUNDED_DECIMALS)
        out[motor] = {c: float(a) for c, a in zip(transmission.joints, shares, strict=True) if a != 0.0}
    return out


def _known(model: Path, machine: Machine) -> list[tuple[dict[str, float], str]]:
    """Combinations of coordinates that a motor turns with, and where that is stated."""
    found: list[tuple[dict[str, float], str]] = []
    if machine.transmission is not None:
        found += [(on, f"'{m}' of the transmission") for m, on in motor_combinations(machine.transmission).items()]
    coupled = {c for on, _ in found for c in on}
    if model.suffix.lower() == ".urdf":
        found += [({c: 1.0}, "the file has a transmission") for c in urdf_transmissions(model) if c not in coupled]
    return [(on, why) for on, why in found if set(on) <= set(machine.coordinates)]


def _direction(on: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """A combination without its size and sign, to compare two of them."""
    largest = max(on.values(), key=abs)
    return tuple(sorted((c, round(a / largest, ROUNDED_DECIMALS)) for c, a in on.items() if a != 0.0))


def _combination(on: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{flow(c)}: {a:.12g}" for c, a in on.items()) + "}"
