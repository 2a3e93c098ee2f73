"""Expressions as PTX, the assembly language of NVIDIA GPUs: one thread a sample, straight lines, no compiler but the driver's.

Samples lie together in memory: input k of sample s is ``inputs[k * input_stride + s]``, so that neighbouring threads read neighbouring
numbers. Every output is stored as soon as it is known. The order of evaluation keeps few values alive
(:mod:`veridyn.symbolic.lowering`); inputs and parameters that are needed again much later are loaded again, which costs less than a
register held. Constants are hexadecimal doubles, and sine and cosine are those of the other back ends, so that results agree with the
processor's to rounding.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from veridyn.symbolic.expression import CONST, INPUT, Graph, Number
from veridyn.symbolic.lowering import (
    FUNCTIONS,
    Arithmetic,
    Instruction,
    instructions,
    live_values,
    scheduled,
    sine_and_cosine,
)

VERSION, TARGET = "7.0", "sm_70"  # of PTX and of the oldest processor; drivers assemble it for newer ones
THREADS = 128  # of one block
RELOAD = 120  # instructions after which an input is loaded again rather than held in a register
INSTRUCTIONS = {
    **{name: f"{name}.rn.f64" for name in ("add", "sub", "mul", "div", "fma")},
    "bits": "mov.b64",
    "double": "mov.b64",
    "plus": "add.s64",
    "minus": "sub.s64",
    "both": "and.b64",
    "either": "xor.b64",
    "up": "shl.b64",
    "down": "shr.s64",
    "less": "setp.lt.f64",
    "differs": "setp.ne.s64",
    "choose": "selp.f64",
}
INTEGER = {"bits", "plus", "minus", "both", "either", "up", "down"}  # operations whose result is an integer
BY_VALUE = 448  # parameters that fit the 4096 bytes of a kernel's arguments, beside its pointers


def hexadecimal(value: float) -> str:
    """A double as PTX writes it: 0d and sixteen digits."""
    return f"0d{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"


@dataclass
class PtxArithmetic(Arithmetic[str]):
    """Instructions on registers: every operation a line, its result in a new register, which the assembler places."""

    lines: list[str] = field(default_factory=list)
    doubles: int = 0
    integers: int = 0
    conditions: int = 0
    operations: int = 0

    def _double(self, text: str) -> str:
        self.doubles += 1
        self.operations += 1
        self.lines.append(text.replace("@", f"%d{self.doubles}"))
        return f"%d{self.doubles}"

    def address(self, text: str) -> str:
        """An instruction whose result is a 64-bit integer."""
        self.integers += 1
        self.lines.append(text.replace("@", f"%l{self.integers}"))
        return f"%l{self.integers}"

    def _condition(self, text: str) -> str:
        self.conditions += 1
        self.lines.append(text.replace("@", f"%p{self.conditions}"))
        return f"%p{self.conditions}"

    def number(self, value: float) -> str:
        return hexadecimal(value)

    def whole(self, value: int) -> str:
        return str(value)

    def operation(self, name: str, *operands: str) -> str:
        text = f"{INSTRUCTIONS[name]} @, {', '.join(operands)};"
        if name in ("less", "differs"):
            return self._condition(text)
        return self.address(text) if name in INTEGER else self._double(text)

    def div(self, a: str, b: str) -> str:
        return self.unary("rcp.rn", b) if a == hexadecimal(1.0) else self.operation("div", a, b)

    def minus_of(self, a: str) -> str:
        return self.unary("neg", a)

    def unary(self, name: str, a: str) -> str:
        return self._double(f"{name}.f64 @, {a};")

    def load(self, text: str) -> str:
        name = self._double(text)
        self.operations -= 1
        return name


@dataclass(frozen=True)
class PtxKernel:
    """PTX text of one kernel and how to call it.

    ``name(inputs, parameters, outputs, input_stride, output_stride, count, per_set)``: pointers, and unsigned 32-bit numbers. Output k
    of sample s goes to ``outputs[k * output_stride + s]``, k in the order of the request; outputs beyond `count` are left alone.
    Where `by_value`, `parameters` are doubles within the arguments; else a pointer to sets of them, and sample s uses set s // per_set.
    `live` is the most values alive at once, `operations` the number of instructions on doubles.
    """

    name: str
    text: str
    samples: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: int
    by_value: bool
    live: int
    operations: int


def emit_ptx(
    graph: Graph,
    outputs: Sequence[Number],
    samples: Sequence[str],
    parameters: Sequence[str],
    name: str = "kernel",
    *,
    by_value: bool = True,
    goals: Sequence[int] | None = None,
) -> PtxKernel:
    """The kernel that computes `outputs` from inputs named: one value a sample, or one for many samples (`parameters`).

    `by_value` parameters are part of a launch and cost no register; beyond 448 of them, a pointer is passed all the same.
    `goals`: the numbers of the outputs in an order in which they share most with their neighbours; theirs by default.
    """
    references = [graph.reference(x) for x in outputs]
    code = instructions(graph, outputs)
    order = scheduled(
        {n: i.operands for n, i in code.items()}, [references[k].node for k in (goals or range(len(outputs)))]
    )
    by_value = by_value and len(parameters) <= BY_VALUE
    writer = Writer(graph, code, tuple(samples), tuple(parameters), by_value)
    stores = graph.stores(outputs)
    for n in [n for n in stores if n not in code]:
        writer.store(n, stores[n])
    for n in order:
        writer.compute(n)
        writer.store(n, stores.get(n, []))
    alive = live_values({n: tuple(m for m in i.operands if m in code) for n, i in code.items()}, order)[0]
    text = _frame(name, writer, len(parameters), by_value)
    return PtxKernel(
        name, text, tuple(samples), tuple(parameters), len(outputs), by_value, alive, writer.arithmetic.operations
    )


class Writer:
    """The body of a kernel: values in registers by node, written in the order in which they are asked for."""

    def __init__(
        self,
        graph: Graph,
        code: dict[int, Instruction],
        samples: tuple[str, ...],
        parameters: tuple[str, ...],
        by_value: bool,
    ) -> None:
        self.graph, self.code, self.by_value = graph, code, by_value
        self.arithmetic = PtxArithmetic()
        by_node = {n: name for name, n in graph.inputs.items()}
        sample_at, parameter_at = ({name: k for k, name in enumerate(names)} for names in (samples, parameters))
        self.sample = {n: sample_at[name] for n, name in by_node.items() if name in sample_at}
        self.parameter = {n: parameter_at[name] for n, name in by_node.items() if name in parameter_at}
        self.value: dict[int, str] = {}
        self.loaded_at: dict[int, int] = {}
        self.turned: dict[int, tuple[str, str]] = {}

    def operand(self, n: int) -> str:
        """The register or constant of a node; inputs are loaded, and loaded again where they were last used long ago."""
        op = self.graph.operation[n]
        if op == CONST:
            return hexadecimal(self.graph.constants[n])
        if op != INPUT:
            return self.value[n]
        now = self.arithmetic.operations
        if n not in self.value or now - self.loaded_at[n] > RELOAD or (n in self.parameter and self.by_value):
            self.value[n] = self._load(n)
        self.loaded_at[n] = now
        return self.value[n]

    def _load(self, n: int) -> str:
        a = self.arithmetic
        if n in self.sample:
            return a.load(f"ld.global.nc.f64 @, [{self._address('%in', '%ldi', self.sample[n])}];")
        offset = 8 * self.parameter[n]
        return a.load(
            f"ld.param.f64 @, [parameters+{offset}];"
            if self.by_value
            else f"ld.volatile.global.f64 @, [%parameters+{offset}];"  # else the assembler loads all of them at the start
        )

    def _address(self, base: str, stride: str, k: int) -> str:
        return base if k == 0 else self.arithmetic.address(f"mad.wide.u32 @, {stride}, {8 * k}, {base};")

    def compute(self, n: int) -> None:
        """Write the instructions of a node."""
        a, instruction = self.arithmetic, self.code[n]
        name = instruction.name
        x = [self.operand(m) for m in instruction.operands]
        if name in ("sin", "cos"):
            angle = instruction.operands[0]
            if angle not in self.turned:
                self.turned[angle] = sine_and_cosine(a, x[0])
            self.value[n] = self.turned[angle][0 if name == "sin" else 1]
        elif name == "fma":
            self.value[n] = a.fma(x[0], x[1], x[2])
        elif name == "fnma":
            self.value[n] = a.fma(a.minus_of(x[0]), x[1], x[2])
        elif name == "fms":
            self.value[n] = a.fma(x[0], x[1], a.minus_of(x[2]))
        elif name == "sign":
            self.value[n] = a.sign(x[0])
        elif name in ("abs", "sqrt"):
            self.value[n] = a.unary("abs" if name == "abs" else "sqrt.rn", x[0])
        elif name in FUNCTIONS:
            self.value[n] = FUNCTIONS[name](a, x[0])
        else:
            self.value[n] = a.div(x[0], x[1]) if name == "div" else a.operation(name, x[0], x[1])

    def store(self, n: int, places: Sequence[tuple[int, bool]]) -> None:
        """Store a node at its places among the outputs."""
        for k, negative in places:
            x = self.operand(n)
            written = self.arithmetic.minus_of(x) if negative else x
            self.arithmetic.lines.append(f"st.global.f64 [{self._address('%out', '%ldo', k)}], {written};")


def _frame(name: str, writer: Writer, parameters: int, by_value: bool) -> str:
    """The kernel around its body: which sample this thread has, and where its numbers are."""
    a = writer.arithmetic
    body = "\n".join("    " + line for line in a.lines)
    given = f".param .align 8 .b8 parameters[{8 * max(1, parameters)}]" if by_value else ".param .u64 parameters"
    sets = (
        ""
        if by_value
        else f"""
    ld.param.u64 %parameters, [parameters];
    cvta.to.global.u64 %parameters, %parameters;
    ld.param.u32 %r5, [per_set];
    div.u32 %r5, %r4, %r5;
    mad.wide.u32 %parameters, %r5, {8 * parameters}, %parameters;"""
    )
    return f""".version {VERSION}
.target {TARGET}
.address_size 64

.visible .entry {name}(
    .param .u64 inputs,
    {given},
    .param .u64 outputs,
    .param .u32 input_stride,
    .param .u32 output_stride,
    .param .u32 count,
    .param .u32 per_set
)
.maxntid {THREADS}, 1, 1
{{
    .reg .pred %p<{a.conditions + 1}>;
    .reg .b32 %r<6>;
    .reg .b64 %l<{a.integers + 1}>;
    .reg .f64 %d<{a.doubles + 1}>;
    .reg .b32 %ldi, %ldo;
    .reg .b64 %in, %out, %parameters;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r4, %r1, {THREADS}, %r2;
    ld.param.u32 %r3, [count];
    setp.ge.u32 %p0, %r4, %r3;
    @%p0 ret;
    ld.param.u64 %in, [inputs];
    ld.param.u64 %out, [outputs];
    ld.param.u32 %ldi, [input_stride];
    ld.param.u32 %ldo, [output_stride];
    cvta.to.global.u64 %in, %in;
    cvta.to.global.u64 %out, %out;
    mad.wide.u32 %in, %r4, 8, %in;
    mad.wide.u32 %out, %r4, 8, %out;{sets}
{body}
    ret;
}}
"""
