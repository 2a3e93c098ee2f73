"""Expressions as LLVM code: straight lines of vector operations, cut into short loops over a block of samples.

One long block of code compiles in time that grows with the square of its length, so the graph is cut, in its order of evaluation, into
pieces of some hundred operations. Each piece is a loop over a block of samples; what a later piece needs is kept in a work array that
stays in cache. Places in the work array are used again once nobody needs what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from veridyn.symbolic import expression as ex
from veridyn.symbolic.expression import Graph, Number, live
from veridyn.symbolic.lowering import constant, elementary_functions, spread

BLOCK = 64  # samples of one block
PIECE = 250  # operations of one piece
STAGED = 16  # samples of a block from which outputs are gathered before they are written
FLAGS = "contract"  # lets a product and a sum become one fused operation, and nothing else


@dataclass(frozen=True)
class Program:
    """LLVM text with the function ``kernel(start, stop, n, in, stride, parameters, out, work, far)``.

    Samples `start` to `stop` of `n`; `start` is a multiple of the block. Input k of sample s is ``in[k][s * stride[k]]``; the output
    that was number ``order[k]`` in the request goes to ``out[k][s]``, and outputs must have room up to the next full block. `work`
    needs `places` places. `far` other than 0 writes outputs past the caches; they must lie on multiples of 64 bytes.

    Of lanes, `start` is 0 and `stop` 1: input k of lane l is ``in[k][l]``, parameter k of it ``parameters[k * width + l]``.
    """

    text: str
    places: int
    pieces: int
    order: tuple[int, ...]


_OPERATION = {ex.ADD: "fadd", ex.SUB: "fsub", ex.MUL: "fmul", ex.DIV: "fdiv"}
_CALLED = {ex.EXP: "exp", ex.LOG: "log", ex.ATAN: "atan"}


class _Emitter:
    def __init__(
        self,
        graph: Graph,
        outputs: Sequence[Number],
        samples: Mapping[str, int],
        parameters: Mapping[str, int],
        width: int,
        block: int,
        lanes: bool,
    ) -> None:
        self.graph, self.outputs, self.width, self.lanes = graph, outputs, width, lanes
        self.vector = f"<{width} x double>"
        self.block, self.stride = block, place_stride(block)
        # A work array begins at a line of the cache, 64 bytes; that of lanes lies anywhere in the record of a run.
        self.align = 8 if lanes or self.stride % 8 else min(8 * width, 64)
        self.nodes = live(graph, outputs)
        by_node = {n: name for name, n in graph.inputs.items()}
        used = [n for n in self.nodes if graph.operation[n] == ex.INPUT]
        self.sample_inputs = {n: samples[by_node[n]] for n in used if by_node[n] in samples}
        self.parameter_inputs = {n: parameters[by_node[n]] for n in used if by_node[n] in parameters}
        self.pieces = self._cut()
        self.piece_of = {n: k for k, piece in enumerate(self.pieces) for n in piece}
        self.out_of = graph.stores(outputs)
        self.place = self._places()
        self.order: list[int] = []
        self.calls: list[str] = []
        self.staged = (
            max(1, *(len(self._outputs_of(k)) for k in range(len(self.pieces)))) if block >= STAGED and not lanes else 0
        )

    def _cut(self) -> list[list[int]]:
        """The operations in pieces, at least one; sine and cosine of one angle, which come as a pair, stay together."""
        pieces: list[list[int]] = [[]]
        cost, angle = 0, -1
        for n in self.nodes:
            op = self.graph.operation[n]
            if op < ex.ADD:
                continue
            turns = op in (ex.SIN, ex.COS)
            if cost >= PIECE and not (turns and self.graph.left[n] == angle):
                pieces.append([])
                cost = 0
            pieces[-1].append(n)
            cost += 15 if turns or op in (ex.EXP, ex.LOG) else 1
            angle = self.graph.left[n] if turns else -1
        return pieces

    def _places(self) -> dict[int, int]:
        """A place in the work array for every value that crosses from one piece to a later one; inputs are there from the start.

        Lanes read their inputs where they lie.
        """
        last: dict[int, int] = {}
        gathered = {} if self.lanes else self.sample_inputs
        for k, piece in enumerate(self.pieces):
            for n in piece:
                for m in self.graph.operands(n):
                    if m in gathered or self.piece_of.get(m, k) != k:
                        last[m] = k
        for n in self.out_of:
            if n in gathered:
                last[n] = len(self.pieces) - 1  # stored at the very end, by _loose_outputs
        place = {n: i for i, n in enumerate(gathered)}
        self.total = len(place)
        free: list[int] = []
        leaving: list[list[int]] = [[] for _ in self.pieces]
        for n, k in last.items():
            leaving[k].append(n)
        for k, piece in enumerate(self.pieces):
            for n in piece:
                if n in last and n not in place:
                    if free:
                        place[n] = free.pop()
                    else:
                        place[n] = self.total
                        self.total += 1
            # Reading and writing one place within a piece would need an order; it is free from the next piece on.
            free += [place[n] for n in leaving[k]]
        return place

    def _outputs_of(self, k: int) -> list[int]:
        """The nodes of piece k that are outputs; the last piece also has those that are constants, parameters or inputs."""
        found = [n for n in self.pieces[k] for _ in self.out_of.get(n, [])]
        if k == len(self.pieces) - 1:
            found += [n for n in self.out_of if self.graph.operation[n] < ex.ADD for _ in self.out_of[n]]
        return found

    def splat(self, value: float) -> str:
        return constant(value, self.width)

    def piece(self, k: int) -> str:
        """One piece as a function over one block."""
        lines: list[str] = []
        known: dict[int, str] = {}
        both: dict[int, tuple[str, str]] = {}
        V = self.vector

        def value(m: int) -> str:
            if m in known:
                return known[m]
            op = self.graph.operation[m]
            if op == ex.CONST:
                known[m] = self.splat(self.graph.constants[m])
            elif self.lanes and m in self.parameter_inputs:
                known[m] = f"%p{m}"
                lines.append(f"  %pp{m} = getelementptr double, ptr %par, i64 {self.width * self.parameter_inputs[m]}")
                lines.append(f"  %p{m} = load {V}, ptr %pp{m}, align 8")
            elif self.lanes and m in self.sample_inputs:
                known[m] = f"%l{m}"
                lines.append(f"  %la{m} = getelementptr ptr, ptr %in, i64 {self.sample_inputs[m]}")
                lines.append(f"  %lb{m} = load ptr, ptr %la{m}, align 8")
                lines.append(f"  %l{m} = load {V}, ptr %lb{m}, align 8")
            elif m in self.parameter_inputs:
                known[m] = f"%p{m}"
                lines.append(f"  %pp{m} = getelementptr double, ptr %par, i64 {self.parameter_inputs[m]}")
                lines.append(f"  %ps{m} = load double, ptr %pp{m}, align 8")
                lines.append(spread(self.width, f"p{m}", f"%ps{m}"))
            else:
                known[m] = f"%l{m}"
                lines.append(f"  %lp{m} = getelementptr double, ptr %here, i64 {self.stride * self.place[m]}")
                lines.append(f"  %l{m} = load {V}, ptr %lp{m}, align {self.align}")
            return known[m]

        first = len(self.order)

        def store(m: int, text: str) -> None:
            for out, negative in self.out_of.get(m, []):
                at = len(self.order)
                self.order.append(out)
                written = text
                if negative:
                    written = f"%neg{at}"
                    lines.append(f"  {written} = fneg {V} {text}")
                if self.staged:
                    place = self.stride * (self.total + at - first)
                    lines.append(f"  %oc{at} = getelementptr double, ptr %here, i64 {place}")
                    lines.append(f"  store {V} {written}, ptr %oc{at}, align {self.align}")
                else:
                    lines.append(f"  %oa{at} = getelementptr ptr, ptr %out, i64 {at}")
                    lines.append(f"  %ob{at} = load ptr, ptr %oa{at}, align 8")
                    lines.append(f"  %oc{at} = getelementptr double, ptr %ob{at}, i64 %t")
                    lines.append(f"  store {V} {written}, ptr %oc{at}, align 8")

        for n in self.pieces[k]:
            op = self.graph.operation[n]
            x = value(self.graph.left[n])
            name = f"%n{n}"
            if op in _OPERATION:
                y = value(self.graph.right[n])
                lines.append(f"  {name} = {_OPERATION[op]} {FLAGS} {V} {x}, {y}")
            elif op in (ex.SIN, ex.COS):
                arg = self.graph.left[n]
                if arg not in both:
                    pair = f"%sc{n}"
                    lines.append(f"  {pair} = call {{{V}, {V}}} @sincos({V} {x})")
                    lines.append(f"  %si{n} = extractvalue {{{V}, {V}}} {pair}, 0")
                    lines.append(f"  %co{n} = extractvalue {{{V}, {V}}} {pair}, 1")
                    both[arg] = (f"%si{n}", f"%co{n}")
                known[n] = name = both[arg][0 if op == ex.SIN else 1]
            elif op == ex.SIGN:
                zero, one, minus = self.splat(0.0), self.splat(1.0), self.splat(-1.0)
                B = f"<{self.width} x i1>"
                lines.append(f"  %gt{n} = fcmp ogt {V} {x}, {zero}")
                lines.append(f"  %lt{n} = fcmp olt {V} {x}, {zero}")
                lines.append(f"  %up{n} = select {B} %gt{n}, {V} {one}, {V} {zero}")
                lines.append(f"  {name} = select {B} %lt{n}, {V} {minus}, {V} %up{n}")
            elif op in (ex.ABS, ex.SQRT):
                function = "fabs" if op == ex.ABS else "sqrt"
                lines.append(f"  {name} = call {V} @llvm.{function}.v{self.width}f64({V} {x})")
            elif op in _CALLED:
                lines.append(f"  {name} = call {V} @{_CALLED[op]}({V} {x})")
            known[n] = name
            if n in self.place:
                lines.append(f"  %sp{n} = getelementptr double, ptr %here, i64 {self.stride * self.place[n]}")
                lines.append(f"  store {V} {name}, ptr %sp{n}, align {self.align}")
            store(n, name)
        if k == len(self.pieces) - 1:
            self._loose_outputs(value, store)
        self.calls.append(f"  call void @piece{k}(ptr %in, ptr %work, ptr %par, ptr %out, i64 %s)")
        if self.staged and len(self.order) > first:
            count = len(self.order) - first
            self.calls.append(f"  call void @deliver(ptr %work, ptr %out, i64 %s, i64 {first}, i64 {count}, i64 %far)")
        return self._loop(f"piece{k}", lines)

    def _loose_outputs(self, value: Callable[[int], str], store: Callable[[int, str], None]) -> None:
        """Outputs that are constants, parameters or inputs themselves."""
        for n in self.out_of:
            if self.graph.operation[n] < ex.ADD:
                store(n, value(n))

    def _loop(self, name: str, lines: list[str]) -> str:
        body = "\n".join(lines)
        return f"""
define internal void @{name}(ptr %in, ptr %work, ptr %par, ptr %out, i64 %s) #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %t = add i64 %s, %i
  %here = getelementptr double, ptr %work, i64 %i
{body}
  %next = add i64 %i, {self.width}
  %more = icmp ult i64 %next, {self.block}
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

    def gather(self) -> str:
        """Copy the inputs of one block into the work array; beyond the last sample, the last one again."""
        loops = []
        for n, k in ({} if self.lanes else self.sample_inputs).items():
            loops.append(f"""
  br label %head{k}
head{k}:
  %ia{k} = getelementptr ptr, ptr %in, i64 {k}
  %ib{k} = load ptr, ptr %ia{k}, align 8
  %sa{k} = getelementptr i64, ptr %stride, i64 {k}
  %sb{k} = load i64, ptr %sa{k}, align 8
  %w{k} = getelementptr double, ptr %work, i64 {self.stride * self.place[n]}
  br label %loop{k}
loop{k}:
  %i{k} = phi i64 [ 0, %head{k} ], [ %x{k}, %loop{k} ]
  %t{k} = add i64 %s, %i{k}
  %c{k} = icmp slt i64 %t{k}, %last
  %m{k} = select i1 %c{k}, i64 %t{k}, i64 %last
  %o{k} = mul i64 %m{k}, %sb{k}
  %a{k} = getelementptr double, ptr %ib{k}, i64 %o{k}
  %v{k} = load double, ptr %a{k}, align 8
  %d{k} = getelementptr double, ptr %w{k}, i64 %i{k}
  store double %v{k}, ptr %d{k}, align 8
  %x{k} = add i64 %i{k}, 1
  %z{k} = icmp ult i64 %x{k}, {self.block}
  br i1 %z{k}, label %loop{k}, label %end{k}
end{k}:""")
        return f"""
define internal void @gather(ptr %in, ptr %stride, ptr %work, i64 %s, i64 %n) #0 {{
entry:
  %last = sub i64 %n, 1{"".join(loops)}
  ret void
}}
"""

    def deliver(self) -> str:
        """Copy a piece's outputs from the work array to where they belong, a whole block of one output after another.

        Straight from a piece, each store would go to another page. `far` outputs go past the caches: nobody reads them soon.
        """
        W, V = self.width, self.vector
        copies = {}
        for kind, align, mark in (("near", 8, ""), ("far", 64, ", !nontemporal !0")):
            lines = []
            for i in range(0, self.block, W):
                lines.append(f"  %{kind}l{i} = getelementptr double, ptr %from, i64 {i}")
                lines.append(f"  %{kind}v{i} = load {V}, ptr %{kind}l{i}, align {self.align}")
                lines.append(f"  %{kind}s{i} = getelementptr double, ptr %to, i64 {i}")
                lines.append(f"  store {V} %{kind}v{i}, ptr %{kind}s{i}, align {min(align, 8 * W)}{mark}")
            copies[kind] = "\n".join(lines)
        return f"""
define internal void @deliver(ptr %work, ptr %out, i64 %s, i64 %first, i64 %count, i64 %far) #0 {{
entry:
  %stage = getelementptr double, ptr %work, i64 {self.stride * self.total}
  %distant = icmp ne i64 %far, 0
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %after ]
  %at = mul i64 %k, {self.stride}
  %from = getelementptr double, ptr %stage, i64 %at
  %number = add i64 %first, %k
  %oa = getelementptr ptr, ptr %out, i64 %number
  %ob = load ptr, ptr %oa, align 8
  %to = getelementptr double, ptr %ob, i64 %s
  br i1 %distant, label %past, label %into
into:
{copies["near"]}
  br label %after
past:
{copies["far"]}
  br label %after
after:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
!0 = !{{i32 1}}
"""

    def text(self) -> str:
        pieces = "".join(self.piece(k) for k in range(len(self.pieces)))
        calls = "\n".join(self.calls)
        return f"""; veridyn kernel
declare {self.vector} @llvm.fabs.v{self.width}f64({self.vector})
declare {self.vector} @llvm.sqrt.v{self.width}f64({self.vector})
{elementary_functions(self.width)}
{self.gather()}
{self.deliver() if self.staged else ""}
{pieces}
define void @kernel(i64 %start, i64 %stop, i64 %n, ptr %in, ptr %stride, ptr %par, ptr %out, ptr %work, i64 %far) #0 {{
entry:
  br label %loop
loop:
  %s = phi i64 [ %start, %entry ], [ %next, %loop ]
  call void @gather(ptr %in, ptr %stride, ptr %work, i64 %s, i64 %n)
{calls}
  %next = add i64 %s, {self.block}
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %loop, label %done
done:
  ret void
}}
attributes #0 = {{ nounwind noinline }}
"""


def place_stride(block: int) -> int:
    """Doubles from one place of the work array to the next: a line more than a block, so that they spread over the cache."""
    return block + 8 if block >= 8 else block


def emit(
    graph: Graph,
    outputs: Sequence[Number],
    samples: Sequence[str],
    parameters: Sequence[str],
    width: int,
    block: int = BLOCK,
    lanes: bool = False,
) -> Program:
    """The program that computes `outputs` from the inputs named: one value a sample, or one for all samples (`parameters`).

    `width` samples are worked on at once, `block` of them in one loop; both are 1 for a program that is called with one sample. `lanes`:
    it is called with `width` samples side by side, which have parameters of their own; `block` is `width`.
    """
    names = ({s: k for k, s in enumerate(samples)}, {p: k for k, p in enumerate(parameters)})
    emitter = _Emitter(graph, outputs, *names, width, block, lanes)
    text = emitter.text()
    return Program(text, emitter.total + emitter.staged, len(emitter.pieces), tuple(emitter.order))
