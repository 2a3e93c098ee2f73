"""Speed over commits: ``python -m benchmarks.history [COMMIT …] [--rounds 3]`` measures them side by side and keeps the result.

The sources of each commit are unpacked into a folder that is thrown away, and the same lines run with them, in turn, in processes of their
own: of each quantity the least processor time over the rounds counts. Only names that users have are called; what a commit does not have
yet is left out. Rows go to ``benchmarks/history.csv``, in place of those of the same commit, and the table of ``docs/speed.md`` is written
from all of them. Commits that were measured in one call can be compared with each other; to join a new one, measure the last one of the
table again beside it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from llvmlite import binding as llvm

HERE = Path(__file__).resolve().parent
KEPT = HERE / "history.csv"
PAGE = HERE.parent / "docs" / "speed.md"
START, END = "<!-- history -->", "<!-- /history -->"
FIELDS: tuple[str, ...] = ("commit", "date", "processor", "quantity", "ms")
WORK = """
import json, subprocess, sys, time
import numpy as np
import veridyn as vd

def least(call, repeat):
    call()
    spent = []
    for _ in range(repeat):
        begun = time.process_time(); call(); spent.append(time.process_time() - begun)
    return 1e3 * min(spent)

def started(command):
    import resource
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

robot, rng, t = vd.load_model("veridyn:arm.yaml"), np.random.default_rng(1), 0.005 * np.arange(4000)
q, qd, qdd = np.zeros((3, len(t), robot.n))
for j in range(robot.n):
    for a, w, p in zip(rng.uniform(0.2, 0.6, 3), 2 * np.pi * rng.uniform(0.2, 1.0, 3), rng.uniform(0, 6, 3)):
        q[:, j] += a * np.sin(w * t + p); qd[:, j] += a * w * np.cos(w * t + p); qdd[:, j] -= a * w * w * np.sin(w * t + p)
forces = vd.inverse_dynamics(robot, vd.Motion(t, q, qd, qdd)) + 0.05 * rng.standard_normal(q.shape)
motion = vd.Motion(t, q, qd, qdd, forces=forces)
ASKED = {
    "import veridyn, with the start of Python": lambda: started(["-c", "import veridyn"]),
    "inverse dynamics of a 6-joint arm, 4,000 samples": lambda: least(lambda: vd.inverse_dynamics(robot, motion), 15),
    "its regressor": lambda: least(lambda: vd.regressor(robot, motion), 9),
    "its base parameters by closed rules": lambda: least(lambda: vd.base_parameters(robot), 5),
    "identify it, no diagnosis": lambda: least(lambda: vd.identify(robot, motion, "wls", rows="all", diagnose="off"), 5),
    "identify it, as by default": lambda: least(lambda: vd.identify(robot, motion, "wls", rows="all"), 3),
    "veridyn model show veridyn:arm.yaml": lambda: started(["-m", "veridyn", "model", "show", "veridyn:arm.yaml"]),
}
found = {}
for name, ask in ASKED.items():
    try:
        found[name] = ask()
    except (AttributeError, TypeError, subprocess.CalledProcessError, vd.errors.VeridynError) as error:
        print(f"{name}: {error}", file=sys.stderr)
print(json.dumps(found))
"""
Row = dict[str, str]


def measure(commits: Sequence[str], rounds: int) -> list[Row]:
    """Rows of these commits, measured in turn."""
    processor = llvm.get_host_cpu_name()
    least: dict[str, dict[str, float]] = {commit: {} for commit in commits}
    with tempfile.TemporaryDirectory() as made:
        for commit in commits:
            git("archive", "--output", f"{made}/{commit}.tar", commit, "src")
            shutil.unpack_archive(f"{made}/{commit}.tar", f"{made}/{commit}", filter="data")
        for _ in range(rounds):
            for commit in commits:
                for name, ms in _asked(Path(made) / commit, Path(made) / f"cache-{commit}").items():
                    least[commit][name] = min(ms, least[commit].get(name, ms))
    return [
        {
            "commit": git("rev-parse", "--short=8", commit),
            "date": git("show", "-s", "--format=%cs", commit),
            "processor": processor,
            "quantity": name,
            "ms": f"{float(f'{ms:.3g}'):g}",
        }
        for commit, found in least.items()
        for name, ms in found.items()
    ]


def _asked(checkout: Path, cache: Path) -> dict[str, float]:
    own = {"PYTHONPATH": str(checkout / "src"), "VERIDYN_CACHE": str(cache)}
    own |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-W", "ignore", "-c", WORK]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, cwd=checkout, check=False)
    if done.returncode:
        raise SystemExit(f"{checkout.name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=HERE.parent, capture_output=True, text=True, check=True).stdout.strip()


def kept_rows() -> list[Row]:
    """What was measured before, in the order of the table: the oldest commit first."""
    if not KEPT.exists():
        return []
    with KEPT.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(rows: Iterable[Row]) -> str:
    """Quantities down, commits across, in milliseconds of processor time."""
    cells: dict[str, dict[str, str]] = {}
    heads: dict[str, str] = {}
    processors: dict[str, str] = {}
    for row in rows:
        heads[row["commit"]] = f"{row['date']}, `{row['commit']}`"
        processors[row["commit"]] = row["processor"]
        cells.setdefault(row["quantity"], {})[row["commit"]] = row["ms"]
    lines = [f"| ms of processor | {' | '.join(heads.values())} |", "|---|" + "---:|" * len(heads)]
    lines += [f"| {name} | {' | '.join(found.get(c, '–') for c in heads)} |" for name, found in cells.items()]
    return "\n".join([*lines, f"| processor | {' | '.join(processors.values())} |"])


def written(page: str, rows: Iterable[Row]) -> str:
    """The page with this table between its marks."""
    before, rest = page.split(START)
    return f"{before}{START}\n\n{table(rows)}\n\n{END}{rest.split(END)[1]}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Measure commits side by side, and keep the result.")
    parser.add_argument("commits", nargs="*", default=["HEAD"], help="the newest last")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(argv)
    new = measure([git("rev-parse", "--short=8", commit) for commit in given.commits], given.rounds)
    again = {row["commit"] for row in new}
    rows = [row for row in kept_rows() if row["commit"] not in again] + new
    with KEPT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
