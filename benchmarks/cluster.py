"""``python -m benchmarks.cluster``: what sharing out costs, and how much memory a log without end takes.

Both parts identify the 20-dof car (150 parameters, 20 rows) from logs that the workers make themselves, as they would read them
(:class:`veridyn.identify.regression.workers.MadeMotions`), so that only R factors travel.

1. Ten million samples on one thread: seconds, and the peak of the process's memory beside its size before. ``--samples`` for fewer.
2. Two one-thread workers of a local Dask cluster beside two plain threads, in turn: the ratio of their rates (goal 90 %), and how far their
   results lie from those of one thread (goal 1e-12).

What is printed is what was measured; nothing is extrapolated. The load of the machine stands beside it.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.made_logs import car, motion, with_forces, with_motors
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.workers import MadeMotions
from veridyn.identify.settings import IdentifySettings
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

SAMPLES, SHARED_SAMPLES, PIECE, ROUNDS = 10_000_000, 1_000_000, 50_000, 5
GOAL_RATE, GOAL_DIFFERENCE = 0.9, 1e-12


@dataclass(frozen=True)
class Streamed:
    """`seconds` of one thread for `samples`, of which making the samples took `making`; megabytes before and at the peak."""

    samples: int
    seconds: float
    making: float
    before_megabytes: float
    peak_megabytes: float
    load: float


@dataclass(frozen=True)
class Shared:
    """Median seconds of two threads and of two workers for `samples`; `rate`: median over rounds of threads' seconds over workers'.

    `cpu_rate`: the same by seconds of the processor, of this process, with the scheduler in it, and of the workers.
    `difference`: the largest of any value from those of one thread, relative to the largest value.
    """

    samples: int
    rounds: int
    threads: float
    workers: float
    rate: float
    rates: tuple[float, ...]
    cpu_rate: float
    difference: float
    load: float


@cache
def machine() -> Machine:
    """The car with a force on every joint and a wrench on its base."""
    return with_motors(car(20))


def piece(samples: int, seed: int) -> Motion:
    """One log: what a worker would read from a file."""
    return with_forces(machine(), motion(machine(), samples, seed), seed)


def logs(samples: int, size: int) -> MadeMotions:
    """So many samples in logs of one size."""
    return MadeMotions(range(max(1, samples // size)), partial(piece, size))


def values(made: MadeMotions, executor: Executor | None = None) -> np.ndarray:
    """The identified base parameters."""
    return solve(observation(machine(), made, settings=IdentifySettings(engine="compiled"), executor=executor)).values


def streamed(samples: int, size: int) -> Streamed:
    """All samples on one thread, none of them kept."""
    values(logs(2 * size, size))  # machine code and buffers are there
    start = time.perf_counter()
    for seed in range(3):
        piece(size, seed)
    making = (time.perf_counter() - start) / 3.0 * (samples // size)
    before = _peak()
    start = time.perf_counter()
    values(logs(samples, size))
    seconds = time.perf_counter() - start
    return Streamed(samples // size * size, seconds, making, before, _peak(), os.getloadavg()[0])


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def shared(samples: int, size: int, rounds: int) -> Shared:
    """Two threads and two workers in turn, after a first turn of each that is not counted."""
    from distributed import Client, LocalCluster

    made = logs(samples, size)
    alone = values(made)
    seconds: dict[str, list[float]] = {"threads": [], "workers": []}
    spent: dict[str, list[float]] = {"threads": [], "workers": []}
    difference = 0.0
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        client.wait_for_workers(2)
        executors = {"threads": pool, "workers": client.get_executor(pure=False, retries=3)}
        for turn in range(rounds + 1):
            for name, executor in executors.items():
                before, start = _processor(client), time.perf_counter()
                found = values(made if turn else logs(4 * size, size), executor)
                if turn:
                    seconds[name].append(time.perf_counter() - start)
                    spent[name].append(_processor(client) - before)
                    difference = max(difference, float(np.abs(found - alone).max() / np.abs(alone).max()))
    rates = [t / w for t, w in zip(seconds["threads"], seconds["workers"], strict=True)]
    return Shared(
        samples=samples // size * size,
        rounds=rounds,
        threads=statistics.median(seconds["threads"]),
        workers=statistics.median(seconds["workers"]),
        rate=statistics.median(rates),
        rates=tuple(rates),
        cpu_rate=statistics.median(t / w for t, w in zip(spent["threads"], spent["workers"], strict=True)),
        difference=difference,
        load=os.getloadavg()[0],
    )


def _processor(client: Any) -> float:
    """Seconds of the processor that this process and all workers have used."""
    return time.process_time() + sum(client.run(time.process_time).values())


def lines(stream: Streamed | None, share: Shared | None) -> list[str]:
    """The results as lines of benchmarks/results.md."""
    out = []
    if stream is not None:
        s = stream
        out.append(
            f"- {s.samples:,} samples of the 20-dof car in logs that are made and dropped: {s.seconds:.0f} s on one thread, of which "
            f"making the samples takes {s.making:.0f} s; the process had {s.before_megabytes:.0f} MB before and "
            f"{s.peak_megabytes:.0f} MB at its peak (load {s.load:.1f})."
        )
    if share is not None:
        s = share
        out.append(
            f"- Two one-thread Dask workers beside two threads, {s.samples:,} samples, {s.rounds} rounds in turn: {s.workers:.1f} s and "
            f"{s.threads:.1f} s, {100.0 * s.rate:.0f} % of the rate ({', '.join(f'{100.0 * r:.0f}' for r in s.rates)}), "
            f"{100.0 * s.cpu_rate:.0f} % by the processor; values differ from one thread's by {s.difference:.0e} of the largest "
            f"(load {s.load:.1f})."
        )
    return out


def printed() -> list[str]:
    """The lines of a process of its own, whose memory nothing else has used before."""
    command = [sys.executable, "-m", "benchmarks.cluster"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).resolve().parent.parent
    )
    if not done.stdout:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.splitlines()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster", description="Sharing out, and bounded memory."
    )
    parser.add_argument("--samples", type=int, default=SAMPLES, help="samples of the part on memory; 0 leaves it out")
    parser.add_argument(
        "--shared", type=int, default=SHARED_SAMPLES, help="samples of the part on workers; 0 leaves it out"
    )
    parser.add_argument("--piece", type=int, default=PIECE, help="samples of one log")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    given = parser.parse_args(arguments)
    stream = streamed(given.samples, given.piece) if given.samples else None
    share = shared(given.shared, given.piece, given.rounds) if given.shared else None
    if given.json:
        print(json.dumps({"streamed": stream and asdict(stream), "shared": share and asdict(share)}, indent=1))
    else:
        print("\n".join(lines(stream, share)))
    missed = share is not None and not (share.rate >= GOAL_RATE and share.difference <= GOAL_DIFFERENCE)
    return 1 if missed else 0


if __name__ == "__main__":
    from benchmarks.cluster import main as run  # under its own name, so that workers find what they are handed

    sys.exit(run())
