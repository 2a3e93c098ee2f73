"""``python -m benchmarks``: measure, print one table, and keep it in benchmarks/results.md and in the README."""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import platform
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pinocchio as pin

import veridyn
from benchmarks.buggy import lines as buggy
from benchmarks.clock import best_of
from benchmarks.cluster import printed as cluster
from benchmarks.cores import sentence as cores
from benchmarks.deviations import costs
from benchmarks.deviations import line as deviations
from benchmarks.drives import jacobian
from benchmarks.excitation import excitation
from benchmarks.excitation import line as designed
from benchmarks.gradients import lines as gradients
from benchmarks.identification import SAMPLES, identification
from benchmarks.kernels import Line, kernels, rates, threads
from benchmarks.observers import observers
from benchmarks.panda import lines as panda
from benchmarks.running import lines as running
from benchmarks.single_state import single_state
from benchmarks.startup import commands, startup
from benchmarks.vehicle import driving, said
from veridyn.symbolic.kernel import this_host

HERE = Path(__file__).resolve().parent
REFERENCE = {
    "regressor": "Pinocchio, Python loop",
    "inverse dynamics": "Pinocchio, rneaInParallel(1)",
    "forward dynamics": "Pinocchio, aba in a loop",
}
START, END = "<!-- benchmark -->", "<!-- /benchmark -->"


def dgemm() -> float:
    """Floating-point operations a second of this machine's matrix product, one thread."""
    a = np.random.default_rng(0).normal(size=(768, 768))
    return 2 * 768**3 / best_of(lambda: a @ a).cpu


def table(lines: list[Line]) -> Iterator[str]:
    yield "| machine | quantity | how | thousand samples per CPU second | by the wall | times the peer | spread % |"
    yield "|---|---|---|---:|---:|---:|---:|"
    peers = {(x.machine, x.what): x.rate for x in lines if x.how == REFERENCE.get(x.what)}
    for x in lines:
        ratio = x.rate / peers[x.machine, x.what] if (x.machine, x.what) in peers else float("nan")
        yield (
            f"| {x.machine} | {x.what} | {x.how} | {x.rate / 1e3:,.1f} | {x.wall_rate / 1e3:,.1f} | {ratio:.1f} | {x.spread:.0f} |"
        )


def report() -> str:
    rate = dgemm()
    a = np.zeros(2**17)
    filled = a.nbytes / best_of(lambda: a.fill(1.0)).cpu
    lines: list[Line] = []
    for x in kernels():
        lines.append(x)
        print(f"{x.machine:14s} {x.what:18s} {x.how:32s} {x.rate / 1e3:12,.1f} k/s", flush=True)
    in_cache, to_memory = threads()
    bounds = [
        f"the {name}'s regressor in cache: {flops / 1e9:.1f} Gflop/s, {stored / 1e9:.0f} GB/s written"
        for name, flops, stored in rates()
    ]
    text = [
        f"veridyn {veridyn.__version__}, Pinocchio {pin.__version__}, Python {platform.python_version()}, "
        f"{this_host().cpu} ({this_host().width} doubles a register), one thread unless stated otherwise.",
        "Every pair that is compared was first checked to give the same numbers to 1e-11. Spread: median over best of five runs.",
        "",
        *table(lines),
        "",
        f"- Two threads do {in_cache:.2f} times the work of one (regressor of the 20-dof car consumed in cache); "
        f"{to_memory:.2f} times where memory is the bound (its inverse dynamics, written to memory).",
    ]
    for machine, first, later in startup():
        text.append(
            f"- First call of the {machine}'s regressor: {first:.2f} s, and {1e3 * later:.0f} ms from the objects kept on disk."
        )
    text += [said(driving()), single_state(), *running(), *gradients()]
    r = identification()
    text += [
        f"- Identification of the 20-dof car (150 parameters, 20 rows) from {SAMPLES:,} samples: {r.one:.1f} s on one thread, "
        f"{r.two:.1f} s on two, {r.extra_megabytes:.0f} MB of extra memory. A Pinocchio loop ({r.peer_regressor:.0f} s) and "
        f"numpy.linalg.qr ({r.peer_qr:.0f} s) of the stored matrix, extrapolated from what fits in memory: "
        f"{r.peer:.0f} s, {r.peer / r.one:.0f} times as long. Residuals agree to {r.difference:.0e}.",
        deviations(costs()),
        cores(),
        *cluster(),
        *panda(),
        jacobian(),
        *commands(),
        designed(excitation()),
        f"- Matrix products run at {rate / 1e9:.0f} Gflop/s on this core and memory is filled at {filled / 1e9:.0f} GB/s; "
        + "; ".join(bounds)
        + ". The regressors of the cars are bounded by writing their entries (each entry costs about one operation), not by arithmetic.",
    ]
    text += [*observers(), *buggy()]
    return "\n".join(text) + "\n"


def headline(text: str) -> str:
    """Six figures of a report for the README: kernels beside Pinocchio, identification beside a loop, one state a call, observers."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    rate = {(r[0], r[1], r[2]): (r[3], r[5]) for r in rows if len(r) == 7}
    kernels = [
        ("7-joint arm", "inverse dynamics", "veridyn, compiled"),
        ("20-dof car", "forward dynamics", "veridyn, compiled"),
        ("20-dof car", "regressor", "veridyn, consumed in cache"),
    ]
    lines = [
        f"- {what} of the {machine}: {rate[machine, what, how][0]} thousand samples a second, "
        f"{rate[machine, what, how][1]} times Pinocchio"
        for machine, what, how in kernels
    ]
    for start in ("- One state a call", "- Identification of the 20-dof car", "- `observer.step`, EKF on the four-bar"):
        lines += [line for line in text.splitlines() if line.startswith(start)][:1]
    return text.splitlines()[0] + "\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    text = report()
    print(text)
    (HERE / "results.md").write_text("# Benchmark\n\n`make bench` wrote this.\n\n" + text, encoding="utf-8")
    readme = HERE.parent / "README.md"
    content = readme.read_text(encoding="utf-8")
    if START in content and END in content:
        before, after = content.split(START)[0], content.split(END)[1]
        readme.write_text(f"{before}{START}\n{headline(text)}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
