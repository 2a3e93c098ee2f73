"""Kernels on a GPU: ``--pack DIR`` where veridyn is installed, ``--run DIR`` where there is a GPU with NumPy and CuPy, and nothing else.

The pack holds PTX text and, for some samples, what the processor's own kernels gave; the runner checks every number against that, times
the kernels on many samples, measures copies and arithmetic in the same run, and states what bounds each line.

    python benchmarks/gpu.py --pack pack            # needs veridyn
    python benchmarks/gpu.py --run pack [--json FILE]   # needs NumPy and CuPy; a peer in JAX where that is installed

Least squares: the regressor of all rows with their measurements is made tile by tile, and its Gram matrices are added up on the matrix
units. "Refined" is that twice, the second time with columns made nearly orthonormal: as good as QR whatever the condition.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

CHECKED = 512  # samples that are compared with the processor
THREADS = 128  # of a block of the kernels
GRAM_THREADS, GRAM_SHARED = 512, 147456
MAX_SHARED = 8  # the attribute of a kernel that says how many bytes of shared memory a launch may ask for
SEED = 0
GOALS = {  # million samples a second: 7-joint arm, 20-dof car, 38-dof car
    "inverse dynamics": (12_000, 4_500, 1_000),
    "regressor": (1_600, 430, 150),
    "regressor and least squares": (800, 200, 50),
    "forward dynamics": (2_000, 500, 100),
}
MACHINES = ("7-joint arm", "20-dof car", "38-dof car")
# Largest deviation from the processor, of each output's own size: rounding, which a solve multiplies by the condition of the mass matrix.
AGREES = {"inverse": 1e-13, "regressor": 1e-13, "forward": 1e-9, "equations": 1e-13, "gram": 1e-10}
TILE_DOUBLES, LARGEST_TILE = 2**29, 2**19
LONGEST_CHUNK, BLOCKS_EACH = (
    4096,
    2,
)  # samples of one task of the Gram kernel; its blocks of threads for each multiprocessor, at least
PEER_SAMPLES = 1 << 18
RATE_KERNEL = """.version 7.8
.target sm_90
.address_size 64
.visible .entry fma_rate(.param .u64 out, .param .u32 turns)
{
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %l<2>; .reg .f64 %d<12>;
    ld.param.u64 %l0, [out]; ld.param.u32 %r0, [turns];
    mov.u32 %r1, %tid.x; cvt.rn.f64.u32 %d8, %r1; mov.f64 %d9, 0d3FEFFFFFFFFFFFFF;
    START
loop:
    BODY
    sub.u32 %r0, %r0, 1; setp.ne.u32 %p, %r0, 0;
    @%p bra loop;
    add.rn.f64 %d0, %d0, %d1; add.rn.f64 %d0, %d0, %d2; add.rn.f64 %d0, %d0, %d3;
    add.rn.f64 %d0, %d0, %d4; add.rn.f64 %d0, %d0, %d5; add.rn.f64 %d0, %d0, %d6; add.rn.f64 %d0, %d0, %d7;
    cvta.to.global.u64 %l0, %l0;
    st.global.f64 [%l0], %d0;
    ret;
}
"""
FMA_LINES = 64
MMA_LINES = 16


def rate_text(matrix: bool) -> str:
    """PTX of a loop of fused operations, or of products of the matrix units, on registers."""
    start = " ".join(f"mov.f64 %d{k}, %d8;" for k in range(8))
    if matrix:
        lines = []
        for k in range(MMA_LINES):
            sums = ",".join(f"%d{d}" for d in (range(4) if k % 2 else range(4, 8)))
            lines.append(
                f"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {{{sums}}}, {{%d8,%d9,%d8,%d9}}, {{%d8,%d9}}, {{{sums}}};"
            )
        body = "\n".join(lines)
    else:
        body = "\n".join(f"fma.rn.f64 %d{k % 8}, %d{k % 8}, %d9, %d8;" for k in range(FMA_LINES))
    return RATE_KERNEL.replace("START", start).replace("BODY", body)


# --- the pack -------------------------------------------------------------------------------------------------------------------


def pack(folder: Path) -> None:
    """Write PTX, task tables, reference arrays, and the trees for the peer."""
    from benchmarks.identification import recorded
    from benchmarks.subjects import arm, car, motion
    from veridyn.identify.regression.gpu import equation_program
    from veridyn.identify.regression.observation import stream
    from veridyn.identify.settings import IdentifySettings
    from veridyn.mechanics.tree.dynamics.engine import sample_arrays, uniform_values
    from veridyn.mechanics.tree.dynamics.formula import formula
    from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
    from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
    from veridyn.mechanics.tree.of_machine import tree_of
    from veridyn.mechanics.tree.recursion.inputs import Request
    from veridyn.symbolic.emit_ptx import emit_ptx
    from veridyn.symbolic.expression import evaluate
    from veridyn.symbolic.gram_ptx import gram_kernel, gram_plan

    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    described: dict[str, Any] = {"machines": []}
    for number, machine in enumerate((arm(), car(20), car(38))):
        m = motion(machine, CHECKED, seed=11)
        rows = tuple(range(len(machine.rows)))
        every = tuple(range(len(machine.columns)))
        requests = {
            "inverse": Request("inverse", rows),
            "regressor": Request("regressor", rows, every),
            "forward": Request("forward", rows),
        }
        D = regressor(machine, m, engine="compiled")
        solved = forward_dynamics(machine, m, engine="compiled")
        a = (
            solved.qdd
            if solved.base is None
            else np.column_stack([solved.base.acceleration, solved.base.omega_dot, solved.qdd])
        )
        full = {"inverse": inverse_dynamics(machine, m, engine="compiled"), "forward": a}
        one: dict[str, Any] = {"name": machine.name, "kernels": {}, "tree": peer_tree(machine)}
        for what, request in requests.items():
            f = formula(tree_of(machine), request)
            k = emit_ptx(f.graph, f.outputs, f.samples, f.parameters, what)
            key = f"{number}.{what}"
            (folder / f"{key}.ptx").write_text(k.text)
            arrays[f"{key}.inputs"] = np.array(sample_arrays(tree_of(machine), m, k.samples))
            arrays[f"{key}.parameters"] = uniform_values(tree_of(machine), machine.parameters.values, k.parameters)
            expected = (
                [D[:, r, c] for r, c in f.labels] if what == "regressor" else [full[what][:, r] for (r,) in f.labels]
            )
            arrays[f"{key}.outputs"] = np.array(expected)
            one["kernels"][what] = {"outputs": k.outputs, "operations": k.operations, "live": k.live}
            one["kernels"][what]["samples"] = k.samples
        one["gravity"] = [float(x) for x in machine.gravity] if machine.base == "fixed" else None
        driven, measured = recorded(machine, CHECKED)
        equations = stream(driven, measured, settings=IdentifySettings(engine="numpy"))
        program = equation_program(equations.plan, measured)
        k = emit_ptx(
            program.graph, program.outputs, program.samples, program.parameters, "equations", goals=program.goals
        )
        names = [n for n in program.samples if not n.startswith("y.")]
        given = dict(zip(names, sample_arrays(tree_of(driven), measured, names), strict=True))
        given |= {
            n: np.asarray(equations.plan.force(measured, int(n[2:]))) for n in program.samples if n.startswith("y.")
        }
        plan = gram_plan(program.sets)
        key = f"{number}.equations"
        (folder / f"{key}.ptx").write_text(k.text)
        arrays[f"{key}.inputs"] = np.array([given[n] for n in k.samples])
        arrays[f"{key}.parameters"] = np.zeros(0)
        values = evaluate(program.graph, program.outputs, given)
        arrays[f"{key}.outputs"] = np.array([np.broadcast_to(v, CHECKED) for v in values])
        arrays[f"{key}.tasks"] = plan.tasks
        for j, (first, count) in enumerate(
            program.sets
        ):  # by Householder reflections, which form no products of columns
            R = np.linalg.qr(arrays[f"{key}.outputs"][first : first + count].T, mode="r")
            arrays[f"{key}.gram{j}"] = R.T @ R
        one["kernels"]["equations"] = {"outputs": k.outputs, "operations": k.operations, "live": k.live}
        one["sets"], one["runs"], one["patches"] = program.sets, plan.runs, plan.patches
        one["gram_products"] = sum(c * (c + 1) // 2 for _, c in program.sets)
        described["machines"].append(one)
    (folder / "gram.ptx").write_text(gram_kernel())
    np.savez_compressed(folder / "reference.npz", **arrays)  # pyright: ignore[reportArgumentType]
    (folder / "pack.json").write_text(json.dumps(described))
    size = sum(p.stat().st_size for p in folder.iterdir())
    print(f"{folder}: {size / 1e6:.1f} MB")


def peer_tree(machine: Any) -> list[dict[str, Any]]:
    """Bodies as numbers for the peer: parent, kind of joint, coordinate, ratio, placement, ten parameters."""
    from veridyn.mechanics.tree.of_machine import tree_of

    tree, out, at = tree_of(machine), [], 0
    for j, b in enumerate(tree.bodies):
        A, P = tree.placements[j]
        ten = [0.0] * 10
        if b.real:
            ten, at = [float(x) for x in tree.parameters.values[at : at + 10]], at + 10
        out.append(
            {
                "parent": int(tree.antecedent[j]),
                "sigma": int(tree.sigma[j]),
                "coordinate": int(tree.coordinate[j]),
                "ratio": float(b.ratio),
                "A": [[float(x) for x in row] for row in A],
                "P": [float(x) for x in P],
                "ten": ten,
            }
        )
    return out


# --- the runner -----------------------------------------------------------------------------------------------------------------


class Gpu:
    """CuPy's memory, modules and clock."""

    def __init__(self) -> None:
        import cupy

        self.cp = cupy
        self.properties = cupy.cuda.runtime.getDeviceProperties(0)

    def load(self, text: str, name: str, shared: int = 0) -> Any:
        module = self.cp.cuda.function.Module()
        module.load(text.encode())
        function = module.get_function(name)
        if shared:
            self.cp.cuda.driver.funcSetAttribute(function.ptr, MAX_SHARED, shared)
        return function

    def seconds(self, work: Callable[[], object], repeat: int = 15) -> tuple[float, float]:
        """The median of several runs after a warm one, and their spread, by the device's own events."""
        cp = self.cp
        work()
        found = []
        for _ in range(repeat):
            start, stop = cp.cuda.Event(), cp.cuda.Event()
            start.record()
            work()
            stop.record()
            stop.synchronize()
            found.append(cp.cuda.get_elapsed_time(start, stop) / 1e3)
        found.sort()
        return found[len(found) // 2], found[-1] / found[0] - 1.0


def u32(value: int) -> np.uint32:
    return np.uint32(value)


def by_value(parameters: np.ndarray) -> np.ndarray:
    """Numbers as one object of their size, which CuPy copies into the arguments."""
    values = np.ascontiguousarray(parameters if parameters.size else np.zeros(1))
    return values.view(f"V{values.nbytes}")


def launch(kernel: Any, inputs: Any, parameters: np.ndarray, outputs: Any, count: int) -> None:
    arguments = (inputs, by_value(parameters), outputs, u32(inputs.shape[1]), u32(outputs.shape[1]), u32(count), u32(1))
    kernel((-(-count // THREADS),), (THREADS,), arguments)


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest deviation of an output, of that output's own size."""
    size = np.abs(expected).max(axis=1, keepdims=True)
    return float((np.abs(found - expected) / np.where(size > 0, size, 1.0)).max())


def copy_rate(gpu: Gpu) -> float:
    """Bytes a second, read and written, of a large copy on the device."""
    a = gpu.cp.random.random(1 << 28)
    b = gpu.cp.empty_like(a)
    return 2 * a.nbytes / gpu.seconds(lambda: gpu.cp.copyto(b, a))[0]


def arithmetic_rates(gpu: Gpu) -> tuple[float, float]:
    """Fused operations a second: of the plain units, and of the matrix units, in double precision."""
    out = gpu.cp.zeros(1)
    blocks, threads, turns = 132 * 8, 256, 2000
    plain = gpu.load(rate_text(False), "fma_rate")
    t = gpu.seconds(lambda: plain((blocks,), (threads,), (out, u32(turns))), 5)[0]
    matrix = gpu.load(rate_text(True), "fma_rate")
    s = gpu.seconds(lambda: matrix((blocks,), (threads,), (out, u32(turns))), 5)[0]
    return blocks * threads * turns * FMA_LINES / t, blocks * threads // 32 * turns * MMA_LINES * 16 * 8 * 8 / s


def upload_rates(gpu: Gpu) -> tuple[float, float]:
    """Bytes a second from the host's memory to the device: ordinary memory, and pinned memory."""
    cp = gpu.cp
    plain = np.ones(1 << 26)
    device = cp.empty(1 << 26)
    held = cp.cuda.alloc_pinned_memory(plain.nbytes)
    pinned = np.frombuffer(held, np.float64, plain.size)
    pinned[:] = 1.0
    return tuple(plain.nbytes / gpu.seconds(lambda a=a: device.set(a), 5)[0] for a in (plain, pinned))  # pyright: ignore[reportReturnType]


def run(folder: Path) -> dict[str, Any]:
    gpu = Gpu()
    described = json.loads((folder / "pack.json").read_text())
    reference = np.load(folder / "reference.npz")
    copy, (plain, matrix), (upload, pinned) = copy_rate(gpu), arithmetic_rates(gpu), upload_rates(gpu)
    found: dict[str, Any] = {
        "device": gpu.properties["name"].decode(),
        "copy_bytes_per_s": copy,
        "fma_per_s": plain,
        "matrix_fma_per_s": matrix,
        "upload_bytes_per_s": upload,
        "upload_pinned_bytes_per_s": pinned,
        "lines": [],
    }
    print(
        f"{found['device']}: copy {copy / 1e12:.2f} TB/s, fused operations {plain / 1e12:.1f} T/s, "
        f"on matrix units {matrix / 1e12:.1f} T/s, "
        f"from the host {upload / 1e9:.1f} GB/s, from pinned memory {pinned / 1e9:.1f} GB/s"
    )
    print(
        "| machine | quantity | million samples a second | goal | differs from the processor | first use, s | what bounds it |"
    )
    print("|---|---|---:|---:|---:|---:|---|")
    for number, machine in enumerate(described["machines"]):
        for line in machine_lines(gpu, folder, number, machine, reference, copy, plain, matrix):
            found["lines"].append(line)
            print(table_row(line), flush=True)
    for line in peer_lines(described, reference):
        found["lines"].append(line)
        print(table_row(line), flush=True)
    wrong = [f"{x['machine']}, {x['what']}: {x['difference']:.1e}" for x in found["lines"] if not x["agrees"]]
    if wrong:
        raise SystemExit("these differ from the processor by more than rounding: " + "; ".join(wrong))
    return found


def table_row(x: dict[str, Any]) -> str:
    goal, first = (f"{x[key]:,.{digits}f}" if key in x else "" for key, digits in (("goal", 0), ("first", 2)))
    rate = x["rate"] / 1e6
    shown = f"{rate:,.{0 if rate >= 100 else 1}f}"
    return f"| {x['machine']} | {x['what']} | {shown} | {goal} | {x['difference']:.0e} | {first} | {x['bound']} |"


def kernel_of(gpu: Gpu, folder: Path, key: str) -> tuple[Any, float]:
    text = (folder / f"{key}.ptx").read_text()
    start = time.perf_counter()
    made = gpu.load(text, key.split(".")[1])
    return made, time.perf_counter() - start


def bound_of(rate: float, bytes_each: float, operations: float, copy: float, arithmetic: float) -> str:
    memory, work = rate * bytes_each / copy, rate * operations / arithmetic
    text = f"{100 * memory:.0f} % of copying, {100 * work:.0f} % of arithmetic"
    if max(memory, work) > 0.7:
        return text + (": bounded by memory" if memory >= work else ": bounded by arithmetic")
    return text + ": bounded by latency (registers allow few threads)"


def machine_lines(
    gpu: Gpu,
    folder: Path,
    number: int,
    machine: dict[str, Any],
    reference: Any,
    copy: float,
    plain: float,
    matrix: float,
) -> Iterator[dict[str, Any]]:
    cp = gpu.cp
    words = {"inverse": "inverse dynamics", "regressor": "regressor", "forward": "forward dynamics"}
    for what, title in words.items():
        key = f"{number}.{what}"
        inputs, expected = reference[f"{key}.inputs"], reference[f"{key}.outputs"]
        parameters = reference[f"{key}.parameters"]
        n, k = len(inputs), len(expected)
        here, out = cp.asarray(inputs), cp.full((k, CHECKED), np.nan)
        start = time.perf_counter()
        kernel, _ = kernel_of(gpu, folder, key)
        launch(kernel, here, parameters, out, CHECKED)
        result = cp.asnumpy(out)
        first = time.perf_counter() - start
        error = difference(result, expected)
        samples = int(min(1 << 22, 12e9 // (8 * (n + k)))) // 1024 * 1024
        many, big = cp.random.standard_normal((n, samples)), cp.empty((k, samples))
        step = partial(launch, kernel, many, parameters, big, samples)
        spent, spread = gpu.seconds(step)
        rate, operations = samples / spent, machine["kernels"][what]["operations"]
        yield {
            "machine": machine["name"], "what": title, "rate": rate, "goal": GOALS[title][number], "difference": error,
            "agrees": error < AGREES[what], "first": first, "spread": spread, "bytes": 8 * (n + k), "operations": operations,
            "bound": bound_of(rate, 8 * (n + k), operations, copy, plain),
        }  # fmt: skip
        del many, big, step
    yield from least_squares_lines(gpu, folder, number, machine, reference, copy, plain, matrix)


class LeastSquares:
    """Gram matrices of all rows; the regressor is made tile by tile and never lies in memory as a whole."""

    def __init__(self, gpu: Gpu, folder: Path, number: int, machine: dict[str, Any], tasks: np.ndarray) -> None:
        cp = gpu.cp
        self.gpu, self.sets = gpu, machine["sets"]
        start = time.perf_counter()
        self.equations, _ = kernel_of(gpu, folder, f"{number}.equations")
        self.gram = gpu.load((folder / "gram.ptx").read_text(), "gram", GRAM_SHARED)
        self.first = time.perf_counter() - start
        columns = machine["kernels"]["equations"]["outputs"]
        self.tile = min(LARGEST_TILE, TILE_DOUBLES // columns) // 128 * 128
        blocks = BLOCKS_EACH * gpu.properties["multiProcessorCount"]
        self.chunk = -(-min(LONGEST_CHUNK, -(-self.tile * len(tasks) // blocks)) // 16) * 16
        self.tasks, self.patches = cp.asarray(tasks), len(machine["patches"])
        self.sums = cp.zeros((-(-self.tile // self.chunk), self.patches, 32, 32))
        self.table = cp.empty((columns, self.tile))
        self.turned = cp.empty_like(self.table)

    def make(self, inputs: Any, lo: int, size: int) -> None:
        arguments = (inputs.data.ptr + 8 * lo, by_value(np.zeros(1)), self.table)
        numbers = (inputs.shape[1], self.tile, size, 1)
        self.equations((-(-size // THREADS),), (THREADS,), (*arguments, *map(u32, numbers)))

    def add(self, table: Any, size: int) -> None:
        numbers = (self.tile, size, self.chunk, self.patches)
        grid = (len(self.tasks), -(-size // self.chunk))
        self.gram(grid, (GRAM_THREADS,), (table, self.tasks, self.sums, *map(u32, numbers)), shared_mem=GRAM_SHARED)

    def __call__(self, inputs: Any, transforms: list[Any] | None = None) -> Any:
        """The patches of all Gram matrices, of the columns or of their combinations."""
        self.sums.fill(0.0)
        for lo in range(0, inputs.shape[1], self.tile):
            size = min(self.tile, inputs.shape[1] - lo)
            self.make(inputs, lo, size)
            if transforms is None:
                self.add(self.table, size)
                continue
            for T, (first, count) in zip(transforms, self.sets, strict=True):
                self.gpu.cp.matmul(T, self.table[first : first + count], out=self.turned[first : first + count])
            self.add(self.turned, size)
        return self.sums.sum(axis=0)


def matrices(machine: dict[str, Any], values: np.ndarray) -> list[np.ndarray]:
    """G of each row from the patches that the kernel left."""
    found = [np.zeros((count, count)) for _, count in machine["runs"]]
    for (k, a, b), patch in zip(machine["patches"], values, strict=True):
        G = found[k]
        part = np.tril(patch) + np.tril(patch, -1).T if a == b else patch
        rows, columns = G[32 * a : 32 * a + 32].shape[0], G[:, 32 * b : 32 * b + 32].shape[1]
        G[32 * a : 32 * a + 32, 32 * b : 32 * b + 32] = part[:rows, :columns]
        G[32 * b : 32 * b + 32, 32 * a : 32 * a + 32] = part[:rows, :columns].T
    own = []
    for first, count in machine["sets"]:
        k = next(k for k, (start, size) in enumerate(machine["runs"]) if start <= first < start + size)
        at = first - machine["runs"][k][0]
        own.append(found[k][at : at + count, at : at + count])
    return own


def transform_of(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """T that makes columns nearly orthonormal, and its inverse."""
    scale = np.sqrt(np.diag(G))
    scale[scale == 0.0] = 1.0
    values, V = np.linalg.eigh(G / scale / scale[:, None])
    floor = np.sqrt(np.maximum(values, 1e-14 * values[-1]))
    return (V / scale[:, None]) / floor, floor[:, None] * V.T * scale


def gram_difference(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest deviation, of the lengths of the two columns; what is shorter than 1e-6 of the longest counts as that.

    Some columns of a row are nothing but rounding, 1e-16 of the longest: 1e-10 of that measure.
    """
    worst = 0.0
    for G, E in zip(found, expected, strict=True):
        size = np.sqrt(np.diag(E))
        size = np.maximum(size, 1e-6 * size.max())
        worst = max(worst, float((np.abs(G - E) / np.outer(size, size)).max()))
    return worst


def least_squares_lines(
    gpu: Gpu,
    folder: Path,
    number: int,
    machine: dict[str, Any],
    reference: Any,
    copy: float,
    plain: float,
    matrix: float,
) -> Iterator[dict[str, Any]]:
    cp = gpu.cp
    key = f"{number}.equations"
    inputs = reference[f"{key}.inputs"]
    expected = [reference[f"{key}.gram{j}"] for j in range(len(machine["sets"]))]
    columns = machine["kernels"]["equations"]["outputs"]
    work = LeastSquares(gpu, folder, number, machine, reference[f"{key}.tasks"])
    here = cp.asarray(inputs)
    found = matrices(machine, cp.asnumpy(work(here)))
    pairs = [transform_of(G) for G in found]
    turned = [cp.asarray(T.T.copy()) for T, _ in pairs]
    second = matrices(machine, cp.asnumpy(work(here, turned)))
    refined = [back.T @ G @ back for G, (_, back) in zip(second, pairs, strict=True)]
    total = work.tile * 16
    many = cp.random.standard_normal((len(inputs), total))
    steps = {
        "regressor and least squares": (lambda: work(many), gram_difference(found, expected)),
        "refined: twice, the second time orthonormal": (
            lambda: (work(many), work(many, turned)),
            gram_difference(refined, expected),
        ),
    }
    size = work.tile
    made = gpu.seconds(lambda: work.make(many, 0, size))[0] / size
    added = gpu.seconds(lambda: work.add(work.table, size))[0] / size
    products = machine["gram_products"]
    for title, (step, error) in steps.items():
        spent, spread = gpu.seconds(step, 7)
        rate = total / spent
        if "refined" in title:
            bound = "the same, twice, and a product of the columns with a square matrix"
        else:
            share = 16.0 * columns * rate / copy  # written once and read once
            bound = (
                f"making the regressor {1e-6 / made:,.0f} M/s ({800 * columns / made / copy:.0f} % of copying), adding products "
                f"{1e-6 / added:,.0f} M/s ({100 * products / added / matrix:.0f} % of the matrix units); "
                f"together {100 * share:.0f} % of copying"
            )
        yield {
            "machine": machine["name"], "what": title, "rate": rate, "difference": error, "agrees": error < AGREES["gram"],
            "first": work.first, "spread": spread, "bytes": 8 * len(inputs), "bound": bound,
            **({"goal": GOALS[title][number]} if title in GOALS else {}),
        }  # fmt: skip


# --- a peer ---------------------------------------------------------------------------------------------------------------------


def peer_lines(described: dict[str, Any], reference: Any) -> Iterator[dict[str, Any]]:
    """Inverse dynamics by the same recursion in JAX, written with small vectors and compiled by XLA, for the arm and the 20-dof car."""
    try:
        import jax
    except ImportError:
        return
    jax.config.update("jax_enable_x64", True)
    for number in range(2):
        machine, key = described["machines"][number], f"{number}.inverse"
        names, inputs = machine["kernels"]["inverse"]["samples"], reference[f"{key}.inputs"]
        start = time.perf_counter()
        call = jax.jit(jax.vmap(peer_recursion(machine, names), in_axes=1, out_axes=1))
        found = np.asarray(call(inputs))
        first = time.perf_counter() - start
        error = difference(found, reference[f"{key}.outputs"])
        many = jax.device_put(np.random.default_rng(SEED).normal(size=(len(inputs), PEER_SAMPLES)))
        call(many).block_until_ready()
        times = []
        for _ in range(9):
            start = time.perf_counter()
            call(many).block_until_ready()
            times.append(time.perf_counter() - start)
        platform = jax.devices()[0].platform
        yield {
            "machine": machine["name"], "what": f"inverse dynamics, JAX {jax.__version__} on {platform}", "difference": error,
            "rate": PEER_SAMPLES / sorted(times)[len(times) // 2], "agrees": error < AGREES["inverse"], "first": first,
            "bound": "the peer",
        }  # fmt: skip


def peer_recursion(machine: dict[str, Any], names: list[str]) -> Callable[[Any], Any]:
    """Newton and Euler's recursion of one sample over the bodies of a tree, inputs in the order of `names`."""
    import jax.numpy as jnp

    place = {name: k for k, name in enumerate(names)}
    z = jnp.array([0.0, 0.0, 1.0])

    def law(x: Any) -> Any:
        def get(name: str) -> Any:
            return x[place[name]] if name in place else 0.0

        def three(name: str) -> Any:
            return jnp.stack([jnp.asarray(get(f"{name}.{k}"), dtype=x.dtype) for k in range(3)])

        bodies, free = machine["tree"], machine["gravity"] is None
        ground = (jnp.zeros(3), jnp.zeros(3), jnp.zeros(3) if free else -jnp.array(machine["gravity"]))
        state, frames, wrench = [], [], []
        for b in bodies:
            c, a = b["coordinate"], b["ratio"]
            q, qd, qdd = (a * get(f"{s}.{c}") if c >= 0 else 0.0 for s in ("q", "qd", "qdd"))
            R, p = jnp.array(b["A"]), jnp.array(b["P"])
            if b["sigma"] == 0 and c >= 0:
                s, k = jnp.sin(q), jnp.cos(q)
                R = R @ jnp.array([[k, -s, 0.0], [s, k, 0.0], [0.0, 0.0, 1.0]])
            elif b["sigma"] == 1:
                p = p + R[:, 2] * q
            if free and b["parent"] < 0:
                w, wd, vd = three("w"), three("wd"), three("vd")
            else:
                wi, wdi, vdi = state[b["parent"]] if b["parent"] >= 0 else ground
                w, wd = R.T @ wi, R.T @ wdi
                vd = R.T @ (vdi + jnp.cross(wdi, p) + jnp.cross(wi, jnp.cross(wi, p)))
                if b["sigma"] == 0 and c >= 0:
                    wd = wd + z * qdd + jnp.cross(w, z * qd)
                    w = w + z * qd
                elif b["sigma"] == 1:
                    vd = vd + z * qdd + 2.0 * jnp.cross(w, z * qd)
            XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M = b["ten"]
            J, S = jnp.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]), jnp.array([MX, MY, MZ])
            f = M * vd + jnp.cross(wd, S) + jnp.cross(w, jnp.cross(w, S))
            n = J @ wd + jnp.cross(w, J @ w) + jnp.cross(S, vd)
            state.append((w, wd, vd))
            frames.append((R, p))
            wrench.append((f, n))
        rows: dict[int, Any] = {}
        for j in range(len(bodies) - 1, -1, -1):
            b, (f, n), (R, p) = bodies[j], wrench[j], frames[j]
            if b["coordinate"] >= 0:
                own = b["ratio"] * (n[2] if b["sigma"] == 0 else f[2])
                rows[b["coordinate"]] = rows.get(b["coordinate"], 0.0) + own
            if b["parent"] >= 0:
                F, N = wrench[b["parent"]]
                wrench[b["parent"]] = (F + R @ f, N + R @ n + jnp.cross(p, R @ f))
        base = [*wrench[0][0], *wrench[0][1]] if free else []
        return jnp.stack([*base, *(rows[k] for k in range(len(rows)))])

    return law


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", type=Path, help="write PTX and reference arrays into this folder")
    parser.add_argument("--run", type=Path, help="measure what is in this folder")
    parser.add_argument("--json", type=Path, help="write what was measured to this file")
    given = parser.parse_args()
    if given.pack is None and given.run is None:
        parser.error("give --pack DIR or --run DIR")
    if given.pack:
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        pack(given.pack)
    if given.run:
        found = run(given.run)
        if given.json:
            given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
