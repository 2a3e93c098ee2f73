"""The section ``parameters`` of a model file: what is known or tied, and other priors and typical sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml.nodes import MappingNode, Node

from veridyn.errors import did_you_mean
from veridyn.files.yaml_reader import Reader
from veridyn.model.elements import Element
from veridyn.model.joint import Body
from veridyn.model.parameters import ParameterSet, Tie
from veridyn.spatial.inertia import INERTIAL

WHERE = "parameters"
SECTIONS = ("known", "tied", "typical", "values")


@dataclass
class ParameterSection:
    """What the section says, ready to be applied to the parameters of the machine."""

    values: dict[str, float] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)
    tied: dict[str, Tie] = field(default_factory=dict)
    typical: dict[str, float] = field(default_factory=dict)

    def applied(self, parameters: ParameterSet) -> ParameterSet:
        out = parameters.replacing(self.values).known(self.known).tied(self.tied)
        sizes = out.typical.copy()
        for name, size in self.typical.items():
            sizes[out.index(name)] = size
        return replace(out, typical=sizes)


def read_parameters(
    read: Reader,
    node: Node | None,
    bodies: Sequence[Body],
    inertia: Mapping[str, NDArray[np.float64]],
    elements: Sequence[Element],
    odd_names: Sequence[str] = (),
) -> ParameterSection:
    """Read the section and check it against the machine's parameters. `odd_names`: elements that could not be read."""
    out = ParameterSection()
    if node is None:
        return out
    priors = _priors(bodies, inertia, elements) | dict.fromkeys(odd_names, 0.0)
    at = read.mapping(node, WHERE, SECTIONS)
    if "values" in at:
        for name, key, value in read.items(at["values"], f"{WHERE}, values"):
            if _exists(read, key, name, priors):
                out.values[name] = read.number(value, WHERE, name, unknown=True)
    if "known" in at:
        _read_known(read, at["known"], priors, out)
    if "tied" in at:
        _read_tied(read, at["tied"], priors, out)
    if "typical" in at:
        for name, key, value in read.items(at["typical"], f"{WHERE}, typical"):
            size = read.number(value, WHERE, f"the typical size of {name}", fallback=1.0)
            if size <= 0.0:
                read.fault(value, f"the typical size of {name} is not above zero.", WHERE, found=f"{size:g}")
            if _exists(read, key, name, priors):
                out.typical[name] = size
    return out


def _priors(
    bodies: Sequence[Body], inertia: Mapping[str, NDArray[np.float64]], elements: Sequence[Element]
) -> dict[str, float]:
    out: dict[str, float] = {}
    for b in bodies:
        if b.real:
            ten = inertia.get(b.name, np.full(10, np.nan))
            out |= {b.parameter(symbol): float(x) for symbol, x in zip(INERTIAL, ten, strict=True)}
    return out | {e.parameter_name: e.value for e in elements}


def _exists(read: Reader, node: Node, name: str, priors: Mapping[str, float]) -> bool:
    if name in priors:
        return True
    read.fault(node, f"there is no parameter '{name}'.", WHERE, hint=did_you_mean(name, list(priors)))
    return False


def _read_known(read: Reader, node: Node, priors: Mapping[str, float], out: ParameterSection) -> None:
    if isinstance(node, MappingNode):
        for name, key, value in read.items(node, f"{WHERE}, known"):
            number = read.number(value, WHERE, name, fallback=0.0)
            if _exists(read, key, name, priors):
                out.values[name] = number
                out.known.append(name)
        return
    for item in read.sequence(node, WHERE, "known"):
        name = read.text(item, WHERE, "an entry of known")
        if name is None or not _exists(read, item, name, priors):
            continue
        if math.isnan(out.values.get(name, priors[name])):
            hint = f"Write known: {{{name}: VALUE}}."
            read.fault(item, f"'{name}' has no value, so it cannot be known.", WHERE, hint=hint)
        out.known.append(name)


def _read_tied(read: Reader, node: Node, priors: Mapping[str, float], out: ParameterSection) -> None:
    keys: dict[str, Node] = {}
    for name, key, value in read.items(node, f"{WHERE}, tied"):
        factor = 1.0
        if isinstance(value, MappingNode):
            at = read.mapping(value, f"{WHERE}, tied", ("to", "factor"), required=("to",))
            to = read.text(at["to"], WHERE, "to") if "to" in at else None
            factor = read.number(at["factor"], WHERE, "factor", 1.0) if "factor" in at else 1.0
        else:
            to = read.text(value, WHERE, f"what {name} is tied to")
        found = _exists(read, key, name, priors)
        if to is not None and _exists(read, value, to, priors) and found:
            keys[name] = key
            out.tied[name] = Tie(to, factor)
    for name, tie in out.tied.items():
        if tie.to in out.tied:
            hint = "Tie both to the one parameter that is asked."
            read.fault(keys[name], f"'{name}' is tied to '{tie.to}', which is tied itself.", WHERE, hint=hint)
        if name in out.known:
            read.fault(keys[name], f"'{name}' is known and tied at once.", WHERE, hint="Drop one.")
