"""The laws of tyres as machine code over the motion of one wheel, with their exact derivatives.

The laws are those of :mod:`veridyn.mechanics.ground.tyres`, run on symbols in the ground's frame. Inputs x (17,): the wheel's axis, centre,
velocity of the centre, angular velocity, the two lagging slips, and the road's plane (height at the origin, slopes). Outputs f (8,):
force, moment about the centre, rates of the slips; and ∂f/∂x (8, 14) with the road's plane held. Constants of the law are inputs: one
kernel serves all tyres of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.mechanics.ground.tyres import Tyre
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import ROAD_INPUTS, SLIPS
from veridyn.spatial.algebra import is_zero, mul
from veridyn.spatial.linalg import IDENTITY, ZERO, Mat, Vec
from veridyn.symbolic.cache import Stored, key_of, load_or_make, remembered
from veridyn.symbolic.derivative import forward
from veridyn.symbolic.emit_llvm import emit
from veridyn.symbolic.expression import Graph, Number, live
from veridyn.symbolic.kernel import Kernel, compile_object, this_host
from veridyn.symbolic.sources import note_sources, source_digest

Array = NDArray[np.float64]
MOTION = tuple(f"{part}.{axis}" for part in ("axis", "centre", "v", "w") for axis in range(3))
INPUTS = (*MOTION, *(s.key for s in SLIPS), *ROAD_INPUTS)
SLOPES = len(MOTION) + len(SLIPS)  # inputs by which outputs are differentiated
OUTPUTS = 8
GAIN = "gain"
note_sources(__name__)


@dataclass(frozen=True)
class _Rolling:
    """The motion of a wheel as symbols, in the ground's frame; moments are about the wheel's centre."""

    axis: Vec
    place: Vec
    v: Vec
    w: Vec
    centre: Vec = ZERO

    @property
    def pose(self) -> tuple[Mat, Vec]:
        return IDENTITY, self.place


@dataclass(frozen=True, eq=False)
class TyreCode:
    """A kernel of one kind of tyre; `places`: where each of its outputs stands in a row (8 + 8·14) of f and, row by row, ∂f/∂x."""

    kernel: Kernel
    places: tuple[int, ...]

    def constants(self, e: Element) -> Array:
        """The numbers of one tyre, as the kernel takes them."""
        return np.array([e.value if key == GAIN else e.constants[key] for key in self.kernel.parameters])


def tyre_code(e: Element, derivative: bool) -> TyreCode:
    """The kernel of an element's kind and of the constants that it gives, from memory, from disk, or made now."""
    target, given = this_host(1), tuple(sorted(e.constants))
    key = key_of("natural tyre", e.kind, repr(given), str(derivative), target.signature, source_digest(__name__) or "")

    def make() -> Stored:
        graph = Graph()
        found = _formula(graph, e, derivative)
        used = set(live(graph, found.values()))
        names = [name for name, node in graph.inputs.items() if node in used]
        samples = [name for name in names if name in INPUTS]
        parameters = [name for name in names if name not in INPUTS]
        program = emit(graph, list(found.values()), samples, parameters, target.width, 1)
        labels = list(found)
        description = {
            "labels": [labels[k] for k in program.order],
            "samples": samples,
            "parameters": parameters,
            "places": program.places,
        }
        return Stored(compile_object(program.text, target), description)

    def load() -> TyreCode:
        stored = load_or_make(key, make) if source_digest(__name__) else make()  # sources were edited: not kept
        d = stored.description
        kernel = Kernel(stored.code, tuple(d["samples"]), tuple(d["parameters"]), len(d["labels"]), d["places"], 1)
        return TyreCode(kernel, tuple(d["labels"]))

    return remembered(key, load)


def _formula(graph: Graph, e: Element, derivative: bool) -> dict[int, Number]:
    """Place in a row of outputs → expression; zeros are left out."""
    x = [graph.input(name) for name in INPUTS]

    def vector(part: int) -> Vec:
        return x[3 * part], x[3 * part + 1], x[3 * part + 2]

    def constant(key: str) -> Number:
        return graph.input(key) if key in e.constants else e.constant(key)

    keys = (*(s.key for s in SLIPS), *ROAD_INPUTS)
    signals: Mapping[str, Number] = {f"{e.parameter_name}.{key}": graph.input(key) for key in keys}
    wheel = _Rolling(vector(0), vector(1), vector(2), vector(3))
    tyre = Tyre(e, wheel, constant, signals, graph)
    force, moment = tyre.wrench()
    rates = tyre.slip_rates()
    gain = graph.input(GAIN)
    f = [*(mul(gain, part) for part in (*force, *moment)), *(rates[s.key] for s in SLIPS)]
    found = dict(enumerate(f))
    if derivative:
        for j, column in enumerate(forward(graph, f, x[:SLOPES])):
            found |= {OUTPUTS + i * SLOPES + j: value for i, value in enumerate(column)}
    return {place: value for place, value in found.items() if not is_zero(value)}
