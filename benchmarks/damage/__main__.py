"""Damaged logs with a score: ``python -m benchmarks.damage --logs 20 --seed 1``, on a simulated four-joint arm.

Where a damage has a size, the weakest is that which moves a parameter by 5 standard deviations, found by bisection; the others are 4 and
16 times as strong. A damage is *named* where the first of ``fit.findings``, or a cause that this one cannot be told from, has its cause
and its joint (where the fit has no findings: where a warning has one of the words that belong to it), *warned* of where there is anything
else, *silent* where a parameter moved by more than 3 deviations without a word, *harmless* where none did. A silent change is
*undetectable* in principle where the damage changes the equations by what the parameters explain, to within the noise: with δ the change
of the weighted equations and δ_⊥ its part beside the regressor, the likelihood ratio of a test that knew the kind of damage, and not the
joint, would see ‖δ_⊥‖ deviations, and find it in fewer than half of such logs at one false alarm in a hundred. Of a damage that is silent
all the same, it is said how often such a test finds it, one that knows the joint as well, and one that knows neither. `--level full` asks
what the command line asks; `--level cli` is ``veridyn identify`` but for its report, and its equations are filtered and decimated as
those of a study are.

``--foreign``  logs of machines of Pinocchio with gears, rotors, friction and coloured noise: structure that their models lack, new damage.
``--untold``   rotors, load friction, flexibility and warm-up of every joint: runs that are wrong and do not say why.
``--wrist``    a six-axis arm with a coupled wrist whose file has a gear, or the coupling, wrong.
``--clean N``  false alarms on N undamaged logs, of the simulated arm or, with ``--foreign``, of Pinocchio's machines; nothing else is run
               unless ``--logs`` is given. With ``--motions minimum-jerk,dwells`` (or all) machines move so, a seven-joint arm among
               them, and alarms and delays are counted by motion.
``--json``     every log as a line of JSON when it is done, in place of tables; kinds may be shared out over several runs.
``--summary``  tables of such lines in files, also of runs that were stopped.
``--cost``     what the default diagnosis adds to a fit, on logs of a Panda and a UR10e in the folder that VERIDYN_DATA names.
``--real``     damages logs of measured robots in that folder in the same ways. What the undamaged log is warned of is listed first, and a
               warning of a damaged log counts where it is not among these. For the log without noise stands that with the forces of its
               fit, and all that the fit leaves counts as noise.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

TESTS = str(Path(__file__).parents[2] / "tests")
if TESTS not in sys.path:
    sys.path.insert(0, TESTS)

from benchmarks.damage.cost import costs
from benchmarks.damage.cost import line as cost_line
from benchmarks.damage.foreign import FOREIGN_KINDS, TABLES, WRIST_KINDS
from benchmarks.damage.kinds import DAMAGES
from benchmarks.damage.real import ROBOTS
from benchmarks.damage.run import (
    STRENGTHS,
    Job,
    Line,
    Source,
    as_json,
    by_kind,
    clean,
    clean_jobs,
    lines_of,
    print_clean,
    print_summary,
    print_table,
    print_untold,
    untold_run,
)
from benchmarks.damage.untold import CASES
from benchmarks.foreign.motions import MOTIONS, motions_named
from benchmarks.shared_out import shared_out

FOREIGN_STRENGTHS = (1.0, 4.0)
DEFAULT_LOGS = 3


def parser() -> argparse.ArgumentParser:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.damage")
    modes = asked.add_mutually_exclusive_group()
    modes.add_argument("--foreign", action="store_true", help="logs of machines of Pinocchio")
    modes.add_argument("--untold", action="store_true", help="structure of every joint that the model lacks")
    modes.add_argument("--wrist", action="store_true", help="a coupled wrist whose file is wrong")
    modes.add_argument("--cost", action="store_true", help="what the default diagnosis adds to a fit")
    modes.add_argument("--real", nargs="*", choices=tuple(ROBOTS), help="measured robots; all where none is named")
    modes.add_argument("--summary", nargs="+", metavar="FILE", help="tables of what --json has written")
    asked.add_argument("--logs", type=int, help=f"logs of each kind, or runs of each case; {DEFAULT_LOGS} if left out")
    asked.add_argument("--clean", type=int, default=0, help="undamaged logs")
    asked.add_argument(
        "--motions", help=f"of undamaged foreign logs: {', '.join(MOTIONS)}, separated by commas; or all"
    )
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--level", choices=("fast", "full", "cli"), default="fast")
    asked.add_argument(
        "--kind", "--kinds", "--only", nargs="*", default=[], help="names of damages, structures or cases"
    )
    asked.add_argument("--strengths", type=float, nargs="*", help="multiples of the weakest size")
    asked.add_argument("--workers", type=int, default=1, help="processes")
    asked.add_argument("--json", action="store_true", help="every log as a line of JSON in place of tables")
    return asked


def kinds_of(given: argparse.Namespace) -> tuple[str, ...]:
    """The kinds that are asked for, refused by name where one is unknown."""
    usual: tuple[str, ...] = tuple(d.name for d in DAMAGES)
    known = usual
    if given.untold:
        usual = known = tuple(CASES)
    elif given.wrist:
        usual = known = WRIST_KINDS
    elif given.foreign:
        usual, known = FOREIGN_KINDS, tuple(dict.fromkeys((*FOREIGN_KINDS, *TABLES)))
    unknown = [name for name in given.kind if name not in known]
    if unknown:
        raise SystemExit(f"no such kind: {', '.join(unknown)}. Known: {', '.join(known)}")
    return tuple(given.kind) or usual


def motions_of(given: argparse.Namespace) -> tuple[str, ...]:
    """The motions that are asked for, refused by name where one is unknown."""
    if not (given.foreign and given.clean):
        raise SystemExit("--motions is of undamaged logs of Pinocchio's machines: --foreign --clean N")
    try:
        return motions_named(given.motions)
    except ValueError as error:
        raise SystemExit(str(error)) from None


def main(arguments: Sequence[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    if given.summary:
        print_summary([line for name in given.summary for line in Path(name).read_text(encoding="utf-8").splitlines()])
        return
    if not given.json:
        measured(given, lambda _table, _record: None)
        return
    out = sys.stdout

    def each(table: str, record: Any) -> None:
        print(json.dumps({table: as_json(record)}, allow_nan=False), file=out, flush=True)

    with redirect_stdout(StringIO()):
        measured(given, each)


def measured(given: argparse.Namespace, each: Callable[[str, Any], None]) -> None:
    """Measure and print what is asked for; `each` is given the name of a table and every record of it as it comes."""
    if given.cost:
        for c in costs():
            print(cost_line(c), flush=True)
            each("cost", asdict(c) | {"limit": c.limit, "within": c.within})
        return
    if given.real is not None:
        for name in given.real or ROBOTS:
            real(name, given, each)
        return
    logs = given.logs if given.logs is not None else 0 if given.clean else DEFAULT_LOGS
    seeds = range(given.seed, given.seed + logs)
    if given.untold:
        jobs = [Job("foreign", name, seed, given.level) for name in kinds_of(given) for seed in seeds]
        runs = []
        for r in shared_out(untold_run, jobs, given.workers):
            runs.append(r)
            each("untold", asdict(r))
        print_untold(runs)
        return
    source: Source = "foreign" if given.foreign or given.wrist else "simulated"
    usual = FOREIGN_STRENGTHS if source == "foreign" else STRENGTHS
    strengths, kinds = tuple(given.strengths or usual), kinds_of(given)
    jobs = [Job(source, kind, seed, given.level, strengths) for kind in kinds for seed in seeds]
    if jobs:
        groups = by_kind(jobs, given.workers, lambda line: each("damaged", asdict(line)))
        print_table(groups, max(map(len, kinds)) + 1, blame=source == "foreign")
    if given.clean:
        first = 1000 * given.seed
        jobs = [Job(source, "clean", seed, given.level) for seed in range(first, first + given.clean)]
        if given.motions:
            jobs = clean_jobs(given.clean, first, given.level, motions_of(given))
        found = []
        for c in shared_out(clean, jobs, given.workers):
            found.append(c)
            each("clean", asdict(c))
        print_clean(found)


def real(name: str, given: argparse.Namespace, each: Callable[[str, Any], None]) -> None:
    """The table of one measured robot."""
    bench = ROBOTS[name](given.seed)
    said = bench.good(given.level).said
    print(f"{name}: {len(said)} warnings on the undamaged log")
    print("".join(f"    {text.replace(chr(10), ' ')}\n" for text in said), end="", flush=True)
    each("undamaged", {"robot": name, "said": list(said)})
    kinds = kinds_of(given)

    def groups() -> Iterator[tuple[str, list[Line]]]:
        for d in (d for d in DAMAGES if d.name in kinds):
            lines = lines_of(bench, d, given.level, tuple(given.strengths or STRENGTHS))
            for line in lines:
                each("damaged", asdict(line))
            yield d.name, lines

    print_table(groups(), max(map(len, kinds)) + 1)


if __name__ == "__main__":
    main()
