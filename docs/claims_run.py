"""``python -m docs.claims --run [PAPER ...]``: the runs that the rows of results name, and their file.

Rows that name the same command share its runs. A run that the file has with all the figures that rows name is not made again, so that a
command that was stopped goes on where it was: the file is written after every run, in one piece. Runs go side by side, each on one
processor, the longest first.

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
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from docs.claims_rules import RESULTS, ROOT, Claim, Done, Runs, claims, results, status

UNKNOWN_MINUTES = math.inf  # of a command that was never run: it goes first
LINES_OF_A_FAILURE = 8
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def plan(every: Sequence[Claim], first: int | None = None) -> dict[str, list[str]]:
    """Command with its seed → names of the figures (file#key) that rows read from it; of the `first` seeds of each row."""
    found: dict[str, list[str]] = {}
    for claim in every:
        for seed in claim.seeds[:first]:
            named = found.setdefault(claim.run(seed), [])
            named += [f.name for f in claim.figures if f.name not in named]
    return found


def left(wanted: Mapping[str, Sequence[str]], have: Runs) -> list[str]:
    """Runs that are missing, or whose figures are, the longest first, by what other seeds of the same command took."""

    def complete(run: str) -> bool:
        return run in have and all(name.partition("#")[2] in have[run].figures for name in wanted[run])

    def longest(run: str) -> float:
        same = [done.minutes for other, done in have.items() if _unseeded(other) == _unseeded(run)]
        return max(same, default=UNKNOWN_MINUTES)

    return sorted((run for run in wanted if not complete(run)), key=lambda run: (-longest(run), run))


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
            return Done(round(minutes, 3), dict([figure(Path(folder), name) for name in names]))
        except (StopIteration, KeyError) as error:
            missing = f"{run}: {type(error).__name__} {error}"
            raise RuntimeError("\n".join([missing, *ended.stderr.splitlines()[-LINES_OF_A_FAILURE:]])) from error


def figure(folder: Path, name: str) -> tuple[str, float]:
    """A figure (file#key) of a run's folder."""
    file, _, key = name.partition("#")
    path = next(iter(sorted(folder.rglob(file))))  # StopIteration: the run wrote none
    return key, float(f"{json.loads(path.read_text(encoding='utf-8'))['figures'][key]:.6g}")


def written(file: Path, runs: Runs) -> None:
    """Write the file in one piece."""
    content = {"runs": {run: {"minutes": d.minutes, "figures": dict(d.figures)} for run, d in sorted(runs.items())}}
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
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
    failed = 0
    with ThreadPoolExecutor(workers) as pool:
        running = {pool.submit(made, run, wanted[run]): run for run in waiting}
        for number, ended in enumerate(as_completed(running), 1):
            run = running[ended]
            try:
                have[run] = ended.result()
            except (RuntimeError, OSError) as error:
                failed += 1
                say(f"{number} of {len(waiting)}: FAILED {type(error).__name__}: {error}")
                continue
            written(file, have)
            say(f"{number} of {len(waiting)}: {have[run].minutes:.2f} min  {run}")
    return failed
