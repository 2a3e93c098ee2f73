"""``python -m docs.claims --run [PAPER ...]``: the runs that the rows of results name, and their file.

Rows that name the same command share its runs. A run that the file has with all the figures that rows name is not made again, so that a
command that was stopped goes on where it was: the file is written after every run, in one piece, with all figures of each. Runs go
side by side, each on one processor, the longest first.

Options: ``--workers N`` (two), ``--out FILE`` (``docs/papers/claims.json``), ``--seeds N``: the first N seeds of each row alone,
``--again``: runs that the file has, too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock, Thread

from docs.claims_rules import RESULTS, ROOT, Claim, Done, Runs, claims, results, status

UNKNOWN_MINUTES = math.inf  # of a command that has never ended
LINES_OF_A_FAILURE = 8
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def plan(every: Sequence[Claim], first: int | None = None) -> dict[str, list[str]]:
    """Command with its seed → names of the figures (file#key) that rows read from it; the first seeds of all rows come first."""
    found: dict[str, list[str]] = {}
    most = max((len(claim.seeds) for claim in every), default=0)
    for k in range(most if first is None else min(most, first)):
        for claim in every:
            if k < len(claim.seeds):
                named = found.setdefault(claim.run(claim.seeds[k]), [])
                named += [f.name for f in claim.figures if f.name not in named]
    return found


def left(wanted: Mapping[str, Sequence[str]], have: Runs) -> list[str]:
    """Runs that are missing, or whose figures are, in the order of `wanted`."""
    return [
        run
        for run, names in wanted.items()
        if run not in have or any(name.partition("#")[2] not in have[run].figures for name in names)
    ]


def longest(waiting: Sequence[str], have: Runs) -> str:
    """The one to make next: that whose command took longest with another seed. One that has never ended may be longer still."""

    def minutes(run: str) -> float:
        same = [done.minutes for other, done in have.items() if _unseeded(other) == _unseeded(run)]
        return max(same, default=UNKNOWN_MINUTES)

    return max(waiting, key=minutes)  # the first of several


def _unseeded(run: str) -> str:
    return " ".join(word for word in run.split() if not word.isdigit())


def made(run: str, names: Sequence[str]) -> Done:
    """Make one run in a folder of its own, and read its figures; minutes are those of the processor."""
    with tempfile.TemporaryDirectory() as folder:
        words = shlex.split(run.replace("{out}", folder))
        words[0] = sys.executable if words[0] == "python" else str(Path(sys.executable).with_name(words[0]))
        begun = time.monotonic()
        ended = subprocess.run(
            words, cwd=ROOT, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False
        )
        minutes = (time.monotonic() - begun) / 60.0
        try:  # whatever its exit code: a study may miss a limit of its own
            return Done(round(minutes, 3), figures(Path(folder), names))
        except (StopIteration, KeyError) as error:
            missing = f"{run}: {type(error).__name__} {error}"
            raise RuntimeError("\n".join([missing, *ended.stderr.splitlines()[-LINES_OF_A_FAILURE:]])) from error


def figures(folder: Path, names: Sequence[str]) -> dict[str, float]:
    """All figures, to six digits, of the files of a run's folder that `names` (file#key) name; those named must be among them."""
    found: dict[str, float] = {}
    for file in sorted({name.partition("#")[0] for name in names}):
        path = next(iter(sorted(folder.rglob(file))))  # StopIteration: the run wrote none
        every = json.loads(path.read_text(encoding="utf-8"))["figures"]
        found |= {key: float(f"{value:.6g}") for key, value in every.items() if value is not None}
    return {name.partition("#")[2]: found[name.partition("#")[2]] for name in names} | found


def written(file: Path, runs: Runs) -> None:
    """Write the file in one piece, a run a line."""
    lines = [
        f"{json.dumps(run)}: {json.dumps({'minutes': done.minutes, 'figures': dict(sorted(done.figures.items()))})}"
        for run, done in sorted(runs.items())
    ]
    beside = file.with_suffix(".part")
    beside.write_text('{"runs": {\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    beside.replace(file)


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Make the runs; 1 where one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m docs.claims", description=__doc__)
    parser.add_argument("--run", nargs="*", required=True, metavar="PAPER")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args(arguments)
    every = claims()
    chosen = [claim for claim in every if not asked.run or claim.paper in asked.run]
    wanted, all_wanted = plan(chosen, asked.seeds), plan(every)
    have = dict(results()) | dict(results(asked.out))
    have = {run: done for run, done in have.items() if run in all_wanted}
    waiting = left(wanted, {} if asked.again else have)
    say(f"{len(wanted)} runs, {len(waiting)} to make, {asked.workers} side by side")
    failed = _make(waiting, wanted, have, asked.out, asked.workers)
    written(asked.out, have)
    for word in ("holds", "refuted", "partly", "open"):
        say(f"{sum(status(claim, have) == word for claim in chosen)} {word}")
    say(f"{len(waiting) - failed} runs made, {failed} failed; results: {asked.out}")
    return int(failed > 0)


def _make(
    waiting: Sequence[str], wanted: Mapping[str, Sequence[str]], have: dict[str, Done], file: Path, workers: int
) -> int:
    """Make runs side by side; how many failed."""
    queue, lock, failed = list(waiting), Lock(), 0

    def work() -> None:
        nonlocal failed
        while True:
            with lock:
                if not queue:
                    return
                run = longest(queue, have)
                queue.remove(run)
            try:
                done = made(run, wanted[run])
            except (RuntimeError, OSError) as error:
                with lock:
                    failed += 1
                    say(f"FAILED {type(error).__name__}: {error}")
                continue
            with lock:
                have[run] = done
                written(file, have)
                say(f"{len(queue)} to begin, {done.minutes:.2f} min  {run}")

    threads = [Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed
