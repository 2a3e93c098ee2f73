"""``python -m tests.fuzz --cases 20000 --seed 1``: many damaged files, a table, and failures kept for replay.

Cases run in worker processes, so that one that crashes or cannot be interrupted is counted, and the others go on.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fuzz.runner import DEFECTS, Case, Done, drawn, keep, run, table

CHUNK = 50
MOST_BYTES = 8 << 30


def limited() -> None:
    """At most 8 GB for a worker."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def chunks(cases: Iterator[Case]) -> Iterator[list[Case]]:
    while part := list(islice(cases, CHUNK)):
        yield part


def run_all(cases: list[Case]) -> list[Done]:
    return [run(case) for case in cases]


def survived(cases: list[Case]) -> list[Done]:
    """One by one, each in a process of its own: after a crash, to find whose it was."""
    out = []
    for case in cases:
        try:
            with ProcessPoolExecutor(1, initializer=limited) as pool:
                out += pool.submit(run_all, [case]).result()
        except BrokenProcessPool:
            out.append(Done(case, "crash"))
    return out


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz")
    asked.add_argument("--cases", type=int, default=20000)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--workers", type=int, default=2)
    asked.add_argument("--only", nargs="*", default=[], help="names of subjects")
    asked.add_argument("--keep", type=Path, default=Path("runs/fuzz"), help="where failures are kept")
    asked.add_argument("--replay", type=Path, help="a case.json")
    given = asked.parse_args()
    if given.replay:
        case = json.loads(given.replay.read_text())
        done = run(Case(case["subject"], case["mutation"], case["number"], case["seed"]))
        print(done.outcome, done.said)
        return int(done.outcome in DEFECTS)
    found: list[Done] = []
    parts = list(chunks(drawn(given.cases, given.seed, given.only)))
    pool = ProcessPoolExecutor(given.workers, initializer=limited)
    waiting = [(part, pool.submit(run_all, part)) for part in parts]
    for part, future in waiting:
        try:
            found += future.result()
        except BrokenProcessPool:
            found += survived(part)
    pool.shutdown()
    for done in found:
        if done.outcome in (*DEFECTS, "silent"):
            keep(done, given.keep)
    print(table(found))
    return int(any(d.outcome in DEFECTS for d in found))


if __name__ == "__main__":
    sys.exit(main())
