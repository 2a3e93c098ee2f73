"""Damaged logs with a score: ``python -m benchmarks.damage --logs 20 --seed 1``.

Twenty kinds of damage at three strengths on logs of a simulated four-joint arm. Where a damage has a size, the weakest is that which
moves a parameter by 5 standard deviations, found by bisection; the others are 4 and 16 times as strong. A damage is *named* where a
warning has one of the words that belong to it, *warned* of where there is any other warning, *silent* where a parameter moved by more
than 3 deviations without one, *harmless* where none did. A silent change is *undetectable* in principle where the damage changes the
equations by what the parameters explain, to within the noise: with δ the change of the weighted equations and δ_⊥ its part beside the
regressor, a test that knew the shape of the damage would see ‖δ_⊥‖ deviations, and find it in fewer than half of such logs at one false
alarm in a hundred. Of a damage that is silent all the same, it is said how often a test would find it that does not know which of all
kinds and joints to look for. False alarms are warnings on logs that are not damaged. `--level full` asks what the command line asks;
`--level cli` is ``veridyn identify`` but for its report, and its equations are filtered and decimated as those of a study are. The last
line is what a fit of a clean log and its fast diagnosis take, in one thread.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import veridyn as vd
from identify.smooth_arm import NOISE, drawn, path, truth
from studies.bench_robot import table
from veridyn.identify.diagnosis.fit_check import Diagnose
from veridyn.identify.diagnosis.score_test import Projected, best_power
from veridyn.identify.diagnosis.signature_samples import Samples, samples_of
from veridyn.identify.sampling import Sampling
from veridyn.progress import silent
from veridyn.studies.config.identify import IdentifyFile
from veridyn.studies.config.study import Loaded, load_study
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.masks import plain
from veridyn.studies.run.preparing import Preparing
from veridyn.studies.run.recordings import Recordings

RATE, SECONDS = 200.0, 15.0
HOW = Sampling(dead_zone={f"q{k}": 0.05 for k in range(1, 5)})
WEAKEST, SILENT = 5.0, 3.0
FALSE_ALARMS, HALF = 0.01, 0.5  # of the test that knows a damage's shape, and the power below which it finds nothing
SHAPES = 80  # twenty kinds of damage at four joints
COSTS = 41  # repetitions of which the median counts
Table = dict[str, np.ndarray]
Level = Literal["fast", "full", "off", "cli"]
STUDY = """\
veridyn: 1
kind: identify
model: {file: model.yaml}
log:
  time: t [s]
  columns:
COLUMNS
training: [log.csv]
validation: none
signals: {lowpass: 10}
sampling: {dead_zone: 0.05}
"""


@dataclass(frozen=True)
class Damage:
    """`apply(columns, size, rng)` changes a log in place; `sizes` bracket the bisection, None where a damage has no size."""

    name: str
    apply: Callable[[Table, float, np.random.Generator], None]
    words: tuple[str, ...]
    sizes: tuple[float, float] | None = None


def _force(rng: np.random.Generator) -> str:
    return f"force.q{rng.integers(1, 5)}"


def _start(rng: np.random.Generator, length: float, total: int) -> int:
    return int(rng.integers(int(0.1 * total), int(max(0.9 * total - length, 0.1 * total + 1))))


def dropout(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = _force(rng), min(20, max(2, round(size)))
    a = _start(rng, n, len(x[k]))
    x[k][a : a + n] = 0.0


def long_dropout(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = _force(rng), max(21, round(size))
    a = _start(rng, n, len(x[k]))
    x[k][a : a + n] = 0.0


def freeze(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = _force(rng), max(5, round(size))
    a = _start(rng, n, len(x[k]))
    x[k][a : a + n] = x[k][a]


def freeze_position(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = f"q.q{rng.integers(1, 5)}", max(5, round(size))
    a = _start(rng, n, len(x[k]))
    x[k][a : a + n] = x[k][a]


def spike(x: Table, size: float, rng: np.random.Generator) -> None:
    k = _force(rng)
    x[k][_start(rng, 1, len(x[k]))] += size


def spike_position(x: Table, size: float, rng: np.random.Generator) -> None:
    k = f"q.q{rng.integers(1, 5)}"
    x[k][_start(rng, 1, len(x[k]))] += size


def clip(x: Table, size: float, rng: np.random.Generator) -> None:
    k = _force(rng)
    top = np.quantile(np.abs(x[k]), max(0.0, 1.0 - size))
    x[k][:] = np.clip(x[k], -top, top)


def swap_forces(x: Table, _size: float, _rng: np.random.Generator) -> None:
    x["force.q1"], x["force.q2"] = x["force.q2"], x["force.q1"]


def swap_positions(x: Table, _size: float, _rng: np.random.Generator) -> None:
    x["q.q2"], x["q.q3"] = x["q.q3"], x["q.q2"]


def turn_force(x: Table, _size: float, rng: np.random.Generator) -> None:
    x[_force(rng)] *= -1.0


def turn_position(x: Table, _size: float, rng: np.random.Generator) -> None:
    x[f"q.q{rng.integers(2, 5)}"] *= -1.0


def degrees(x: Table, _size: float, rng: np.random.Generator) -> None:
    x[f"q.q{rng.integers(1, 5)}"] *= 180.0 / np.pi


def scale_force(x: Table, size: float, rng: np.random.Generator) -> None:
    x[_force(rng)] *= 1.0 + size


def scale_all(x: Table, _size: float, _rng: np.random.Generator) -> None:
    for k in range(1, 5):
        x[f"force.q{k}"] *= 1000.0


def late_force(x: Table, size: float, rng: np.random.Generator) -> None:
    k = _force(rng)
    x[k] = np.interp(x["t"] - size, x["t"], x[k])


def drift(x: Table, size: float, rng: np.random.Generator) -> None:
    x[_force(rng)] += size * x["t"] / x["t"][-1]


def milliseconds(x: Table, _size: float, _rng: np.random.Generator) -> None:
    x["t"] *= 1000.0


def held(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = _force(rng), max(2, round(size))
    x[k] = np.repeat(x[k][::n], n)[: len(x[k])]


def constant(x: Table, _size: float, rng: np.random.Generator) -> None:
    x[_force(rng)][:] = 2.5


def encoder_offset(x: Table, size: float, rng: np.random.Generator) -> None:
    x[f"q.q{rng.integers(2, 4)}"] += size


DAMAGES = (
    Damage("dropout to zero", dropout, ("drops to zero",), (2.0, 20.0)),
    Damage("long dropout", long_dropout, ("frozen", "drops to zero", "clipped"), (21.0, 600.0)),
    Damage("frozen force", freeze, ("frozen",), (5.0, 1000.0)),
    Damage("frozen position", freeze_position, ("frozen",), (5.0, 1000.0)),
    Damage("spike of a force", spike, ("spike",), (0.1, 1e6)),
    Damage("spike of a position", spike_position, ("spike",), (1e-4, 1e3)),
    Damage("clipped force", clip, ("clipped",), (0.001, 0.9)),
    Damage("forces swapped", swap_forces, ("swapped", "below zero")),
    Damage("positions swapped", swap_positions, ("swapped", "below zero", "sign")),
    Damage("force turned", turn_force, ("sign", "below zero")),
    Damage("position turned", turn_position, ("sign", "other way", "below zero")),
    Damage("degrees", degrees, ("degrees", "too fast")),
    Damage("scale of a force", scale_force, ("factor", "times what it should be"), (0.005, 1000.0)),
    Damage("all forces × 1000", scale_all, ("factor",)),
    Damage("late force", late_force, ("late",), (1e-4, 0.3)),
    Damage("drift of a force", drift, ("drift",), (0.01, 300.0)),
    Damage("milliseconds", milliseconds, ("clock",)),
    Damage("held values", held, ("keeps each value",), (2.0, 40.0)),
    Damage("constant force", constant, ("never changes",)),
    Damage("encoder offset", encoder_offset, ("another zero", "sit elsewhere"), (1e-4, 1.0)),
)


def clean(seed: int, noise: float = 1.0) -> Table:
    """A log of encoders of 20 bits and torque sensors, these with `noise` times their noise."""
    t = np.arange(int(SECONDS * RATE)) / RATE
    m = vd.Motion(t, *path().at(t))
    f = vd.inverse_dynamics(truth(), m) + noise * NOISE * np.random.default_rng([seed, 1]).normal(size=m.q.shape)
    q = np.round(m.q * 2**20 / (2 * np.pi)) * (2 * np.pi) / 2**20
    return {"t": t} | {f"q.q{k + 1}": q[:, k] for k in range(4)} | {f"force.q{k + 1}": f[:, k] for k in range(4)}


@dataclass(frozen=True, eq=False)
class Answer:
    """What a door answered: parameters with deviations, None where the log was refused, and all that was said."""

    names: tuple[str, ...] | None
    values: np.ndarray
    sigma: np.ndarray
    said: tuple[str, ...]


NOTHING = np.empty(0)


def identified(x: Table, seed: int, level: Level) -> Answer:
    """The answer of the API, or of the command line."""
    if level == "cli":
        return _by_study(x, seed)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            fit, _ = fitted(x, seed, level)
        except vd.VeridynError as error:
            return Answer(None, NOTHING, NOTHING, (str(error),))
    return Answer(fit.names, fit.values, fit.sigma, tuple(str(w.message) for w in told))


def fitted(x: Table, seed: int, level: Diagnose = "off") -> tuple[vd.Fit, vd.Motion]:
    values = {k: v for k, v in x.items() if k != "t"}
    units = {k: "rad" if k[0] == "q" else "N*m" for k in values}
    log = vd.Experiment.from_arrays(x["t"], values, units, "bench")
    motion = vd.motion(drawn(seed), log, vd.Signals(inspection="off") if level == "off" else None)
    return vd.identify(drawn(seed), motion, sampling=HOW, diagnose=level), motion


def _by_study(x: Table, seed: int) -> Answer:
    """What ``veridyn identify`` makes of files in a folder of their own, before it writes its report."""
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            fit = run_identify(_study(x, seed, Path(place))).study.fit
        except vd.VeridynError as error:
            return Answer(None, NOTHING, NOTHING, (str(error),))
    return Answer(fit.names, fit.values, fit.sigma, tuple(str(w.message) for w in told))


def _study(x: Table, seed: int, folder: Path) -> Loaded[IdentifyFile]:
    """A study of a log, in files."""
    vd.save_model(drawn(seed), folder / "model.yaml")
    (folder / "log.csv").write_text(table(x), encoding="utf-8")
    listed = [f"    {k}: {k} [{'rad' if k[0] == 'q' else 'N*m'}]" for k in x if k != "t"]
    (folder / "study.yaml").write_text(STUDY.replace("COLUMNS", "\n".join(listed)), encoding="utf-8")
    return load_study(folder / "study.yaml", "identify")


def prepared(x: Table, seed: int, level: Level) -> tuple[vd.Fit, list[vd.Motion], Sampling]:
    """The fit of a log, the motions it was made from, and how their samples become equations; without any check of the log."""
    if level != "cli":
        fit, motion = fitted(x, seed)
        return fit, [motion], HOW
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = _study(x, seed, Path(place))
        work = Preparing(loaded, drawn(seed), Recordings(loaded), silent)
        _, lowpass = work.lowpass()
        training, validation = work.motions(lowpass)
        how, _ = work.samplings(training, validation, lowpass)
        motions = plain(training)
        return vd.identify(drawn(seed), motions, sampling=how, diagnose="off"), motions, how


@cache
def good(seed: int, level: Level) -> Answer:
    """Of the undamaged log."""
    return identified(clean(seed), seed, "cli" if level == "cli" else "off")


def moved(found: Answer, seed: int, level: Level) -> float:
    """By how many deviations the worst parameter is off that of the undamaged log."""
    other = good(seed, level)
    if other.names != found.names:
        return np.inf
    return float(np.max(np.abs(found.values - other.values) / other.sigma))


def weakest(d: Damage, seed: int) -> float:
    """The size that moves a parameter by `WEAKEST` deviations where nothing is repaired."""
    assert d.sizes is not None
    low, high = d.sizes
    for _ in range(7):
        middle = float(np.sqrt(low * high))
        x = clean(seed)
        d.apply(x, middle, np.random.default_rng([seed, 2]))
        found = identified(x, seed, "off")
        refused = found.names is None
        low, high = (low, middle) if refused or moved(found, seed, "off") > WEAKEST else (middle, high)
    return high


def visible(d: Damage, size: float, seed: int, level: Level) -> float:
    """‖δ_⊥‖: by how many deviations of the noise a test that knows the shape of a damage sees it beside the parameters.

    δ is what the damage makes of the equations of that level themselves, without noise.
    """
    x = clean(seed, 0.0)
    d.apply(x, size, np.random.default_rng([seed, 2]))
    fit, _, how = prepared(clean(seed), seed, level)
    (_, before, _), (other, after, _) = prepared(clean(seed, 0.0), seed, level), prepared(x, seed, level)
    rows = [r.row for r in fit.rows]
    if fit.names != other.names or [len(m) for m in before] != [len(m) for m in after]:
        return np.inf
    a, b = (samples_of(fit, motions, rows, how, window=1) for motions in (before, after))
    if a.used.shape != b.used.shape or not np.array_equal(a.used, b.used):
        return np.inf
    weight = a.used / np.array([r.sigma for r in fit.rows])
    delta = (_misfit(b, fit) - _misfit(a, fit)) * weight
    return float(np.linalg.norm(Projected.of(b.W * weight[:, :, None], delta).residual))


def _misfit(x: Samples, fit: vd.Fit) -> np.ndarray:
    return x.y - x.W @ fit.values


def kind_of(d: Damage, size: float, seed: int, level: Level) -> str:
    """How a damaged log was answered."""
    x = clean(seed)
    d.apply(x, size, np.random.default_rng([seed, 2]))
    found = identified(x, seed, level)
    if any(word in text for word in d.words for text in found.said):
        return "named"
    if found.said:
        return "warned"
    if moved(found, seed, level) <= SILENT:
        return "harmless"
    return "undetectable" if best_power(visible(d, size, seed, level), FALSE_ALARMS) < HALF else "silent"


def costs(seed: int) -> tuple[float, float]:
    """Milliseconds of processor time of a fit, and of its fast diagnosis, of a clean log that was prepared before.

    Medians of fits without and with diagnosis in turn, each of a machine that was not met before.
    """
    _, motion = fitted(clean(seed), seed)
    motion = replace(motion, notes=())  # as of a log that was inspected
    levels: tuple[Diagnose, ...] = ("off", "fast")
    times = np.zeros((COSTS, len(levels)))
    for row in times:
        for k, level in enumerate(levels):
            tree = drawn(seed)
            begin = time.process_time()
            vd.identify(tree, motion, sampling=HOW, diagnose=level)
            row[k] = 1e3 * (time.process_time() - begin)
    alone, both = np.median(times, axis=0)
    return float(alone), float(both - alone)


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.damage")
    asked.add_argument("--logs", type=int, default=3)
    asked.add_argument("--clean", type=int, default=200)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--level", choices=("fast", "full", "cli"), default="fast")
    asked.add_argument("--only", nargs="*", default=[], help="names of damages")
    given = asked.parse_args()
    total: dict[str, int] = dict.fromkeys(("named", "warned", "silent", "undetectable", "harmless"), 0)
    print(f"{'damage':22}" + "".join(f"{k:>13}" for k in total))
    for d in DAMAGES:
        if given.only and d.name not in given.only:
            continue
        counts, left = dict.fromkeys(total, 0), []
        for seed in range(given.seed, given.seed + given.logs):
            first = 1.0 if d.sizes is None else weakest(d, seed)
            for strength in (1.0,) if d.sizes is None else (1.0, 4.0, 16.0):
                kind = kind_of(d, first * strength, seed, given.level)
                counts[kind] += 1
                if kind == "silent":
                    seen = visible(d, first * strength, seed, given.level)
                    odds = best_power(seen, FALSE_ALARMS / SHAPES)
                    left.append(
                        f"    seed {seed}, {strength:g} times the weakest ({first * strength:.3g}): {seen:.2f} deviations visible, "
                        f"which a search among {SHAPES} shapes finds in {100 * odds:.0f} %"
                    )
        for k, v in counts.items():
            total[k] += v
        print("\n".join([f"{d.name:22}" + "".join(f"{v:13d}" for v in counts.values()), *left]), flush=True)
    whole = max(sum(total.values()), 1)
    print(f"{'all':22}" + "".join(f"{v:13d}" for v in total.values()))
    print(f"{whole} damaged logs: " + ", ".join(f"{100 * v / whole:.1f} % {k}" for k, v in total.items()), flush=True)
    alarms = 0
    for seed in range(1000 * given.seed, 1000 * given.seed + given.clean):
        said = identified(clean(seed), seed, given.level).said
        alarms += bool(said)
        print("".join(f"    clean log {seed}: {text}\n" for text in said), end="", flush=True)
    print(f"{alarms} false alarms on {given.clean} clean logs")
    alone, more = costs(given.seed)
    print(f"fit {alone:.1f} ms, fast diagnosis {more:.1f} ms: {more / alone:.1f} times the fit")


if __name__ == "__main__":
    main()
