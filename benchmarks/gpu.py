"""Kernels on a GPU: ``--pack DIR`` where veridyn is installed, ``--run DIR`` where there is a GPU with NumPy and CuPy, and nothing else.

The pack holds PTX text and, for some samples, what the processor's own kernels gave; the runner checks every number against that, times
the kernels on many samples, measures copies and arithmetic in the same run, and states what bounds each line.

    python benchmarks/gpu.py --pack pack            # needs veridyn
    python benchmarks/gpu.py --run pack [--json FILE]   # needs NumPy and CuPy; a peer in JAX where that is installed
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

CHECKED = 512  # samples that are compared with the processor
THREADS = 128  # of a block of the kernels
GRAM_THREADS, GRAM_SHARED = 512, 98304
MAX_SHARED = 8  # the attribute of a kernel that says how many bytes of shared memory a launch may ask for
SEED = 0
GOALS = {  # million samples a second: 7-joint arm, 20-dof car, 38-dof car
    "inverse dynamics": (12_000, 4_500, 1_000),
    "regressor": (1_600, 430, 150),
    "regressor and least squares": (800, 200, 50),
    "forward dynamics": (2_000, 500, 100),
}
MACHINES = ("7-joint arm", "20-dof car", "38-dof car")
AGREES = {"inverse": 1e-13, "regressor": 1e-13, "forward": 1e-9, "equations": 1e-13, "gram": 1e-12}
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
        one = "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {{%d{0},%d{1},%d{2},%d{3}}}, {{%d8,%d9,%d8,%d9}}, {{%d8,%d9}}, {{%d{0},%d{1},%d{2},%d{3}}};"
        body = "\n".join(one.format(*(range(0, 4) if k % 2 else range(4, 8))) for k in range(MMA_LINES))
    else:
        body = "\n".join(f"fma.rn.f64 %d{k % 8}, %d{k % 8}, %d9, %d8;" for k in range(FMA_LINES))
    return RATE_KERNEL.replace("START", start).replace("BODY", body)


# --- the pack -------------------------------------------------------------------------------------------------------------------


def pack(folder: Path) -> None:
    """Write PTX, task tables, reference arrays, and the trees for the peer."""
    from benchmarks.identification import recorded
    from benchmarks.subjects import arm, car, motion
    from veridyn.identify.equation_program import equation_program
    from veridyn.identify.observation import stream
    from veridyn.mechanics.engine import sample_arrays, uniform_values
    from veridyn.mechanics.formula import formula
    from veridyn.mechanics.forward import forward_dynamics
    from veridyn.mechanics.inverse import inverse_dynamics
    from veridyn.mechanics.regressor import regressor
    from veridyn.mechanics.symbols import Request
    from veridyn.symbolic.emit_ptx import emit_ptx
    from veridyn.symbolic.evaluate import evaluate
    from veridyn.symbolic.gram_ptx import gram_kernel, gram_plan

    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    described: dict[str, Any] = {"machines": []}
    for number, tree in enumerate((arm(), car(20), car(38))):
        m = motion(tree, CHECKED, seed=11)
        rows = tuple(range(len(tree.rows)))
        every = tuple(range(len(tree.columns)))
        requests = {
            "inverse": Request("inverse", rows),
            "regressor": Request("regressor", rows, every),
            "forward": Request("forward", rows),
        }
        D = regressor(tree, m, engine="compiled")
        solved = forward_dynamics(tree, m, engine="compiled")
        a = solved.qdd if solved.base is None else np.column_stack([solved.base.acceleration, solved.base.omega_dot, solved.qdd])
        full = {"inverse": inverse_dynamics(tree, m, engine="compiled"), "forward": a}
        one: dict[str, Any] = {"name": tree.name, "kernels": {}, "tree": peer_tree(tree)}
        for what, request in requests.items():
            f = formula(tree, request)
            k = emit_ptx(f.graph, f.outputs, f.samples, f.parameters, what)
            key = f"{number}.{what}"
            (folder / f"{key}.ptx").write_text(k.text)
            arrays[f"{key}.inputs"] = np.array(sample_arrays(tree, m, k.samples))
            arrays[f"{key}.parameters"] = uniform_values(tree, tree.parameters.values, k.parameters)
            expected = [D[:, r, c] for r, c in f.labels] if what == "regressor" else [full[what][:, r] for (r,) in f.labels]
            arrays[f"{key}.outputs"] = np.array(expected)
            one["kernels"][what] = {"outputs": k.outputs, "operations": k.operations, "live": k.live}
        measured_tree, measured = recorded(tree, CHECKED)
        equations = stream(measured_tree, measured, engine="numpy")
        program = equation_program(equations.plan, measured)
        k = emit_ptx(program.graph, program.outputs, program.samples, program.parameters, "equations", goals=program.goals)
        names = [n for n in program.samples if not n.startswith("y.")]
        given = dict(zip(names, sample_arrays(measured_tree, measured, names), strict=True))
        given |= {n: np.asarray(equations.plan.force(measured, int(n[2:]))) for n in program.samples if n.startswith("y.")}
        plan = gram_plan(program.sets)
        key = f"{number}.equations"
        (folder / f"{key}.ptx").write_text(k.text)
        arrays[f"{key}.inputs"] = np.array([given[n] for n in k.samples])
        arrays[f"{key}.parameters"] = np.zeros(0)
        values = evaluate(program.graph, program.outputs, given)
        arrays[f"{key}.outputs"] = np.array([np.broadcast_to(v, CHECKED) for v in values])
        arrays[f"{key}.tasks"] = plan.tasks
        for j, (first, count) in enumerate(program.sets):  # by Householder reflections, which form no products of columns
            R = np.linalg.qr(arrays[f"{key}.outputs"][first : first + count].T, mode="r")
            arrays[f"{key}.gram{j}"] = R.T @ R
        one["kernels"]["equations"] = {"outputs": k.outputs, "operations": k.operations, "live": k.live}
        one["sets"], one["runs"], one["patches"] = program.sets, plan.runs, plan.patches
        one["gram_products"] = sum(c * (c + 1) // 2 for _, c in program.sets)
        described["machines"].append(one)
    for wide in (True, False):
        (folder / f"gram{'_wide' if wide else ''}.ptx").write_text(gram_kernel(wide=wide))
    np.savez_compressed(folder / "reference.npz", **arrays)  # pyright: ignore[reportArgumentType]
    (folder / "pack.json").write_text(json.dumps(described))
    size = sum(p.stat().st_size for p in folder.iterdir())
    print(f"{folder}: {size / 1e6:.1f} MB")


def peer_tree(tree: Any) -> list[dict[str, Any]]:
    """Bodies as numbers for the peer: parent, kind of joint, coordinate, ratio, placement, ten parameters."""
    out, at = [], 0
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


def run(folder: Path, only: str = "") -> dict[str, Any]:
    gpu = Gpu()
    described = json.loads((folder / "pack.json").read_text())
    reference = np.load(folder / "reference.npz")
    copy, (plain, matrix) = copy_rate(gpu), arithmetic_rates(gpu)
    found: dict[str, Any] = {
        "device": gpu.properties["name"].decode(),
        "copy_bytes_per_s": copy,
        "fma_per_s": plain,
        "matrix_fma_per_s": matrix,
        "lines": [],
    }
    print(f"{found['device']}: copy {copy / 1e12:.2f} TB/s, fused operations {plain / 1e12:.1f} T/s, matrix units {matrix / 1e12:.1f} T/s")
    for number, machine in enumerate(described["machines"]):
        for line in machine_lines(gpu, folder, number, machine, reference, copy, plain, matrix):
            found["lines"].append(line)
            print(told(line), flush=True)
    return found


def told(x: dict[str, Any]) -> str:
    goal = f"goal {x['goal']:7,}" if x.get("goal") else ""
    return (
        f"{x['machine']:12s} {x['what']:34s} {x['rate'] / 1e6:10,.1f} M/s {goal}  differs {x['difference']:.0e}  first use {x.get('first', 0):.2f} s"
        f"  {x['bound']}"
    )


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
    gpu: Gpu, folder: Path, number: int, machine: dict[str, Any], reference: Any, copy: float, plain: float, matrix: float
) -> Iterator[dict[str, Any]]:
    cp = gpu.cp
    words = {"inverse": "inverse dynamics", "regressor": "regressor", "forward": "forward dynamics"}
    for what, title in words.items():
        key = f"{number}.{what}"
        kernel, first = kernel_of(gpu, folder, key)
        inputs, expected = reference[f"{key}.inputs"], reference[f"{key}.outputs"]
        parameters = reference[f"{key}.parameters"]
        n, k = len(inputs), len(expected)
        here, out = cp.asarray(inputs), cp.full((k, CHECKED), np.nan)
        launch(kernel, here, parameters, out, CHECKED)
        error = difference(cp.asnumpy(out), expected)
        samples = int(min(1 << 22, 12e9 // (8 * (n + k)))) // 1024 * 1024
        many, big = cp.random.standard_normal((n, samples)), cp.empty((k, samples))
        spent, spread = gpu.seconds(lambda: launch(kernel, many, parameters, big, samples))
        rate, operations = samples / spent, machine["kernels"][what]["operations"]
        yield {
            "machine": machine["name"], "what": title, "rate": rate, "goal": GOALS[title][number], "difference": error,
            "agrees": error < AGREES[what], "first": first, "spread": spread, "bytes": 8 * (n + k), "operations": operations,
            "bound": bound_of(rate, 8 * (n + k), operations, copy, plain),
        }  # fmt: skip
        del many, big
    yield from least_squares_lines(gpu, folder, number, machine, reference, copy, matrix)


class LeastSquares:
    """Gram matrices of all rows, the regressor made tile by tile and used up before the next but one is made."""

    def __init__(self, gpu: Gpu, folder: Path, number: int, machine: dict[str, Any], tasks: np.ndarray, tile: int, chunk: int, wide: bool) -> None:
        cp = gpu.cp
        self.gpu, self.tile, self.chunk = gpu, tile, chunk
        self.equations, self.first = kernel_of(gpu, folder, f"{number}.equations")
        self.gram = gpu.load((folder / f"gram{'_wide' if wide else ''}.ptx").read_text(), "gram")
        self.tasks, self.patches = cp.asarray(tasks), len(machine["patches"])
        self.sums = cp.zeros((-(-tile // chunk), self.patches, 32, 32))
        self.tables = [cp.empty((machine["kernels"]["equations"]["outputs"], tile)) for _ in range(2)]
        self.streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]

    def __call__(self, inputs: Any, overlap: bool = True) -> Any:
        cp = self.gpu.cp
        self.sums.fill(0.0)
        count, stride = inputs.shape[1], inputs.shape[1]
        none = by_value(np.zeros(1))
        ready = cp.cuda.Event()
        ready.record()
        make, use = self.streams if overlap else (self.streams[0], self.streams[0])
        make.wait_event(ready)
        free: list[Any] = [None, None]
        for i, lo in enumerate(range(0, count, self.tile)):
            size, table = min(self.tile, count - lo), self.tables[i % 2]
            if free[i % 2] is not None:
                make.wait_event(free[i % 2])
            with make:
                self.equations(
                    (-(-size // THREADS),), (THREADS,),
                    (inputs.data.ptr + 8 * lo, none, table, u32(stride), u32(self.tile), u32(size), u32(1)),
                )  # fmt: skip
            if overlap:
                made = cp.cuda.Event(disable_timing=True)
                made.record(make)
                use.wait_event(made)
            with use:
                self.gram(
                    (len(self.tasks), -(-size // self.chunk)), (GRAM_THREADS,),
                    (table, self.tasks, self.sums, u32(self.tile), u32(size), u32(self.chunk), u32(self.patches)),
                )  # fmt: skip
            if overlap:
                free[i % 2] = cp.cuda.Event(disable_timing=True)
                free[i % 2].record(use)
        done = cp.cuda.Event(disable_timing=True)
        done.record(use)
        cp.cuda.get_current_stream().wait_event(done)
        return self.sums.sum(axis=0)


def matrices(sets: list[list[int]], patches: list[list[int]], values: np.ndarray) -> list[np.ndarray]:
    found = [np.zeros((count, count)) for _, count in sets]
    for (k, a, b), patch in zip(patches, values, strict=True):
        G = found[k]
        part = np.tril(patch) + np.tril(patch, -1).T if a == b else patch
        rows, columns = G[32 * a : 32 * a + 32].shape[0], G[:, 32 * b : 32 * b + 32].shape[1]
        G[32 * a : 32 * a + 32, 32 * b : 32 * b + 32] = part[:rows, :columns]
        G[32 * b : 32 * b + 32, 32 * a : 32 * a + 32] = part[:rows, :columns].T
    return found


def least_squares_lines(
    gpu: Gpu, folder: Path, number: int, machine: dict[str, Any], reference: Any, copy: float, matrix: float
) -> Iterator[dict[str, Any]]:
    cp = gpu.cp
    key = f"{number}.equations"
    inputs = reference[f"{key}.inputs"]
    expected = [reference[f"{key}.gram{j}"] for j in range(len(machine["sets"]))]
    products, columns = machine["gram_products"], machine["kernels"]["equations"]["outputs"]
    total = 1 << 22
    many = cp.random.standard_normal((len(inputs), total))
    for wide in (True, False):
        for tile in (1 << 15, 1 << 16, 1 << 17):
            for chunk in (1024, 2048, 4096):
                if tile * columns * 16 > 30e9:
                    continue
                work = LeastSquares(gpu, folder, number, machine, reference[f"{key}.tasks"], tile, chunk, wide)
                found = matrices(machine["sets"], machine["patches"], cp.asnumpy(work(cp.asarray(inputs))))
                error = max(
                    float((np.abs(G - E) / np.sqrt(np.outer(np.diag(E), np.diag(E)) + 1e-300)).max())
                    for G, E in zip(found, expected, strict=True)
                )
                for overlap in (True, False):
                    spent, spread = gpu.seconds(lambda: work(many, overlap), 5)
                    rate = total / spent
                    yield {
                        "machine": machine["name"], "what": f"LS {'wide' if wide else 'narrow'} {tile} {chunk} {'overlap' if overlap else 'serial'}",
                        "rate": rate, "goal": GOALS["regressor and least squares"][number], "difference": error, "spread": spread,
                        "agrees": error < AGREES["gram"], "first": work.first,
                        "bound": bound_of(rate, 16 * columns + 8 * len(inputs), products, copy, matrix),
                    }  # fmt: skip
                table = work.tables[0]

                def gram_alone() -> None:
                    work.gram(
                        (len(work.tasks), -(-tile // chunk)), (GRAM_THREADS,),
                        (table, work.tasks, work.sums, u32(tile), u32(tile), u32(chunk), u32(work.patches)),
                    )  # fmt: skip

                spent, _ = gpu.seconds(gram_alone, 9)
                yield {"machine": machine["name"], "what": f"gram alone {wide} {tile} {chunk}", "rate": tile / spent, "difference": 0.0,
                       "bound": bound_of(tile / spent, 8 * columns, products, copy, matrix)}  # fmt: skip
                del work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.pack:
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        pack(given.pack)
    if given.run:
        found = run(given.run)
        if given.json:
            given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
