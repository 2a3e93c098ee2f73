"""``python -m benchmarks.calibration``: whether stated standard deviations hold, over machines and logs drawn anew for every run.

Each run draws its own machine, its motion and its noise, identifies it, and takes z = (estimate − truth)/σ of every base parameter. Of a
case with R runs:

    inside_one_sigma, inside_two_sigma   share of all z within ±1 and ±2 (normal errors: .683 and .954)
    mean_z2                              mean of z² (1)
    largest_bias                         largest |mean z| of a parameter (chance alone: about 3/√R), and which one: most_biased
    share_unbiased                       share of the parameters with |mean z| at most .7
    sigma_over_spread                    median over parameters of median σ over the rms error of the estimates (1)
    joint                                mean of eᵀ C⁻¹ e per parameter, e the errors of a run and C their covariance (1): ``--foreign``
    friction, friction_inside_…          how many of the numbers are viscous or dry friction, and their shares within ±1 and ±2

The first cases are estimators under their own assumptions: the noise that each is made for, on machines that are what the model says. The
full form has 200 runs; ``--quick`` has 24 and says so. ``--demos``: the demonstrations, 40 runs. ``--foreign``: machines of Pinocchio and
MuJoCo with coloured noise, default deviations, 60 runs (:mod:`benchmarks.calibration_foreign`); ``--motions minimum-jerk,dwells`` (or all)
moves them from point to point, and prints friction by motion. ``--foreign --observers``: bands of
observers on such machines, 20 runs (:mod:`benchmarks.calibration_observers`). ``--pairs``: two logs of one real machine
(:mod:`benchmarks.calibration_pairs`). Numbers of the full form stand in docs/calibration.md.

``--workers N`` shares the runs out to so many processes, ``--dask ADDRESS`` to a cluster whose workers were started in this folder; each
run has a generator of its own, so the numbers stay the same. ``--keep FILE`` writes each run to a line of a file and takes from it those
of the same case and seed that are there already: what takes hours can be stopped and taken up again.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibration_cases import CASES, Outcome
from benchmarks.foreign.motions import FOURIER, MOTIONS, motions_named
from benchmarks.repeated import repeated
from veridyn.errors import IdentificationError
from veridyn.progress import Progress, silent

Array = NDArray[np.float64]
QUICK_RUNS = 24
VARIANCE = {  # of one normal z
    "inside_one_sigma": 0.683 * 0.317,
    "inside_two_sigma": 0.954 * 0.046,
    "mean_z2": 2.0,
    "joint": 2.0,
}
SMALL_BIAS, LARGEST_BIAS, LEAST_UNBIASED = (
    0.7,
    1.1,
    0.95,
)  # |mean z| of a demonstration's parameters, and the share below the first
LARGEST_INFLATION = 1.3  # of the median σ over the spread of the estimates
MOST_FAILED = 0.02  # of the runs that may end with a named error instead of a fit
FRICTION = re.compile(r"(fs|h)[_\d]")  # names of dry and viscous friction
WIDENING = 4.0  # standard errors that a shorter form is allowed beyond the bands


@dataclass(frozen=True)
class Form:
    """How many runs a case has in full, and the `bands` of its means; `unbiased`: whether the bias of each parameter has a bound."""

    runs: int
    bands: Mapping[str, tuple[float, float]]
    unbiased: bool = False

    def slack(self, runs: int) -> float:
        """Standard errors by which so many runs may miss the bands."""
        return WIDENING if runs < self.runs else 0.0


OWN = Form(200, {"inside_one_sigma": (0.64, 0.72), "inside_two_sigma": (0.93, 0.97), "mean_z2": (0.8, 1.25)})
DEMO = Form(
    40, {"inside_one_sigma": (0.60, 0.76), "inside_two_sigma": (0.91, 0.98), "mean_z2": (0.7, 1.4)}, unbiased=True
)
FOREIGN_FORM = Form(
    60,
    {
        "inside_one_sigma": (0.60, 0.76),
        "inside_two_sigma": (0.90, 0.98),
        "mean_z2": (0.0, 1.5),
        "joint": (0.0, 2.0),
    },
)


@dataclass(frozen=True)
class Calibration:
    """What one case showed over `runs` runs of `parameters` base parameters; `within`: whether it keeps the bands.

    `unstated`: the share of parameters for which no deviation is stated; `failed`: runs that ended with a named error. `joint` is None in
    cases that do not test it.
    """

    case: str
    runs: int
    parameters: int
    inside_one_sigma: float
    inside_two_sigma: float
    mean_z2: float
    largest_bias: float
    most_biased: str
    share_unbiased: float
    sigma_over_spread: float
    joint: float | None
    unstated: float
    failed: int
    seconds: float
    within: bool
    friction: int = 0
    friction_inside_one_sigma: float = float("nan")
    friction_inside_two_sigma: float = float("nan")


Run = Callable[[np.random.Generator], Outcome]


def calibrate(
    name: str,
    run: Run,
    runs: int,
    seed: int,
    form: Form = OWN,
    executor: Executor | None = None,
    keep: Path | None = None,
    progress: Progress = silent,
) -> Calibration:
    """One case: `runs` runs, each with a generator of its own from `seed`, in the bands of `form`."""
    begin = time.perf_counter()
    every = outcomes(name, run, runs, seed, executor, keep, progress)
    found = [one for one in every if not isinstance(one, str)]
    failed = len(every) - len(found)
    names, errors, sigma = _aligned(found)
    z = errors / sigma
    z2 = np.nanmean(z**2, axis=1)  # parameters of one run share its noise: runs are independent, parameters are not
    one, two = (np.nanmean(np.where(np.isfinite(z), np.abs(z) <= k, np.nan), axis=1) for k in (1.0, 2.0))
    joint = np.array([o.joint for o in found])
    own = z[:, [bool(FRICTION.match(name)) for name in names]]
    friction = np.abs(own[np.isfinite(own)])
    measured = {"inside_one_sigma": one, "inside_two_sigma": two, "mean_z2": z2, "joint": joint}
    with np.errstate(invalid="ignore"):
        spread = np.sqrt(np.nanmean(np.where(np.isfinite(sigma), errors, np.nan) ** 2, axis=0))
        ratio = float(np.nanmedian(np.nanmedian(sigma, axis=0) / spread))
    bias = np.abs(np.nanmean(z, axis=0))
    chance = form.slack(runs) / np.sqrt(runs)
    unbiased = float(np.mean(bias <= SMALL_BIAS + chance)) >= LEAST_UNBIASED and bool(
        (bias <= LARGEST_BIAS + chance).all()
    )
    return Calibration(
        case=name,
        runs=runs,
        parameters=errors.shape[1],
        inside_one_sigma=float(one.mean()),
        inside_two_sigma=float(two.mean()),
        mean_z2=float(z2.mean()),
        largest_bias=float(bias.max()),
        most_biased=names[int(bias.argmax())],
        share_unbiased=float(np.mean(bias <= SMALL_BIAS)),
        sigma_over_spread=ratio,
        joint=None if np.isnan(joint).all() else float(joint.mean()),
        unstated=float(np.mean(~np.isfinite(sigma))),
        failed=failed,
        seconds=time.perf_counter() - begin,
        within=_within(measured, runs, errors.shape[1], form)
        and ratio <= LARGEST_INFLATION * (1.0 + form.slack(runs) / np.sqrt(2.0 * runs))  # standard error of the spread
        and (unbiased or not form.unbiased)
        and failed <= MOST_FAILED * runs,
        friction=friction.size,
        friction_inside_one_sigma=float(np.mean(friction <= 1.0)) if friction.size else float("nan"),
        friction_inside_two_sigma=float(np.mean(friction <= 2.0)) if friction.size else float("nan"),
    )


def outcomes(
    name: str,
    run: Run,
    runs: int,
    seed: int,
    executor: Executor | None = None,
    keep: Path | None = None,
    progress: Progress = silent,
) -> list[Outcome | str]:
    """What came of every run, in order: read from the file `keep` where it stands there, else run now and written to it."""
    done = {} if keep is None else kept(keep, name, seed)
    missing = [k for k in range(runs) if k not in done]
    rng = np.random.default_rng(seed)
    found = repeated(partial(_attempted, run), runs, rng, executor=executor, only=missing, progress=progress, task=name)
    for k, one in zip(missing, found, strict=True):
        if isinstance(one, str):
            print(f"{name}: {one}", file=sys.stderr, flush=True)
        if keep is not None:
            _append(keep, name, seed, k, one)
        done[k] = one
    return [done[k] for k in range(runs)]


def kept(file: Path, name: str, seed: int) -> dict[int, Outcome | str]:
    """Number → outcome of the runs of a case and seed that a file holds; a line that was cut short counts for nothing."""
    done: dict[int, Outcome | str] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if (one["case"], one["seed"]) != (name, seed):
            continue
        if "failed" in one:
            done[one["run"]] = one["failed"]
            continue
        errors, sigma = (np.array(one[part], dtype=np.float64) for part in ("errors", "sigma"))
        done[one["run"]] = Outcome(errors, sigma, tuple(one["names"]), one.get("joint", float("nan")))
    return done


def _append(file: Path, name: str, seed: int, k: int, one: Outcome | str) -> None:
    """A line begins where the one before it ends, or was cut short."""
    what: dict[str, object] = {"failed": one}
    if not isinstance(one, str):
        what = {
            "names": list(one.names),
            "errors": one.errors.tolist(),
            "sigma": one.sigma.tolist(),
            "joint": one.joint,
        }
    with file.open("a", encoding="utf-8") as out:
        out.write("\n" + json.dumps({"case": name, "seed": seed, "run": k, **what}))


def _attempted(run: Run, rng: np.random.Generator) -> Outcome | str:
    """What came of one run; an iteration that does not converge says so, and is counted, not replaced."""
    try:
        return run(rng)
    except IdentificationError as error:
        return error.faults[0].what


def _aligned(found: list[Outcome]) -> tuple[list[str], Array, Array]:
    """Names, errors and deviations (runs, parameters), NaN where a run has no such parameter."""
    if not found[0].names:
        numbers = [str(k) for k in range(len(found[0].errors))]
        return numbers, np.array([o.errors for o in found]), np.array([o.sigma for o in found])
    names = list(dict.fromkeys(name for o in found for name in o.names))
    errors, sigma = np.full((2, len(found), len(names)), np.nan)
    for k, o in enumerate(found):
        at = [names.index(name) for name in o.names]
        errors[k, at], sigma[k, at] = o.errors, o.sigma
    return names, errors, sigma


def _within(measured: Mapping[str, Array], runs: int, parameters: int, form: Form) -> bool:
    """Whether the means keep their bands, which a form with fewer runs than the full one may miss by four standard errors.

    Parameters of one run share its noise, so a run scatters at least as much as that many independent normal errors would.
    """
    for name, (low, high) in form.bands.items():
        values = measured[name]
        with np.errstate(
            invalid="ignore"
        ):  # one run without a joint square makes the mean infinite, which no slack allows
            one = max(float(np.sqrt(VARIANCE[name] / parameters)), float(values.std(ddof=1)))
        slack = form.slack(runs) * one / np.sqrt(runs)
        if not low - slack <= float(values.mean()) <= high + slack:
            return False
    return True


def table(found: list[Calibration]) -> list[str]:
    """The results as a table of Markdown; the joint square where it was measured."""
    joint = any(c.joint is not None for c in found)
    lines = [
        "| case | runs | parameters | inside 1σ | inside 2σ | mean z² | largest bias | unbiased | σ over spread |"
        f"{' joint |' if joint else ''} within the bands |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|" + ("---:|" if joint else "") + "---|",
    ]
    lines += [
        f"| {c.case} | {c.runs} | {c.parameters} | {c.inside_one_sigma:.3f} | {c.inside_two_sigma:.3f} | {c.mean_z2:.2f} | "
        f"{c.largest_bias:.2f} ({c.most_biased}) | {c.share_unbiased:.2f} | {c.sigma_over_spread:.2f} | "
        f"{f'{c.joint:.2f} | ' if joint else ''}{'yes' if c.within else 'no'} |"
        for c in found
    ]
    return lines


def friction_lines(found: Sequence[Calibration], motions: Sequence[str]) -> Iterator[str]:
    """Friction of all cases of each motion together."""
    for motion in motions:
        own = [
            c for c in found if c.friction and next((m for m in MOTIONS if m in c.case.split(", ")), FOURIER) == motion
        ]
        total = sum(c.friction for c in own)
        if total:
            one, two = (
                sum(c.friction * getattr(c, f"friction_inside_{k}_sigma") for c in own) / total for k in ("one", "two")
            )
            yield f"{motion}: friction {one:.3f} inside 1σ and {two:.3f} inside 2σ of {total} numbers"


class TimeLeft:
    """Progress over `cases` cases on standard error: one line that is written over on a terminal, else a line now and then."""

    def __init__(self, cases: int) -> None:
        self.cases, self.done = cases, 0
        self.begin = self.last = time.perf_counter()

    def __call__(self, task: str, done: float, total: float | None) -> None:
        share = (self.done + done / (total or 1.0)) / self.cases
        now, shown = time.perf_counter(), sys.stderr.isatty()
        if share <= 0.0 or now - self.last < (0.5 if shown else 30.0):
            return
        self.last = now
        left = (now - self.begin) * (1.0 / share - 1.0)
        text = f"{task}: {done:.0f} of {total or 0:.0f} runs; {100 * share:.0f} % of all, {left / 60:.0f} min left"
        print(f"\r\033[K{text}" if shown else text, end="" if shown else "\n", file=sys.stderr, flush=True)

    def end_case(self, line: str) -> None:
        """A case is done: its line stays."""
        self.done += 1
        print(f"\r\033[K{line}" if sys.stderr.isatty() else line, file=sys.stderr, flush=True)


@contextmanager
def shared_by(workers: int, address: str) -> Iterator[Executor | None]:
    """The executor that the command line names."""
    if address:
        from veridyn.studies.run.estimation import dask_executor

        with dask_executor(address) as cluster:
            yield cluster
    elif workers > 1:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield pool
    else:
        yield None


def cases_named(word: str, cases: Iterable[str]) -> list[str]:
    """The case of this name; else those with the name as one of their parts: "AR .9" is "AR .9, ols", "AR .9, wls" and so on."""
    return [name for name in cases if name == word] or [name for name in cases if word in name.split(", ")]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibration", description="Whether stated deviations hold."
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs a case instead of all")
    parser.add_argument("--runs", type=int, help="another number of runs a case")
    parser.add_argument("--seed", type=int, help="of the first run; 0, with --observers 2028")
    parser.add_argument(
        "--case", action="append", help="this case only, or all with this part of a name; may be repeated"
    )
    subjects = parser.add_mutually_exclusive_group()
    subjects.add_argument("--demos", action="store_true", help=f"the demonstrations, {DEMO.runs} runs each")
    subjects.add_argument(
        "--foreign", action="store_true", help=f"truth by Pinocchio and MuJoCo, {FOREIGN_FORM.runs} runs a case"
    )
    parser.add_argument("--motions", help=f"with --foreign: of {', '.join(MOTIONS)}, separated by commas; or all")
    parser.add_argument("--observers", action="store_true", help="with --foreign: bands of observers, 20 runs a case")
    subjects.add_argument("--pairs", action="store_true", help="two logs of one real machine against each other")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--workers", type=int, default=1, help="processes that share in the runs")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="write each run to this file, and take from it what it holds"
    )
    parser.add_argument("--dask", default="", metavar="ADDRESS", help="a cluster that shares in the runs")
    given = parser.parse_args(arguments)
    if given.observers:
        return _observers(parser, given)
    given.seed = given.seed or 0
    try:
        motions = motions_named(given.motions or FOURIER)
    except ValueError as error:
        parser.error(str(error))
    if given.motions and not given.foreign:
        parser.error("--motions needs --foreign: other cases have motions of their own")
    cases, form = CASES, OWN
    if given.pairs:
        from benchmarks.calibration_pairs import report

        return report(given.case or (), given.json)
    if given.demos:
        from benchmarks.calibration_demos import DEMOS

        cases, form = DEMOS, DEMO
    if given.foreign:
        from benchmarks.calibration_foreign import cases_of

        cases, form = cases_of(motions), FOREIGN_FORM
    runs = given.runs or (min(QUICK_RUNS, form.runs) if given.quick else form.runs)
    names = _chosen(parser, given.case or (), cases)
    found, meter = [], TimeLeft(len(names))
    with shared_by(given.workers, given.dask) as executor:
        for name in names:
            found.append(calibrate(name, cases[name], runs, given.seed, form, executor, given.keep, meter))
            meter.end_case(f"{table(found)[-1]} {found[-1].seconds:.0f} s")
    if given.json:
        content = {"seed": given.seed, "quick": runs < form.runs, "cases": [asdict(c) for c in found]}
        print(json.dumps(content, indent=1))
    else:
        print("\n".join([*table(found), *(friction_lines(found, motions) if given.motions else ())]))
    return 0 if all(c.within for c in found) else 1


def _chosen(parser: argparse.ArgumentParser, words: Iterable[str], cases: Iterable[str]) -> list[str]:
    """The cases that the command line names, all where it names none."""
    asked = {word: cases_named(word, cases) for word in words}
    unknown = [word for word, names in asked.items() if not names]
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}; there are: {'; '.join(cases)}")
    return list(dict.fromkeys(name for chosen in asked.values() for name in chosen)) or list(cases)


def _observers(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Bands of observers in place of deviations of parameters."""
    from benchmarks import calibration_observers as observers

    if not given.foreign:
        parser.error("--observers needs --foreign: the truth of their cases is made by other programs")
    if given.dask or given.workers != 1:
        parser.error("--dask and --workers are not available with --observers")
    runs = given.runs or (observers.QUICK_RUNS if given.quick else observers.FULL_RUNS)
    seed = observers.SEED if given.seed is None else given.seed
    return observers.report(_chosen(parser, given.case or (), observers.CASES), runs, seed, given.json, given.keep)


if __name__ == "__main__":
    sys.exit(main())
