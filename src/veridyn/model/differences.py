"""Whether two machines are the same, and where they differ: every number to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace

import numpy as np

from veridyn.errors import ModelError
from veridyn.model.elements.element import Element
from veridyn.model.graph import PointDescription
from veridyn.model.link import Link
from veridyn.model.machine import Machine

PARTS = (
    *("name", "formulation", "dimension", "gravity", "joints", "loads", "sensors", "prescribed"),
    *("controllers", "transmission", "assembly", "uncertainty", "car"),
)


def differences(one: Machine, other: Machine) -> tuple[str, ...]:
    """The parts in which two machines differ, by name: "joints", "elements", "parameters" and so on; nothing where they are equal.

    Parameters are compared where the joints of the machine can be spanned by a tree.
    """
    found = [part for part in PARTS if _plain(getattr(one, part)) != _plain(getattr(other, part))]
    if [_link(link) for link in one.links] != [_link(link) for link in other.links]:
        found.append("bodies")
    if [_element(e) for e in one.elements] != [_element(e) for e in other.elements]:
        found.append("elements")
    if _description(one.description) != _description(other.description):
        found.append("points")
    if _parameters(one) != _parameters(other):
        found.append("parameters")
    return tuple(found)


def equal_parts(one: object, other: object) -> bool:
    """Whether two parts of machines, or sequences of them, are the same to the last bit."""
    return _plain(one) == _plain(other)


def _link(link: Link) -> object:
    return link.name, link.real, link.label, _plain(link.ten), _plain(link.frames), _plain(link.capsules)


def _element(element: Element) -> object:
    return _plain(replace(element, name=element.parameter_name))


def _description(description: PointDescription | None) -> object:
    return None if description is None else _plain(replace(description, without_tree=()))


def _parameters(machine: Machine) -> object:
    try:
        return _plain(machine.parameters)
    except ModelError:
        if machine.description is None:
            raise
        return None  # no tree has this machine, so it has no parameters


def _plain(value: object) -> object:
    """Nested tuples that are equal where the values have the same bits; NaN is equal to itself, and −0 is not 0."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, *((f.name, _plain(getattr(value, f.name))) for f in fields(value))
    if isinstance(value, Mapping):
        return tuple((str(key), _plain(item)) for key, item in value.items())
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):  # either stands for a sequence
        return tuple(_plain(item) for item in value)
    if isinstance(value, float | np.number) or (isinstance(value, int) and not isinstance(value, bool)):
        value = float(value)
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    return value
