"""``python -m benchmarks.csv_memory``: the memory that a long table takes, whole and a window at a time.

A CSV of ten million rows of seven columns, a clock and six numbers, is written to a temporary folder (``--rows`` for fewer; some 70 bytes a
row) and read by processes of their own: by :func:`veridyn.load_log`, within 1 GB, and in windows of 10⁵ rows, whose memory does not grow
with the table. Printed is the peak of each process's memory, the interpreter and its libraries included.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS, COLUMNS, BLOCK = 10_000_000, 7, 100_000
LIMIT_GB = 1.0
UNITS = {"t": "s"} | {f"x{k}": "m" for k in range(1, COLUMNS)}


def write(file: Path, rows: int) -> None:
    """A clock of 1 kHz and six noisy columns, drawn once for each block."""
    rng = np.random.default_rng(1)
    some = rng.normal(size=(BLOCK, COLUMNS - 1))
    tails = [",".join(f"{x:.8f}" for x in row) for row in some]
    with file.open("w", encoding="utf-8") as out:
        out.write(",".join(UNITS) + "\n")
        for first in range(0, rows, BLOCK):
            ends = tails[: min(BLOCK, rows - first)]
            out.writelines(f"{(first + k) / 1000:.3f},{tail}\n" for k, tail in enumerate(ends))


def read_whole(file: Path) -> float:
    """The sum of a column, by all of it."""
    import veridyn as vd

    columns = {name: name for name in UNITS if name != "t"}
    return float(vd.load_log(file, columns, UNITS, time="t")["x1"].values.sum())


def read_windows(file: Path) -> float:
    """The same, by windows."""
    from veridyn.files.log.parts import open_log

    columns = {name: name for name in UNITS if name != "t"}
    table = open_log(file, columns, UNITS, "t")
    return sum(float(w.log["x1"].values.sum()) for w in table.windows(BLOCK, 0))


WAYS = {"whole": read_whole, "windows": read_windows}


def measured(way: str, file: Path) -> tuple[float, float, float]:
    """The sum, seconds and the peak of memory (GB) of a process that reads a file."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.csv_memory", "--way", way, "--file", str(file)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).resolve().parent.parent
    )
    total, seconds, peak = (float(x) for x in done.stdout.split())
    return total, seconds, peak


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.csv_memory")
    asked.add_argument("--rows", type=int, default=ROWS)
    asked.add_argument("--way", choices=tuple(WAYS), help=argparse.SUPPRESS)
    asked.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.way is not None:
        begin = time.perf_counter()
        total = WAYS[given.way](given.file)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        print(repr(total), time.perf_counter() - begin, peak)
        return 0
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "table.csv"
        write(file, given.rows)
        print(f"CSV of {given.rows:.0e} rows x {COLUMNS} columns, {file.stat().st_size / 1e9:.2f} GB on disk")
        sums, peaks = [], {}
        for way in WAYS:
            total, seconds, peaks[way] = measured(way, file)
            sums.append(total)
            print(f"{way:8} {peaks[way]:.2f} GB at the peak, {seconds:.1f} s", flush=True)
    if not np.isclose(*sums, rtol=1e-9):
        print(f"the sums differ: {sums}")
        return 1
    kept = peaks["whole"] <= LIMIT_GB
    print(f"whole: {'within' if kept else 'above'} {LIMIT_GB:g} GB")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
