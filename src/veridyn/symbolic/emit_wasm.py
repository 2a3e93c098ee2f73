"""Expressions as a WebAssembly module, for a page or any other place that runs WebAssembly; no toolchain, only its bytes.

Straight-line code on doubles, cut into functions that stay far below what browsers accept (50,000 locals); what one function leaves for
a later one waits in memory. Sine, cosine and their like are those of the other back ends. WebAssembly has no fused products, so results
agree with the processor's to rounding, not to the last bit.

The module exports ``memory``, the function ``run(inputs, outputs, count)`` and two addresses: ``parameters``, where the caller writes
the parameters, and ``free``, from which on memory is the caller's. `inputs` and `outputs` are addresses of doubles, sample after sample.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from veridyn.symbolic.expression import CONST, INPUT, Graph, Number
from veridyn.symbolic.lowering import FUNCTIONS, Arithmetic, Instruction, instructions, scheduled, sine_and_cosine

I32, I64, F64 = 0x7F, 0x7E, 0x7C
PIECE = 1000  # instructions of one function
PAGE = 65536  # bytes in which memory is counted
MAGIC = b"\0asm\1\0\0\0"
BINARY = {"add": 0xA0, "sub": 0xA1, "mul": 0xA2, "div": 0xA3}
UNARY = {"abs": 0x99, "sqrt": 0x9F}
OPERATIONS = {
    **{name: (F64, code) for name, code in {**BINARY, "double": 0xBF, "choose": 0x1B}.items()},
    "bits": (I64, 0xBD),
    "plus": (I64, 0x7C),
    "minus": (I64, 0x7D),
    "both": (I64, 0x83),
    "either": (I64, 0x85),
    "up": (I64, 0x86),
    "down": (I64, 0x87),
    "less": (I32, 0x63),
    "differs": (I32, 0x52),
}
NOWHERE = b"\x41\x00"  # address 0, to which a constant one is added


def unsigned(value: int) -> bytes:
    """A number as WebAssembly writes it: seven bits a byte, the lowest first."""
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def signed(value: int) -> bytes:
    """The same with a sign, in two's complement."""
    out = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        if (value == 0 and not low & 0x40) or (value == -1 and low & 0x40):
            out.append(low)
            return bytes(out)
        out.append(low | 0x80)


def vector(items: Iterable[bytes]) -> bytes:
    """Some items behind their number."""
    found = list(items)
    return unsigned(len(found)) + b"".join(found)


def section(number: int, content: bytes) -> bytes:
    """A section of a module: its kind, its length, its content."""
    return bytes([number]) + unsigned(len(content)) + content


@dataclass
class WasmFunction(Arithmetic[bytes]):
    """Code of one function; a value is the code that puts it on the stack."""

    arguments: int
    code: bytearray = field(default_factory=bytearray)
    locals: list[int] = field(default_factory=list)

    def keep(self, kind: int, code: bytes) -> bytes:
        """Compute once: the value of some code, in a new local."""
        self.code += code
        return self.name_top(kind)

    def name_top(self, kind: int) -> bytes:
        number = unsigned(self.arguments + len(self.locals))
        self.locals.append(kind)
        self.code += b"\x21" + number
        return b"\x20" + number

    def body(self) -> bytes:
        """The function as a module holds it: its length, locals in runs of one kind, code."""
        runs: list[list[int]] = []
        for kind in self.locals:
            if runs and runs[-1][1] == kind:
                runs[-1][0] += 1
            else:
                runs.append([1, kind])
        content = vector(unsigned(n) + bytes([kind]) for n, kind in runs) + bytes(self.code) + b"\x0b"
        return unsigned(len(content)) + content

    def number(self, value: float) -> bytes:
        return b"\x44" + struct.pack("<d", value)

    def whole(self, value: int) -> bytes:
        return b"\x42" + signed(value)

    def operation(self, name: str, *operands: bytes) -> bytes:
        kind, code = OPERATIONS[name]
        return self.keep(kind, b"".join(operands) + bytes([code]))

    def fma(self, a: bytes, b: bytes, c: bytes) -> bytes:
        """Rounded twice: there is no fused product."""
        return self.keep(F64, a + b + b"\xa2" + c + b"\xa0")

    def load(self, base: bytes, address: int) -> bytes:
        return self.keep(F64, base + b"\x2b\x03" + unsigned(address))

    def store(self, base: bytes, address: int, value: bytes) -> None:
        self.code += base + value + b"\x39\x03" + unsigned(address)


@dataclass(frozen=True)
class WasmModule:
    """The bytes of a module, what its inputs, parameters and outputs are, and where parameters go and free memory begins."""

    code: bytes
    samples: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: int
    parameters_at: int
    free: int
    functions: int


ARGUMENT = tuple(b"\x20" + unsigned(k) for k in range(3))


def emit_wasm(graph: Graph, outputs: Sequence[Number], samples: Sequence[str], parameters: Sequence[str]) -> WasmModule:
    """The module that computes `outputs` from inputs named: one value a sample, or one for all samples (`parameters`)."""
    code = instructions(graph, outputs, fused=False)
    stores = graph.stores(outputs)
    order = scheduled({n: i.operands for n, i in code.items()}, list(stores))
    used = {i.name for i in code.values()}
    helpers = [_sincos()] if used & {"sin", "cos"} else []
    number = {}
    for name in sorted(used & FUNCTIONS.keys()):
        number[name] = len(helpers)
        helpers.append(_helper(FUNCTIONS[name]))
    pieces, work = _pieces(graph, code, order, stores, samples, parameters, number)
    parameters_at = 8
    work_at = parameters_at + 8 * len(parameters)
    free = work_at + 8 * work
    first = len(helpers)
    functions = [*helpers, *pieces, _run(first, len(pieces), 8 * len(samples), 8 * len(outputs))]
    kinds = [0 if k == 0 and used & {"sin", "cos"} else 1 for k in range(first)] + [2] * len(pieces) + [3]
    types = [_type([F64], [F64, F64]), _type([F64], [F64]), _type([I32, I32], []), _type([I32, I32, I32], [])]
    addresses = [bytes([I32, 0]) + b"\x41" + signed(x) + b"\x0b" for x in (parameters_at, free)]
    exports = [("memory", 2, 0), ("run", 0, len(functions) - 1), ("parameters", 3, 0), ("free", 3, 1)]
    module = (
        MAGIC
        + section(1, vector(types))
        + section(3, vector(unsigned(k) for k in kinds))
        + section(5, vector([b"\x00" + unsigned(free // PAGE + 1)]))
        + section(6, vector(addresses))
        + section(7, vector(_name(text) + bytes([kind]) + unsigned(k) for text, kind, k in exports))
        + section(10, vector(f.body() for f in functions))
    )
    return WasmModule(module, tuple(samples), tuple(parameters), len(outputs), parameters_at, free, len(functions))


def _type(given: Sequence[int], returned: Sequence[int]) -> bytes:
    return b"\x60" + unsigned(len(given)) + bytes(given) + unsigned(len(returned)) + bytes(returned)


def _name(text: str) -> bytes:
    return unsigned(len(text)) + text.encode()


def _sincos() -> WasmFunction:
    f = WasmFunction(1)
    sine, cosine = sine_and_cosine(f, ARGUMENT[0])
    f.code += sine + cosine
    return f


def _helper(made: Callable[[WasmFunction, bytes], bytes]) -> WasmFunction:
    f = WasmFunction(1)
    f.code += made(f, ARGUMENT[0])
    return f


def _pieces(
    graph: Graph,
    code: dict[int, Instruction],
    order: list[int],
    stores: dict[int, list[tuple[int, bool]]],
    samples: Sequence[str],
    parameters: Sequence[str],
    helper: dict[str, int],
) -> tuple[list[WasmFunction], int]:
    """The instructions in functions of (inputs, outputs), and how many values wait in memory between them."""
    parts = [order[k : k + PIECE] for k in range(0, len(order), PIECE)] or [[]]
    part_of = {n: k for k, part in enumerate(parts) for n in part}
    crossing = {m for n in order for m in code[n].operands if m in part_of and part_of[m] != part_of[n]}
    place = {m: 8 + 8 * (len(parameters) + k) for k, m in enumerate(sorted(crossing))}
    names = {n: name for name, n in graph.inputs.items()}
    found = []
    for part in parts:
        f = WasmFunction(2)
        value: dict[int, bytes] = {}
        turned: dict[int, tuple[bytes, bytes]] = {}

        def operand(n: int, f: WasmFunction = f, value: dict[int, bytes] = value) -> bytes:
            if graph.operation[n] == CONST:
                return f.number(graph.constants[n])
            if n not in value:
                if graph.operation[n] != INPUT:
                    value[n] = f.load(NOWHERE, place[n])
                elif names[n] in samples:
                    value[n] = f.load(ARGUMENT[0], 8 * samples.index(names[n]))
                else:
                    value[n] = f.load(NOWHERE, 8 + 8 * parameters.index(names[n]))
            return value[n]

        def store(n: int, f: WasmFunction = f, operand: Callable[[int], bytes] = operand) -> None:
            for k, negative in stores.get(n, []):
                f.store(ARGUMENT[1], 8 * k, operand(n) + (b"\x9a" if negative else b""))

        for n in part:
            name, given = code[n].name, code[n].operands
            x = [operand(m) for m in given]
            if name in ("sin", "cos"):
                if given[0] not in turned:
                    f.code += x[0] + b"\x10\x00"
                    cosine = f.name_top(F64)
                    turned[given[0]] = (f.name_top(F64), cosine)
                value[n] = turned[given[0]][0 if name == "sin" else 1]
            elif name == "sign":
                value[n] = f.sign(x[0])
            elif name in UNARY:
                value[n] = f.keep(F64, x[0] + bytes([UNARY[name]]))
            elif name in helper:
                value[n] = f.keep(F64, x[0] + b"\x10" + unsigned(helper[name]))
            else:
                value[n] = f.keep(F64, x[0] + x[1] + bytes([BINARY[name]]))
            if n in place:
                f.store(NOWHERE, place[n], value[n])
            store(n)
        if part is parts[-1]:
            for n in stores:
                if n not in code:
                    store(n)
        found.append(f)
    return found, len(place)


def _run(first: int, pieces: int, input_bytes: int, output_bytes: int) -> WasmFunction:
    """All pieces for one sample after the other, `count` times."""
    f = WasmFunction(3)
    inputs, outputs, count = ARGUMENT
    calls = b"".join(inputs + outputs + b"\x10" + unsigned(first + k) for k in range(pieces))
    f.code += b"\x02\x40" + count + b"\x45\x0d\x00"  # leave where count is 0
    f.code += b"\x03\x40" + calls
    f.code += inputs + b"\x41" + signed(input_bytes) + b"\x6a\x21\x00"
    f.code += outputs + b"\x41" + signed(output_bytes) + b"\x6a\x21\x01"
    f.code += count + b"\x41\x01\x6b\x22\x02\x0d\x00\x0b\x0b"  # one less, and again while some are left
    return f
