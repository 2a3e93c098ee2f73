"""The sections ``constants`` and ``parameters`` of a model file: names for numbers, what is known or tied, priors and typical sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml.nodes import MappingNode, Node

from veridyn.errors import ModelError, did_you_mean
from veridyn.files.expressions import is_constant_name
from veridyn.files.machine.write_parts import COVARIANCE, DRIFT, PARAMETERS
from veridyn.files.yaml_nodes import line_of
from veridyn.files.yaml_reader import Reader
from veridyn.model.elements.element import Element
from veridyn.model.graph import Body
from veridyn.model.parameters import Drift, ParameterSet, Tie, Uncertainty
from veridyn.spatial.inertia import INERTIAL

WHERE = "parameters"


@dataclass
class ParameterSection:
    """What the section says, ready to be applied to the parameters of the machine."""

    values: dict[str, float] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)
    tied: dict[str, Tie] = field(default_factory=dict)
    typical: dict[str, float] = field(default_factory=dict)
    drifts: dict[str, Drift] = field(default_factory=dict)
    uncertainty: Uncertainty | None = None

    @property
    def changes(self) -> bool:
        """Whether it says anything about values, states, ties, typical sizes or drifts."""
        return bool(self.values or self.known or self.tied or self.typical or self.drifts)

    def applied(self, parameters: ParameterSet) -> ParameterSet:
        out = parameters.replacing(self.values).known(self.known).tied(self.tied).drifting(self.drifts)
        sizes = out.typical.copy()
        for name, size in self.typical.items():
            sizes[out.index(name)] = size
        return replace(out, typical=sizes)


def read_constants(read: Reader, node: Node) -> None:
    """Names for numbers, which later formulas of the file may use."""
    for name, key, value in read.items(node, "constants"):
        if is_constant_name(name):
            # 1 stands for a value that cannot be read, so that what uses it is not reported as well.
            read.constants[name] = read.number(value, "constants", name, fallback=1.0)
        else:
            expected = "letters, digits and _, and no word of formulas"
            read.fault(key, f"a constant cannot be called '{name}'.", "constants", expected)


def read_parameters(
    read: Reader, node: Node | None, priors: Mapping[str, float], constants: Mapping[str, float] | None = None
) -> ParameterSection:
    """Read the section and check it against the machine's parameters, whose values without it are `priors`.

    `constants` of the laws of elements may have standard deviations and covariances too.
    """
    out = ParameterSection()
    if node is None:
        return out
    at = read.mapping(node, WHERE, PARAMETERS)
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
    if "drifts" in at:
        _read_drifts(read, at["drifts"], priors, out)
    out.uncertainty = _read_uncertainty(read, at, {**priors, **(constants or {})})
    return out


def _read_drifts(read: Reader, node: Node, priors: Mapping[str, float], out: ParameterSection) -> None:
    where = f"{WHERE}, drifts"
    for name, key, value in read.items(node, where):
        at = read.mapping(value, where, DRIFT, required=DRIFT)
        numbers = {
            word: read.number(at[word], where, f"{word} of {name}", fallback=1.0) for word in DRIFT if word in at
        }
        for word, number in numbers.items():
            if number <= 0.0:
                read.fault(at[word], f"'{word}' of {name} is not above zero.", where, found=f"{number:g}")
        if _exists(read, key, name, priors) and len(numbers) == len(DRIFT) and min(numbers.values()) > 0.0:
            out.drifts[name] = Drift(**numbers)


def _read_uncertainty(read: Reader, at: Mapping[str, Node], priors: Mapping[str, float]) -> Uncertainty | None:
    """Standard deviations by name, or a covariance matrix with the names of its rows."""
    where = f"{WHERE}, covariance"
    if "sigma" in at and "covariance" in at:
        read.fault(at["covariance"], "'sigma' and 'covariance' say the same thing.", WHERE, hint="Drop one.")
        return None
    if "sigma" in at:
        sigma: dict[str, float] = {}
        for name, key, value in read.items(at["sigma"], f"{WHERE}, sigma"):
            found = read.number(value, WHERE, f"the standard deviation of {name}", fallback=1.0)
            if found < 0.0:
                read.fault(value, f"the standard deviation of {name} is below zero.", WHERE, found=f"{found:g}")
            if _exists(read, key, name, priors):
                sigma[name] = found
        return Uncertainty(tuple(sigma), np.diag([s**2 for s in sigma.values()]))
    if "covariance" not in at:
        return None
    given = read.mapping(at["covariance"], where, COVARIANCE, required=COVARIANCE)
    if len(given) < 2:
        return None
    names = read.texts(given["names"], where, "names")
    known = [_exists(read, given["names"], name, priors) for name in names]
    rows = read.matrix(given["matrix"], where, "matrix", (len(names), len(names)))
    if rows is None or not all(known):
        return None
    try:
        return Uncertainty(tuple(names), np.array(rows).reshape(len(names), len(names)))
    except ModelError as error:
        read.faults.extend(replace(fault, where=where, line=line_of(given["matrix"])) for fault in error.faults)
        return None


def priors_of(
    bodies: Sequence[Body], inertia: Mapping[str, NDArray[np.float64]], elements: Sequence[Element]
) -> dict[str, float]:
    """Names and values of the parameters that bodies and elements have, NaN where they are unknown."""
    out: dict[str, float] = {}
    for b in bodies:
        if b.real:
            ten = inertia.get(b.name, np.full(10, np.nan))
            out |= {b.parameter(symbol): float(x) for symbol, x in zip(INERTIAL, ten, strict=True)}
    return out | {e.parameter_name: e.value for e in elements}


def constants_in(elements: Sequence[Element]) -> dict[str, float]:
    """Names and values of the constants that elements give for their laws ("fst_q1.speed")."""
    return {f"{e.parameter_name}.{key}": value for e in elements for key, value in e.constants.items()}


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
            hint = "Tie both to the one parameter that is estimated."
            read.fault(keys[name], f"'{name}' is tied to '{tie.to}', which is tied itself.", WHERE, hint=hint)
        if name in out.known:
            read.fault(keys[name], f"'{name}' is known and tied at once.", WHERE, hint="Drop one.")
