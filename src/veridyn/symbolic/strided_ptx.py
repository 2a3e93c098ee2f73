"""Expressions as PTX over arrays of any strides: one thread a sample, sets of samples side by side, sums over the samples of a set.

Arrays are (sets, samples, columns); each is four numbers, its address and the bytes from one set, one sample and one column to the next, so
that arrays are read and written as others hold them, and what all sets or all samples share has a stride of zero. A launch has one
argument: these numbers array by array, behind them the samples of a set and the blocks of threads that a set takes.

Parameters that all samples of a set share are brought to shared memory once by each block. A sum over samples, as the gradient by such
parameters is, is left as one partial sum for each warp of 32 samples: values are added across the warp in a fixed order, so that results
repeat to the last bit. What adds the partial sums up is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veridyn.symbolic.emit_ptx import RELOAD, TARGET, THREADS, VERSION, Writer, hexadecimal
from veridyn.symbolic.expression import CONST, INPUT, Graph, Number
from veridyn.symbolic.lowering import Instruction, instructions, live_values, scheduled

WARP = 32
SHARED_DOUBLES = (
    6144  # parameters that fit the 48 kB of shared memory that every block may have; more are read where they lie
)
NUMBERS = 4  # of an array: address, and bytes to the next set, sample and column


@dataclass(frozen=True)
class StridedKernel:
    """PTX of ``name(launch)``; `arrays` inputs and outputs, `summed` the number of the array of partial sums or −1."""

    name: str
    text: str
    arrays: int
    summed: int
    live: int
    operations: int

    @property
    def numbers(self) -> int:
        """64-bit integers of a launch."""
        return NUMBERS * self.arrays + 2


def emit_strided(
    graph: Graph,
    inputs: Sequence[Sequence[str]],
    outputs: Sequence[Sequence[Number]],
    *,
    shared: int = -1,
    summed: int = -1,
    name: str = "kernel",
) -> StridedKernel:
    """The kernel of arrays of outputs from arrays of inputs, each column an input by name.

    `shared`: the number of the input that all samples of a set share. `summed`: the number of the output whose columns are summed.
    """
    flat = [x for columns in outputs for x in columns]
    references = [graph.reference(x) for x in flat]
    code = instructions(graph, flat)
    order = scheduled({n: i.operands for n, i in code.items()}, [r.node for r in references])
    staged = shared if shared >= 0 and len(inputs[shared]) <= SHARED_DOUBLES else -1
    columns = [(len(inputs) + t, k) for t, wanted in enumerate(outputs) for k in range(len(wanted))]
    partial = len(inputs) + summed if summed >= 0 else -1
    writer = _StridedWriter(graph, code, inputs, columns, staged, partial)
    stores = graph.stores(flat)
    for n in [n for n in stores if n not in code]:
        writer.store(n, stores[n])
    for n in order:
        writer.compute(n)
        writer.store(n, stores.get(n, []))
    alive = live_values({n: tuple(m for m in i.operands if m in code) for n, i in code.items()}, order)[0]
    arrays = len(inputs) + len(outputs)
    text = _frame(name, writer, arrays, partial, staged, len(inputs[staged]) if staged >= 0 else 0)
    return StridedKernel(name, text, arrays, partial, alive, writer.arithmetic.operations)


class _StridedWriter(Writer):
    """The body: loads by array and column, stores of samples that exist, and sums across a warp."""

    def __init__(
        self,
        graph: Graph,
        code: dict[int, Instruction],
        inputs: Sequence[Sequence[str]],
        columns: list[tuple[int, int]],
        staged: int,
        partial: int,
    ) -> None:
        super().__init__(graph, code, (), (), False)
        place = {name: (t, k) for t, names in enumerate(inputs) for k, name in enumerate(names)}
        self.place = {n: place[name] for name, n in graph.inputs.items() if name in place}
        self.columns, self.staged, self.partial = columns, staged, partial
        self.addresses: dict[tuple[int, int], str] = {}

    def operand(self, n: int) -> str:
        op = self.graph.operation[n]
        if op == CONST:
            return hexadecimal(self.graph.constants[n])
        if op != INPUT:
            return self.value[n]
        now, of_set = self.arithmetic.operations, self.place[n][0] == self.staged
        if n not in self.value or of_set or now - self.loaded_at[n] > RELOAD:
            self.value[n] = self._load(n)
        self.loaded_at[n] = now
        return self.value[n]

    def _load(self, n: int) -> str:
        t, k = self.place[n]
        if t == self.staged:
            return self.arithmetic.load(f"ld.volatile.shared.f64 @, [staged+{8 * k}];")
        return self.arithmetic.load(f"ld.global.nc.f64 @, [{self._at(t, k)}];")

    def _at(self, t: int, k: int) -> str:
        return f"%base{t}" if k == 0 else self.arithmetic.address(f"mad.wide.u32 @, %column{t}, {k}, %base{t};")

    def store(self, n: int, places: Sequence[tuple[int, bool]]) -> None:
        for k, negative in places:
            x = self.operand(n)
            written = self.arithmetic.minus_of(x) if negative else x
            t, column = self.columns[k]
            if t == self.partial:
                written = self._warp_sum(written)
            owner = "%first" if t == self.partial else "%inside"
            self.arithmetic.lines.append(f"@{owner} st.global.f64 [{self._at(t, column)}], {written};")

    def _warp_sum(self, x: str) -> str:
        """The sum over the warp's samples that exist, the same in all its threads."""
        a = self.arithmetic
        total = a.load(f"selp.f64 @, {x}, {hexadecimal(0.0)}, %inside;")
        for distance in (16, 8, 4, 2, 1):
            a.lines.append(f"mov.b64 {{%half0, %half1}}, {total};")
            a.lines += [f"shfl.sync.bfly.b32 %half{h}, %half{h}, {distance}, 31, -1;" for h in (0, 1)]
            other = a.load("mov.b64 @, {%half0, %half1};")
            total = a.add(total, other)
        return total


def _frame(name: str, writer: _StridedWriter, arrays: int, partial: int, staged: int, parameters: int) -> str:
    a = writer.arithmetic
    lines = []
    for t in range(arrays):
        at = 8 * NUMBERS * t
        lines.append(
            f"ld.param.u64 %base{t}, [launch+{at}]; ld.param.u64 %sets, [launch+{at + 8}]; "
            f"ld.param.u64 %samples, [launch+{at + 16}]; ld.param.u32 %column{t}, [launch+{at + 24}];"
        )
        lines.append(f"mad.lo.u64 %base{t}, %sets, %set, %base{t};")
        if t == staged:
            lines += _staging(t, parameters)
        else:
            lines.append(f"mad.lo.u64 %base{t}, %samples, {'%warp' if t == partial else '%sample'}, %base{t};")
        lines.append(f"cvta.to.global.u64 %base{t}, %base{t};")
    body = "\n".join("    " + line for line in [*lines, *a.lines])
    bases = ", ".join(f"%base{t}" for t in range(arrays))
    strides = ", ".join(f"%column{t}" for t in range(arrays))
    size = 8 * (NUMBERS * arrays + 2)
    room = f"    .shared .align 8 .b8 staged[{8 * max(1, parameters)}];\n" if staged >= 0 else ""
    return f""".version {VERSION}
.target {TARGET}
.address_size 64

.visible .entry {name}(
    .param .align 8 .b8 launch[{size}]
)
.maxntid {THREADS}, 1, 1
{{
{room}    .reg .pred %p<{a.conditions + 1}>;
    .reg .pred %inside, %first, %more;
    .reg .b32 %r<8>;
    .reg .b32 %half0, %half1, {strides};
    .reg .b64 %l<{a.integers + 1}>;
    .reg .f64 %d<{a.doubles + 1}>;
    .reg .f64 %moved;
    .reg .b64 %set, %sample, %warp, %sets, %samples, %from, %to, {bases};
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    ld.param.u32 %r3, [launch+{size - 16}];
    ld.param.u32 %r4, [launch+{size - 8}];
    div.u32 %r5, %r1, %r4;
    cvt.u64.u32 %set, %r5;
    mul.lo.u32 %r5, %r5, %r4;
    sub.u32 %r1, %r1, %r5;
    mad.lo.u32 %r5, %r1, {THREADS}, %r2;
    setp.lt.u32 %inside, %r5, %r3;
    sub.u32 %r6, %r3, 1;
    shr.u32 %r7, %r5, 5;
    cvt.u64.u32 %warp, %r7;
    and.b32 %r7, %r5, 31;
    setp.eq.u32 %first, %r7, 0;
    and.pred %first, %first, %inside;
    min.u32 %r5, %r5, %r6;
    cvt.u64.u32 %sample, %r5;
{body}
    ret;
}}
"""


def _staging(t: int, parameters: int) -> list[str]:
    """The parameters of the block's set into shared memory, by all its threads."""
    return [
        "mov.u32 %r6, %r2;",
        f"setp.lt.u32 %more, %r6, {parameters};",
        "@!%more bra staged_all;",
        "stage:",
        f"mad.wide.u32 %from, %r6, %column{t}, %base{t}; cvta.to.global.u64 %from, %from;",
        "ld.global.nc.f64 %moved, [%from];",
        "mov.u64 %to, staged; mad.wide.u32 %to, %r6, 8, %to;",
        "st.shared.f64 [%to], %moved;",
        f"add.u32 %r6, %r6, {THREADS}; setp.lt.u32 %more, %r6, {parameters};",
        "@%more bra stage;",
        "staged_all:",
        "bar.sync 0;",
    ]
