"""Damaged logs with a score: ``python -m benchmarks.damage --logs 20 --seed 1``.

Twenty kinds of damage at three strengths on logs of a simulated four-joint arm. Where a damage has a size, the weakest is that which moves
a parameter by 5 standard deviations, found by bisection; the others are 4 and 16 times as strong. A damage is *named* where a warning has
one of the words that belong to it, *warned* of where there is any other warning, *silent* where a parameter moved by more than 3 deviations
without one. False alarms are warnings on logs that are not damaged. `--level full` asks all that the command line asks.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import veridyn as vd
from identify.smooth_arm import NOISE, drawn, path, truth
from veridyn.identify.sampling import Sampling

RATE, SECONDS = 200.0, 15.0
HOW = Sampling(dead_zone={f"q{k}": 0.05 for k in range(1, 5)})
WEAKEST, SILENT = 5.0, 3.0
Table = dict[str, np.ndarray]


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
    return int(rng.integers(0.1 * total, max(0.9 * total - length, 0.1 * total + 1)))


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
    Damage("scale of a force", scale_force, ("factor", "times what it should be", "contradict"), (0.005, 1000.0)),
    Damage("all forces × 1000", scale_all, ("factor",)),
    Damage("late force", late_force, ("late",), (1e-4, 0.3)),
    Damage("drift of a force", drift, ("drift",), (0.05, 300.0)),
    Damage("milliseconds", milliseconds, ("clock",)),
    Damage("held values", held, ("keeps each value",), (2.0, 40.0)),
    Damage("constant force", constant, ("never changes",)),
    Damage("encoder offset", encoder_offset, ("sit elsewhere", "contradict"), (1e-4, 1.0)),
)


def clean(seed: int) -> Table:
    """A log of encoders of 20 bits and torque sensors."""
    t = np.arange(int(SECONDS * RATE)) / RATE
    m = vd.Motion(t, *path().at(t))
    f = vd.inverse_dynamics(truth(), m) + NOISE * np.random.default_rng([seed, 1]).normal(size=m.q.shape)
    q = np.round(m.q * 2**20 / (2 * np.pi)) * (2 * np.pi) / 2**20
    return {"t": t} | {f"q.q{k + 1}": q[:, k] for k in range(4)} | {f"force.q{k + 1}": f[:, k] for k in range(4)}


def identified(x: Table, seed: int, level: str) -> tuple[vd.Fit | None, list[str]]:
    """A fit, None where the log is refused, and all that was said."""
    values = {k: v for k, v in x.items() if k != "t"}
    units = {k: "rad" if k[0] == "q" else "N*m" for k in values}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            log = vd.Experiment.from_arrays(x["t"], values, units, "bench")
            signals = vd.Signals(inspection="off") if level == "off" else None
            fit = vd.identify(drawn(seed), vd.motion(drawn(seed), log, signals), sampling=HOW, diagnose=level)
        except vd.VeridynError as error:
            return None, [str(error)]
    return fit, [str(w.message) for w in told]


def moved(fit: vd.Fit, seed: int) -> float:
    """By how many deviations the worst parameter is off that of the undamaged log."""
    good, _ = identified(clean(seed), seed, "off")
    assert good is not None
    if good.names != fit.names:
        return np.inf
    return float(np.max(np.abs(fit.values - good.values) / good.sigma))


def weakest(d: Damage, seed: int) -> float:
    """The size that moves a parameter by `WEAKEST` deviations where nothing is repaired."""
    assert d.sizes is not None
    low, high = d.sizes
    for _ in range(7):
        middle = float(np.sqrt(low * high))
        x = clean(seed)
        d.apply(x, middle, np.random.default_rng([seed, 2]))
        fit, _ = identified(x, seed, "off")
        low, high = (low, middle) if fit is None or moved(fit, seed) > WEAKEST else (middle, high)
    return high


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.damage")
    asked.add_argument("--logs", type=int, default=3)
    asked.add_argument("--clean", type=int, default=200)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--level", choices=("fast", "full"), default="fast")
    given = asked.parse_args()
    total = dict.fromkeys(("named", "warned", "silent", "harmless"), 0)
    print(f"{'damage':22}" + "".join(f"{k:>10}" for k in total))
    for d in DAMAGES:
        counts = dict.fromkeys(total, 0)
        for seed in range(given.seed, given.seed + given.logs):
            first = 1.0 if d.sizes is None else weakest(d, seed)
            for strength in (1.0,) if d.sizes is None else (1.0, 4.0, 16.0):
                x = clean(seed)
                d.apply(x, first * strength, np.random.default_rng([seed, 2]))
                fit, said = identified(x, seed, given.level)
                named = any(word in text for word in d.words for text in said)
                quiet = "silent" if fit is not None and moved(fit, seed) > SILENT else "harmless"
                counts["named" if named else "warned" if said else quiet] += 1
        for k, v in counts.items():
            total[k] += v
        print(f"{d.name:22}" + "".join(f"{v:10d}" for v in counts.values()), flush=True)
    whole = sum(total.values())
    alarms = [s for seed in range(1000, 1000 + given.clean) for s in identified(clean(seed), seed, given.level)[1][:1]]
    print(f"{'all':22}" + "".join(f"{v:10d}" for v in total.values()))
    print(
        f"{whole} damaged logs: {100 * total['named'] / whole:.1f} % named, {100 * total['warned'] / whole:.1f} % warned of otherwise, "
        f"{100 * total['silent'] / whole:.1f} % silent; {len(alarms)} false alarms on {given.clean} clean logs"
    )


if __name__ == "__main__":
    main()
