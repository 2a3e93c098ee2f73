"""Gram matrices of many small sets of columns on a GPU, by its matrix units in double precision: G = Σ a aᵀ over samples.

Columns lie one after the other, samples together: column c of sample s is ``columns[c * stride + s]``. A block of threads has one task
of a :class:`GramPlan`: it brings its blocks of columns into shared memory, sixteen samples at a time and
several stages ahead, and each of its sixteen warps adds up one patch in registers. The order of all sums is fixed, so results repeat to
the last bit.

A set of columns is cut into blocks of 32, and its G into patches of 32 × 32, of which those on and below the diagonal are computed. A task
has up to twelve blocks and up to sixteen patches between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array

SIDE = 32  # columns of a block, and rows and columns of a patch
BLOCKS, WARPS = 12, 16  # of a task: blocks of columns, and patches
TASK_NUMBERS = 2 * BLOCKS + 3 * WARPS  # (first column, columns) of each block; (block, block, patch) of each warp
LARGEST_SQUARE = 5  # blocks of a set whose patches are no more than sixteen
GROUP = 4  # blocks in a row and in a column of patches of a larger set, sixteen together
STEP_SAMPLES = 8  # of one step of the matrix units
COLUMNS = BLOCKS * SIDE  # of a task
THREADS = 32 * WARPS
EACH = 4 * COLUMNS // THREADS  # columns of one thread, which brings a quarter of every step of them
STEP_BYTES = COLUMNS * STEP_SAMPLES * 8
HALF_BYTES = STEP_BYTES // 2  # four samples of all columns, which lie together so that lanes read neighbouring numbers
STEPS, STAGES = 2, 3  # steps of a stage, and stages in shared memory
STAGE_SAMPLES, STAGE_BYTES = STEPS * STEP_SAMPLES, STEPS * STEP_BYTES
SHARED_BYTES = STAGES * STAGE_BYTES


@dataclass(frozen=True, eq=False)
class GramPlan:
    """Which patches are computed by which task: `tasks` (tasks, 72) for the kernel, `patches` (run, row block, column block) of each patch.

    `sets` are (first column, columns); `runs` the same for sets that are computed together; see :func:`gram_plan`.
    """

    sets: tuple[tuple[int, int], ...]
    runs: tuple[tuple[int, int], ...]
    tasks: NDArray[np.int32]
    patches: tuple[tuple[int, int, int], ...]

    def matrices(self, values: Array) -> list[Array]:
        """G of each set from the patches (patches, 32, 32) that the kernel left."""
        found = [np.zeros((count, count)) for _, count in self.runs]
        for (k, a, b), patch in zip(self.patches, values, strict=True):
            G = found[k]
            rows, columns = G[SIDE * a : SIDE * (a + 1)].shape[0], G[:, SIDE * b : SIDE * (b + 1)].shape[1]
            part = np.tril(patch) + np.tril(patch, -1).T if a == b else patch
            G[SIDE * a : SIDE * (a + 1), SIDE * b : SIDE * (b + 1)] = part[:rows, :columns]
            G[SIDE * b : SIDE * (b + 1), SIDE * a : SIDE * (a + 1)] = part[:rows, :columns].T
        own: list[Array] = []
        for first, count in self.sets:
            k = next(k for k, (start, size) in enumerate(self.runs) if start <= first < start + size)
            at = first - self.runs[k][0]
            own.append(found[k][at : at + count, at : at + count])
        return own


@dataclass
class _Bundle:
    """Blocks (set, number) that come together, and the patches between them."""

    blocks: list[tuple[int, int]]
    pairs: list[tuple[tuple[int, int], tuple[int, int]]]


def gram_plan(sets: Sequence[tuple[int, int]]) -> GramPlan:
    """The tasks that compute G of every set of consecutive columns (first, count).

    Neighbours that fit one block are computed as one set: their common products cost less than a block each.
    """
    runs = _runs(sets)
    bundles = [bundle for k, (_, count) in enumerate(runs) for bundle in _bundles(k, -(-count // SIDE))]
    bundles.sort(key=lambda x: -len(x.pairs))
    bins: list[_Bundle] = []
    for bundle in bundles:
        for one in bins:
            if len(one.blocks) + len(bundle.blocks) <= BLOCKS and len(one.pairs) + len(bundle.pairs) <= WARPS:
                one.blocks += bundle.blocks
                one.pairs += bundle.pairs
                break
        else:
            bins.append(_Bundle(list(bundle.blocks), list(bundle.pairs)))
    tasks = np.zeros((len(bins), TASK_NUMBERS), dtype=np.int32)
    patches: list[tuple[int, int, int]] = []
    for task, one in zip(tasks, bins, strict=True):
        for at, (k, block) in enumerate(one.blocks):
            first, count = runs[k]
            task[2 * at : 2 * at + 2] = first + SIDE * block, min(SIDE, count - SIDE * block)
        task[2 * BLOCKS :] = -1
        for warp, ((k, a), (_, b)) in enumerate(one.pairs):
            place = 2 * BLOCKS + 3 * warp
            task[place : place + 3] = one.blocks.index((k, a)), one.blocks.index((k, b)), len(patches)
            patches.append((k, a, b))
    return GramPlan(tuple(sets), tuple(runs), tasks, tuple(patches))


def _runs(sets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first, count in sets:
        if found and sum(found[-1]) == first and found[-1][1] + count <= SIDE:
            found[-1] = (found[-1][0], found[-1][1] + count)
        else:
            found.append((first, count))
    return found


def _bundles(k: int, blocks: int) -> list[_Bundle]:
    """The patches of one set on and below the diagonal, in groups that one task can take."""
    if blocks <= LARGEST_SQUARE:
        every = [(k, a) for a in range(blocks)]
        return [_Bundle(every, [((k, a), (k, b)) for a in range(blocks) for b in range(a + 1)])]
    groups = [range(a, min(a + GROUP, blocks)) for a in range(0, blocks, GROUP)]
    found = []
    for i, rows in enumerate(groups):
        for columns in groups[: i + 1]:
            pairs = [((k, a), (k, b)) for a in rows for b in columns if b <= a]
            found.append(_Bundle([(k, a) for a in dict.fromkeys((*rows, *columns))], pairs))
    return found


def gram_kernel(wide: bool = True) -> str:
    """PTX of ``gram(columns, tasks, patches, stride, count, chunk, number)``.

    A grid of (tasks, chunks) blocks of 512 threads: chunk y takes samples ``y * chunk`` to ``(y + 1) * chunk`` of `count` and adds to
    ``patches[y][number][32][32]``; `chunk` is a multiple of 16, `stride` of 2. A launch asks for
    `SHARED_BYTES` of shared memory. `wide` instructions need sm_90, the others sm_80.
    """
    version, target = ("7.8", "sm_90") if wide else ("7.0", "sm_80")
    products = {(same, rows): _products(wide, same, rows) for same in (False, True) for rows in (SIDE, SIDE // 2)}
    columns = "\n".join(_column(k) for k in range(EACH))
    ahead = "\n".join(_bring(f"ahead{k}") for k in range(STAGES - 1))
    zeros = "\n".join(
        f"    st.shared.v2.f64 [%r33+{at}], {{%d0, %d0}};" for at in range(0, STAGES * STAGE_BYTES, 16 * THREADS)
    )
    clear = "\n".join(f"    mov.f64 %c{k}, 0d0000000000000000;" for k in range(32))
    return f""".version {version}
.target {target}
.address_size 64

.extern .shared .align 128 .b8 stages[];

.visible .entry gram(
    .param .u64 columns,
    .param .u64 tasks,
    .param .u64 patches,
    .param .u32 stride,
    .param .u32 count,
    .param .u32 chunk,
    .param .u32 number
)
.maxntid {THREADS}, 1, 1
{{
    .reg .pred %p<{9 + EACH}>;
    .reg .b32 %r<{40 + EACH}>;
    .reg .b64 %l<24>;
    .reg .f64 %c<32>, %a<16>, %b<16>, %d<4>;

    ld.param.u64 %l1, [columns];
    ld.param.u64 %l2, [tasks];
    ld.param.u64 %l3, [patches];
    cvta.to.global.u64 %l1, %l1;
    cvta.to.global.u64 %l2, %l2;
    cvta.to.global.u64 %l3, %l3;
    ld.param.u32 %r1, [stride];
    ld.param.u32 %r2, [count];
    ld.param.u32 %r3, [chunk];
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, %ctaid.x;
    mov.u32 %r6, %ctaid.y;
    mad.wide.u32 %l2, %r5, {4 * TASK_NUMBERS}, %l2;
    mul.lo.u32 %r7, %r6, %r3;            // first sample
    add.u32 %r8, %r7, %r3;
    min.u32 %r8, %r8, %r2;               // behind the last sample
    sub.s32 %r9, %r8, %r7;
    add.s32 %r9, %r9, {STAGE_SAMPLES - 1};
    shr.s32 %r9, %r9, {STAGE_SAMPLES.bit_length() - 1};                 // stages
    setp.le.s32 %p0, %r9, 0;
    @%p0 ret;

    // This thread brings two samples of each step of two columns, its neighbours the next ones: 16 bytes each time.
    shr.u32 %r10, %r4, 2;                // first column in shared memory; the others are {THREADS // 4} further each
    and.b32 %r13, %r4, 3;
    shl.b32 %r18, %r13, 1;
    add.u32 %r18, %r18, %r7;             // its first sample
    mad.wide.u32 %l20, %r18, 8, %l1;     // of column 0
    shr.u32 %r1, %r1, 1;                 // stride in pairs of numbers, so that places of columns fit 32 bits
{columns}
    mov.u32 %r19, stages;
    shr.u32 %r20, %r13, 1;
    and.b32 %r21, %r13, 1;
    shl.b32 %r21, %r21, 4;
    mad.lo.u32 %r20, %r20, {HALF_BYTES}, %r21;
    mad.lo.u32 %r20, %r10, 32, %r20;
    add.u32 %r20, %r20, %r19;            // to

    // Columns that are not there stay zero.
    shl.b32 %r33, %r4, 4;
    add.u32 %r33, %r33, %r19;
    mov.f64 %d0, 0d0000000000000000;
{zeros}
    bar.sync 0;

    // This warp has one patch.
    shr.u32 %r22, %r4, 5;
    and.b32 %r23, %r4, 31;
    mad.wide.u32 %l7, %r22, 12, %l2;
    ld.global.nc.s32 %r24, [%l7+{8 * BLOCKS}];
    ld.global.nc.s32 %r25, [%l7+{8 * BLOCKS + 4}];
    ld.global.nc.s32 %r26, [%l7+{8 * BLOCKS + 8}];
    setp.lt.s32 %p2, %r26, 0;
    setp.eq.s32 %p3, %r24, %r25;
    max.s32 %r39, %r24, 0;
    mad.wide.u32 %l12, %r39, 8, %l2;
    ld.global.nc.u32 %r39, [%l12+4];
    setp.le.u32 %p8, %r39, {SIDE // 2};      // half a block of rows
    shl.b32 %r27, %r23, 3;               // lane: column lane / 4 of eight, sample lane mod 4 of four
    add.u32 %r27, %r27, %r19;
    mad.lo.u32 %r24, %r24, {SIDE * 32}, %r27;
    mad.lo.u32 %r25, %r25, {SIDE * 32}, %r27;
{clear}
    mov.u32 %r28, 0;                     // stage brought next
    mov.u32 %r29, 0;                     // its offset in shared memory
    mov.u32 %r30, 0;                     // stage used next
    mov.u32 %r31, 0;
{ahead}
loop:
    cp.async.wait_group {STAGES - 2};
    bar.sync 0;
{_bring("next")}
    @%p2 bra used;
    add.u32 %r34, %r24, %r31;
    add.u32 %r35, %r25, %r31;
    @%p8 bra half;
    @%p3 bra diagonal;
{products[False, SIDE]}
    bra used;
diagonal:
{products[True, SIDE]}
    bra used;
half:
    @%p3 bra half_diagonal;
{products[False, SIDE // 2]}
    bra used;
half_diagonal:
{products[True, SIDE // 2]}
used:
    add.u32 %r31, %r31, {STAGE_BYTES};
    setp.eq.u32 %p5, %r31, {STAGES * STAGE_BYTES};
    selp.u32 %r31, 0, %r31, %p5;
    add.u32 %r30, %r30, 1;
    setp.lt.s32 %p4, %r30, %r9;
    @%p4 bra loop;
    cp.async.wait_group 0;
    @%p2 ret;
    ld.param.u32 %r36, [number];
    mad.lo.u32 %r36, %r6, %r36, %r26;
    mad.wide.u32 %l8, %r36, {8 * SIDE * SIDE}, %l3;
    shr.u32 %r37, %r23, 2;
    and.b32 %r38, %r23, 3;
    shl.b32 %r37, %r37, 8;
    shl.b32 %r38, %r38, 4;
    add.u32 %r37, %r37, %r38;
    cvt.u64.u32 %l9, %r37;
    add.u64 %l8, %l8, %l9;
{_additions()}
    ret;
}}
"""


def _column(k: int) -> str:
    """Where one of a thread's columns comes from, and whether it is there."""
    source, there = f"%r{40 + k}", f"%p{9 + k}"
    return f"""    add.u32 %r11, %r10, {k * THREADS // 4};
    and.b32 %r12, %r11, {SIDE - 1};          // place in its block
    shr.u32 %r11, %r11, {SIDE.bit_length() - 1};
    mad.wide.u32 %l4, %r11, 8, %l2;
    ld.global.nc.u32 %r16, [%l4];
    ld.global.nc.u32 %r17, [%l4+4];
    setp.lt.u32 {there}, %r12, %r17;
    add.u32 %r12, %r12, %r16;
    mul.lo.u32 {source}, %r12, %r1;"""


def _bring(label: str) -> str:
    """Start the copy of one stage, nothing beyond the last; either way it counts as one group."""
    parts = []
    for step in range(STEPS):
        parts.append(f"""    sub.s32 %r32, %r8, %r18;
    sub.s32 %r32, %r32, {STEP_SAMPLES * step};
    max.s32 %r32, %r32, 0;
    min.s32 %r32, %r32, 2;
    shl.b32 %r32, %r32, 3;               // bytes of this thread's two samples that are there""")
        for k in range(EACH):
            place = step * STEP_BYTES + k * 32 * THREADS // 4
            copied = f"[%r33+{place}], [%l5+{8 * STEP_SAMPLES * step}], 16, %r32"
            parts.append(f"    mad.wide.u32 %l5, %r{40 + k}, 16, %l20;")
            parts.append(f"    @%p{9 + k} cp.async.cg.shared.global {copied};")
    copies = "\n".join(parts)
    return f"""    setp.ge.s32 %p6, %r28, %r9;
    @%p6 bra {label}_group;
    add.u32 %r33, %r20, %r29;
{copies}
    add.u32 %r28, %r28, 1;
    add.u32 %r18, %r18, {STAGE_SAMPLES};
    add.u64 %l20, %l20, {8 * STAGE_SAMPLES};
    add.u32 %r29, %r29, {STAGE_BYTES};
    setp.eq.u32 %p7, %r29, {STAGES * STAGE_BYTES};
    selp.u32 %r29, 0, %r29, %p7;
{label}_group:
    cp.async.commit_group;"""


def _products(wide: bool, diagonal: bool, rows: int) -> str:
    """One stage of one patch: fragments of both blocks, and every product of eight by eight columns that is needed.

    %c[8 i + 2 j] and the next are this lane's two entries of columns 8 i … and 8 j …
    """
    lines: list[str] = []
    for step in range(STEPS):
        lines += _step(step * STEP_BYTES, wide, diagonal, rows)
    return "\n".join(lines)


def _step(offset: int, wide: bool, diagonal: bool, rows: int) -> list[str]:
    """Eight samples of :func:`_products`; what a product needs is loaded one product ahead, in this order (hence volatile)."""
    tall = 2 if wide else 1  # groups of eight columns that one instruction takes on its left side
    places = [(i, j) for i in range(0, rows // 8, tall) for j in range(4) if not diagonal or j < i + tall]
    places.sort(key=lambda at: (at[1] // 2, at[0], at[1]))  # by squares, so that few values are loaded at the start
    loaded: set[str] = set()
    lines: list[str] = []

    def load(i: int, j: int) -> None:
        right = ("a", 34) if diagonal else ("b", 35)
        for name, base, group in (*(("a", 34, i + t) for t in range(tall)), (*right, j)):
            for half in range(2):
                register = f"%{name}{2 * group + half}"
                if register not in loaded:
                    loaded.add(register)
                    place = SIDE * 8 * group + half * HALF_BYTES + offset
                    lines.append(f"    ld.volatile.shared.f64 {register}, [%r{base}+{place}];")

    for at, (i, j) in enumerate(places):
        if at == 0:
            load(i, j)
        if at + 1 < len(places):
            load(*places[at + 1])
        lines += _product(i, j, "a" if diagonal else "b", wide)
    return lines


def _product(i: int, j: int, b: str, wide: bool) -> list[str]:
    """Columns 8 i … times columns 8 j …, sixteen by eight where `wide`, eight by eight else, over eight samples."""
    c = 8 * i + 2 * j
    if wide:
        four = f"{{%c{c}, %c{c + 1}, %c{c + 8}, %c{c + 9}}}"
        left = f"{{%a{2 * i}, %a{2 * i + 2}, %a{2 * i + 1}, %a{2 * i + 3}}}"
        right = f"{{%{b}{2 * j}, %{b}{2 * j + 1}}}"
        return [f"    mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {four}, {left}, {right}, {four};"]
    two = f"{{%c{c}, %c{c + 1}}}"
    return [
        f"    mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {two}, {{%a{2 * i + k}}}, {{%{b}{2 * j + k}}}, {two};"
        for k in range(2)
    ]


def _additions() -> str:
    """Add this lane's entries of the patch to those in memory."""
    lines = []
    for i in range(4):
        for j in range(4):
            place, c = 8 * SIDE * 8 * i + 64 * j, 8 * i + 2 * j
            lines += [
                f"    ld.global.v2.f64 {{%d0, %d1}}, [%l8+{place}];",
                f"    add.rn.f64 %d0, %d0, %c{c};",
                f"    add.rn.f64 %d1, %d1, %c{c + 1};",
                f"    st.global.v2.f64 [%l8+{place}], {{%d0, %d1}};",
            ]
    return "\n".join(lines)
