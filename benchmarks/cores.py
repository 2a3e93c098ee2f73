"""``python -m benchmarks.cores [--batches] [--quick] [--json]``: how much of a machine one long log or many simulations use.

The 20-dof car (150 parameters, 20 rows, weighted least squares) with N threads in one process beside N processes of one thread each, which
know nothing of each other: what the cores give where nothing is shared. Each worker has as many samples, so that N threads have one log N
times as long. Both take turns, and the median over rounds counts. Goal: threads reach 85 % of the processes.

With --batches, simulations of a 7-joint arm by ``integrate_many``, each with parameters of its own, with 1, 2, 4 … threads.

Seconds of the processor stand beside those of the wall: on a machine with other work, they are what can be compared.
"""

from __future__ import annotations

import os

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import multiprocessing
import platform
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks.made_logs import car, recorded
from benchmarks.running import STEP, arm, ticks
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.equation_plan import JOB_SAMPLES
from veridyn.identify.regression.observation import MIN_SAMPLES, observation
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.system.batch import integrate_many
from veridyn.mechanics.system.run_layout import usual_lanes
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import THREADS_VARIABLE, usable_threads

# Samples of each worker: whole jobs, and enough of them that the last one does not count
SAMPLES, QUICK_SAMPLES = 32 * JOB_SAMPLES, 8 * JOB_SAMPLES
ROUNDS, QUICK_ROUNDS = 5, 2
RUNS, QUICK_RUNS = 256, 64  # of each thread
RUN_DURATION = 0.5  # s
GOAL = 0.85


@dataclass(frozen=True)
class Rate:
    """Samples a second by the wall, and seconds of the processor for a million samples."""

    samples_per_second: float
    cpu_per_million: float


@contextmanager
def allowed(threads: int | None) -> Iterator[None]:
    """OMP_NUM_THREADS set to so many, or to nothing, and afterwards to what it was."""
    before = os.environ.pop(THREADS_VARIABLE, None)
    if threads is not None:
        os.environ[THREADS_VARIABLE] = str(threads)
    try:
        yield
    finally:
        os.environ.pop(THREADS_VARIABLE, None)
        if before is not None:
            os.environ[THREADS_VARIABLE] = before


def cores() -> int:
    """Processors that this process may use, whatever OMP_NUM_THREADS says."""
    with allowed(None):
        return usable_threads()


def worker_counts(most: int) -> list[int]:
    """1, 2, 4, 8 … and all processors; 2 in any case, because that is the ratio that is asked for."""
    doubled = [2**k for k in range(max(2, most).bit_length()) if 2**k <= max(2, most)]
    return sorted({*doubled, max(2, most)})


def identified(machine: Machine, log: Motion, threads: int) -> tuple[float, float, float]:
    """Start and end on the clock that all processes share, and seconds of the processor."""
    settings = IdentifySettings(engine="compiled", threads=threads)
    with allowed(threads):
        cpu, start = time.process_time(), time.monotonic()
        solve(observation(machine, log, settings=settings))
        return start, time.monotonic(), time.process_time() - cpu


def _serve(samples: int, pipe: Connection) -> None:
    """One process: a log of its own, identified whenever it is asked."""
    machine, log = recorded(car(20), samples)
    identified(machine, log[:MIN_SAMPLES], 1)  # machine code is there
    pipe.send(None)
    while pipe.recv():
        pipe.send(identified(machine, log, 1))


@contextmanager
def processes(count: int, samples: int) -> Iterator[Any]:
    """So many processes that are ready; a function that lets all of them identify their logs at once."""
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(count)]
    workers = [context.Process(target=_serve, args=(samples, theirs), daemon=True) for _, theirs in pairs]
    pipes = [own for own, _ in pairs]
    for worker, (_, theirs) in zip(workers, pairs, strict=True):
        worker.start()
        theirs.close()  # so that a process that ends early is an error here, and is not waited for
    for pipe in pipes:
        pipe.recv()

    def run() -> list[tuple[float, float, float]]:
        for pipe in pipes:
            pipe.send(True)
        return [pipe.recv() for pipe in pipes]

    try:
        yield run
    finally:
        for pipe in pipes:
            pipe.send(False)
        for worker in workers:
            worker.join()


def _rate(samples: int, done: Sequence[tuple[float, float, float]]) -> Rate:
    """Of some runs side by side: from the first start to the last end."""
    seconds = max(end for _, end, _ in done) - min(start for start, _, _ in done)
    return Rate(samples / seconds, 1e6 * sum(cpu for _, _, cpu in done) / samples)


def measure(workers: int, samples: int, rounds: int) -> tuple[Rate, Rate]:
    """Medians of threads and of processes, which take turns; each worker has so many samples."""
    machine, log = recorded(car(20), workers * samples)
    identified(machine, log[:MIN_SAMPLES], 1)
    found: list[tuple[Rate, Rate]] = []
    with processes(workers, samples) as run:
        for _ in range(rounds):
            shared = _rate(workers * samples, [identified(machine, log, workers)])
            found.append((shared, _rate(workers * samples, run())))
    return _median([t for t, _ in found]), _median([p for _, p in found])


def _median(rates: Sequence[Rate]) -> Rate:
    return Rate(
        statistics.median(r.samples_per_second for r in rates), statistics.median(r.cpu_per_million for r in rates)
    )


def figures(found: dict[int, tuple[Rate, Rate]]) -> dict[str, Any]:
    """What --json prints, by the number of workers."""
    ratio = {n: t.samples_per_second / p.samples_per_second for n, (t, p) in found.items()}
    return {
        "samples_per_second_threads": {str(n): t.samples_per_second for n, (t, _) in found.items()},
        "samples_per_second_processes": {str(n): p.samples_per_second for n, (_, p) in found.items()},
        "threads_over_processes": {str(n): r for n, r in ratio.items()},
        "two_threads_over_two_processes": ratio[2],
        "cpu_seconds_per_million_threads": {str(n): t.cpu_per_million for n, (t, _) in found.items()},
        "cpu_seconds_per_million_processes": {str(n): p.cpu_per_million for n, (_, p) in found.items()},
        "cores": cores(),
        "machine": platform.machine(),
        "load": os.getloadavg()[0],
    }


def lines(found: dict[int, tuple[Rate, Rate]]) -> Iterator[str]:
    """A table, as docs/scale.md has it."""
    yield "| workers | threads, 10³ samples/s | processes, 10³ samples/s | threads/processes | CPU s/10⁶, threads | processes |"
    yield "|---:|---:|---:|---:|---:|---:|"
    for n, (t, p) in found.items():
        ratio = t.samples_per_second / p.samples_per_second
        yield (
            f"| {n} | {t.samples_per_second / 1e3:,.0f} | {p.samples_per_second / 1e3:,.0f} | {ratio:.2f} "
            f"| {t.cpu_per_million:.2f} | {p.cpu_per_million:.2f} |"
        )
    yield f"Goal: {GOAL} of the processes. {cores()} processors ({platform.machine()}), load {os.getloadavg()[0]:.1f}."


def batches(counts: Sequence[int], runs: int, rounds: int) -> dict[int, Rate]:
    """Runs a second by the number of threads, each of which has so many, and seconds of the processor for a million runs."""
    machine, t = arm(), ticks(RUN_DURATION)
    rest = np.zeros(machine.n)

    def made(threads: int, count: int) -> Rate:
        sets = np.linspace(0.8, 1.2, count)[:, None] * machine.parameters.values
        with allowed(threads):
            cpu, start = time.process_time(), time.monotonic()
            integrate_many(machine, t, rest, rest, parameters=sets, step=STEP, threads=threads)
            return _rate(count, [(start, time.monotonic(), time.process_time() - cpu)])

    made(1, 2)  # machine code is there
    found: dict[int, list[Rate]] = {n: [] for n in counts}
    for _ in range(rounds):
        for n in counts:
            found[n].append(made(n, n * runs))
    return {n: _median(rates) for n, rates in found.items()}


def batch_figures(found: dict[int, Rate]) -> dict[str, Any]:
    """What --batches --json prints, by the number of threads."""
    steps = round(RUN_DURATION / STEP)
    return {
        "runs_per_second": {str(n): r.samples_per_second for n, r in found.items()},
        "steps_per_second": {str(n): steps * r.samples_per_second for n, r in found.items()},
        "over_one_thread": {
            str(n): r.samples_per_second / found[min(found)].samples_per_second for n, r in found.items()
        },
        "cpu_microseconds_per_step": {str(n): r.cpu_per_million / steps for n, r in found.items()},
        "lanes": usual_lanes(),
        "cores": cores(),
        "machine": platform.machine(),
        "load": os.getloadavg()[0],
    }


def batch_lines(found: dict[int, Rate]) -> Iterator[str]:
    """The same as a table, as docs/scale.md has it."""
    of = batch_figures(found)
    yield "| threads | runs/s | 10³ steps/s | times one thread | CPU µs/step |"
    yield "|---:|---:|---:|---:|---:|"
    for n in found:
        runs, steps, times, cpu = (
            of[key][str(n)]
            for key in ("runs_per_second", "steps_per_second", "over_one_thread", "cpu_microseconds_per_step")
        )
        yield f"| {n} | {runs:,.0f} | {steps / 1e3:,.0f} | {times:.2f} | {cpu:.2f} |"
    yield f"{of['lanes']} runs side by side. {of['cores']} processors ({of['machine']}), load {of['load']:.1f}."


def sentence() -> str:
    """Two threads beside two processes, as a line of benchmarks/results.md."""
    threads, apart = measure(2, QUICK_SAMPLES, ROUNDS)
    return (
        f"- Two threads identify {threads.samples_per_second / 1e3:,.0f} thousand samples of the 20-dof car a second, two processes "
        f"that share nothing {apart.samples_per_second / 1e3:,.0f}: {threads.samples_per_second / apart.samples_per_second:.2f} times "
        f"(goal {GOAL}); {threads.cpu_per_million:.1f} and {apart.cpu_per_million:.1f} s of the processor for a million."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description=__doc__)
    parser.add_argument("--batches", action="store_true", help="simulations instead of identification")
    parser.add_argument("--quick", action="store_true", help="fewer samples or runs, and rounds")
    parser.add_argument("--workers", type=int, nargs="*", help="numbers of workers, instead of 1, 2, 4 … all")
    parser.add_argument("--samples", type=int, help="of each worker; with --batches runs of each")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args(arguments)
    samples = given.samples or (QUICK_SAMPLES if given.quick else SAMPLES)
    rounds = given.rounds or (QUICK_ROUNDS if given.quick else ROUNDS)
    counts = sorted({2, *given.workers}) if given.workers else worker_counts(cores())
    if given.batches:
        runs = given.samples or (QUICK_RUNS if given.quick else RUNS)
        made = batches(sorted({1, *counts}), runs, rounds)
        print(json.dumps(batch_figures(made), indent=1) if given.json else "\n".join(batch_lines(made)))
        return 0
    found = {n: measure(n, samples, rounds) for n in counts}
    print(json.dumps(figures(found), indent=1) if given.json else "\n".join(lines(found)))
    return 0


if __name__ == "__main__":
    from benchmarks.cores import main as run  # under its own name, so that processes find what they are handed

    sys.exit(run())
