"""The laws of :mod:`veridyn.mechanics.control.law` as machine code: three kernels of a controller that compiled runs call at its ticks.

``request`` is Γ before limits, ``limit`` Γ within them with the state of the law after the tick, ``voltage`` a tick of the current loop.
Kernels read and write fields of the controller's row of a table, and are shared by all controllers of one kind with the same constants
given, whatever their values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.control.law import ControlConstants, ControlTick, law_states, limited, requested, voltage
from veridyn.mechanics.tree.steps.record import call_addresses
from veridyn.model.controller import Controller
from veridyn.symbolic.cache import Stored, key_of, load_or_make, remembered
from veridyn.symbolic.emit_llvm import emit
from veridyn.symbolic.expression import Graph, Number, live
from veridyn.symbolic.kernel import Kernel, compile_object, this_host
from veridyn.symbolic.sources import source_digest

Part = Literal["request", "limit", "voltage"]
PARTS: tuple[Part, ...] = ("request", "limit", "voltage")
# Fields of a controller's row: what a tick reads, states of the law, what comes of it, and the same of the current loop.
FIELDS = (
    *ControlTick._fields, "raw", "integral", "force", "out", "integral_after", "force_after",
    "wanted", "current", "current_integral", "volts", "current_integral_after",
)  # fmt: skip
(
    R, RD, RDD, Q, QD, MODEL, RAW, INTEGRAL, FORCE, OUT, INTEGRAL_AFTER, FORCE_AFTER,
    WANTED, CURRENT, CURRENT_INTEGRAL, VOLTS, CURRENT_INTEGRAL_AFTER,
) = range(len(FIELDS))  # fmt: skip
WIDTH = len(FIELDS)


@dataclass(frozen=True, eq=False)
class LawKernel:
    """A part of a law as machine code, and the names of the fields it writes, in order."""

    kernel: Kernel
    written: tuple[str, ...]


def law_kernel(c: Controller, part: Part) -> LawKernel:
    """The kernel of a controller's kind and of the constants that it gives, from memory, from disk, or made now."""
    target, own = this_host(1), replace(c, name="law")
    words = (
        part,
        c.kind,
        c.anti_windup,
        repr(sorted(c.constants)),
        repr(c.rate),
        str(c.current_ticks),
        str(bool(c.motor)),
    )
    key = key_of("control law", *words, target.signature, source_digest(__name__) or "")

    def make() -> Stored:
        graph = Graph()
        found = _formula(graph, own, part)
        used = set(live(graph, found.values()))
        names = [name for name, node in graph.inputs.items() if node in used]
        samples = [name for name in names if name in FIELDS]
        parameters = [name for name in names if name not in FIELDS]
        program = emit(graph, list(found.values()), samples, parameters, target.width, 1)
        written = list(found)
        description = {
            "written": [written[k] for k in program.order],
            "samples": samples,
            "parameters": parameters,
            "places": program.places,
        }
        return Stored(compile_object(program.text, target), description)

    def load() -> LawKernel:
        stored = load_or_make(key, make) if source_digest(__name__) else make()  # sources were edited: not kept
        d = stored.description
        kernel = Kernel(stored.code, tuple(d["samples"]), tuple(d["parameters"]), len(d["written"]), d["places"], 1)
        return LawKernel(kernel, tuple(d["written"]))

    return remembered(key, load)


def _formula(graph: Graph, c: Controller, part: Part) -> dict[str, Number]:
    """Field → what a part of the law writes into it."""
    k = ControlConstants(c, graph)
    if part == "voltage":
        wanted, current, integral = (graph.input(name) for name in ("wanted", "current", "current_integral"))
        volts, integral = voltage(c, wanted, current, integral, k)
        return {"volts": volts, "current_integral_after": integral}
    x = ControlTick(*(graph.input(name) for name in ControlTick._fields))
    state = {name: graph.input(name) for name in law_states(c)}
    if part == "request":
        return {"raw": requested(c, x, state, k)}
    out, after = limited(c, x, graph.input("raw"), state, k)
    return {"out": out, **{f"{name}_after": value for name, value in after.items()}}


def connect_law(c: Controller, row: Array) -> tuple[list[int], list[object]]:
    """The addresses by which compiled code calls the three kernels on the fields of `row`, six for each, and what must be kept alive."""
    addresses: list[int] = []
    held: list[object] = [row]
    for part in PARTS:
        if part == "voltage" and not c.motor:
            addresses += [0] * 6
            continue
        made = law_kernel(c, part)
        constants = np.array([c.constants[name.partition(".")[2]] for name in made.kernel.parameters] or [0.0])
        inputs, outputs = (
            row.ctypes.data + 8 * np.array([*map(FIELDS.index, names), 0], dtype=np.uintp)
            for names in (made.kernel.inputs, made.written)
        )
        found, alive = call_addresses(made.kernel, inputs, outputs, constants.ctypes.data)
        addresses += found
        held += [constants, *alive]
    return addresses, held
