"""Outliers, dropouts and freezes of single channels: how often a clean log raises an alarm, and which damage is named, by its size.

``python -m benchmarks.samples [--quick] [--seed N] [--json FILE]``

Half of the clean logs hold four channels of different kinds (:data:`KINDS`) without names that mean anything; the other half are the
positions, speeds and forces of two joints that move and rest. A finding of kind spike, dropout or frozen that is more than a note is an
alarm. Of damaged logs one channel is changed, and the damage counts as named where a finding of that channel and of its kind holds one of
the damaged samples. Sizes are in standard deviations of the channel's own noise (rounding included), lengths in samples. Nothing here
calls the checks themselves but through :func:`veridyn.signals.inspect`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, lfilter, sosfilt

from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.findings import Finding
from veridyn.signals.quality import inspect

Array = NDArray[np.float64]
Made = tuple[Array, float]  # a channel, and the standard deviation of its noise
RATE = 200.0  # samples per second of every log
CHANNELS = 4  # of a log of signals without names
ALARMS = ("spike", "dropout", "frozen")


def path(rng: np.random.Generator, t: Array) -> Array:
    """A motion of some hertz that never rests, of amplitude about 1."""
    return path_and_rates(rng, t)[0]


def path_and_rates(rng: np.random.Generator, t: Array) -> tuple[Array, Array, Array]:
    """Such a motion, its speed and its acceleration."""
    w, size, phase = 2.0 * np.pi * rng.uniform(0.1, 1.5, 4), rng.uniform(0.2, 0.5, 4), rng.uniform(0.0, 6.3, 4)
    s, c = np.sin(np.outer(t, w) + phase), np.cos(np.outer(t, w) + phase)
    return s @ size, c @ (w * size), s @ (-(w**2) * size)


def rest_to_rest(rng: np.random.Generator, t: Array) -> Array:
    """Moves of 0.6 to 1.2 s with rests between them: x of a quintic, at rest at both ends of a move."""
    x, start = np.zeros(len(t)), rng.uniform(0.3, 1.0)
    while start < t[-1] - 1.5:
        s = np.clip((t - start) / (seconds := rng.uniform(0.6, 1.2)), 0.0, 1.0)
        x += rng.uniform(-1.0, 1.0) * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        start += seconds + rng.uniform(0.3, 1.5)
    return x


def white(rng: np.random.Generator, t: Array) -> Made:
    return rng.normal(size=len(t)), 1.0


def force(rng: np.random.Generator, t: Array) -> Made:
    sigma = 10.0 ** rng.uniform(-3.0, -1.0)
    return path(rng, t) + sigma * rng.normal(size=len(t)), sigma


def coloured(rng: np.random.Generator, t: Array) -> Made:
    sigma, memory = 10.0 ** rng.uniform(-2.5, -1.0), rng.choice([0.5, 0.9, 0.98])
    return path(rng, t) + lfilter([1.0], [1.0, -memory], sigma * rng.normal(size=len(t))), sigma


def lowpassed(rng: np.random.Generator, t: Array) -> Made:
    sigma = 10.0 ** rng.uniform(-2.5, -1.0)
    band = butter(2, rng.uniform(0.1, 0.5), output="sos")
    return path(rng, t) + sosfilt(band, sigma * rng.normal(size=len(t))), sigma


def resonant(rng: np.random.Generator, t: Array) -> Made:
    r, w, sigma = 0.97, 2.0 * np.pi * rng.uniform(8.0, 40.0) / RATE, 0.02
    return path(rng, t) + lfilter([1.0], [1.0, -2.0 * r * np.cos(w), r * r], sigma * rng.normal(size=len(t))), sigma


def heavy(rng: np.random.Generator, t: Array) -> Made:
    sigma, degrees = 10.0 ** rng.uniform(-2.0, -1.0), rng.choice([3.0, 5.0, 8.0])
    return path(rng, t) + sigma * rng.standard_t(degrees, size=len(t)), sigma


def laplace(rng: np.random.Generator, t: Array) -> Made:
    sigma = 10.0 ** rng.uniform(-2.0, -1.0)
    return path(rng, t) + sigma * rng.laplace(size=len(t)) / np.sqrt(2.0), sigma


def quantised(rng: np.random.Generator, t: Array) -> Made:
    q, own = 10.0 ** rng.uniform(-3.0, -1.0), rng.choice([0.0, 0.3, 1.0, 3.0])
    return np.round(path(rng, t) / q + own * rng.normal(size=len(t))) * q, float(q * np.hypot(own, 12.0**-0.5))


def encoder(rng: np.random.Generator, t: Array) -> Made:
    q = 2.0 * np.pi / 2.0 ** rng.choice([12, 16, 20])
    x = path(rng, t) if rng.random() < 0.5 else rest_to_rest(rng, t)
    return np.round(x / q) * q, float(q / np.sqrt(12.0))


def exact(rng: np.random.Generator, t: Array) -> Made:
    return path(rng, t) if rng.random() < 0.5 else rest_to_rest(rng, t), 1e-3


def jittering(rng: np.random.Generator, t: Array) -> Made:
    """Positions taken up to a twentieth of a step early or late."""
    late = rng.uniform(-0.05, 0.05, len(t)) / RATE
    return path(rng, t + late), float(0.03 / RATE * 3.0)


def speed(rng: np.random.Generator, t: Array) -> Made:
    """Differences of a position in steps of an encoder of 16 bits."""
    q = 2.0 * np.pi / 2.0**16
    longer = np.append(t, t[-1] + 1.0 / RATE)
    x = np.round((path(rng, longer) if rng.random() < 0.5 else rest_to_rest(rng, longer)) / q) * q
    return np.diff(x) * RATE, float(q * RATE / np.sqrt(6.0))


def friction(rng: np.random.Generator, t: Array) -> Made:
    """A torque with dry friction, sharp or smoothed by tanh."""
    (x, v, _), sigma = path_and_rates(rng, t), 10.0 ** rng.uniform(-2.5, -1.5)
    dry = np.sign(v) if rng.random() < 0.5 else np.tanh(v / rng.uniform(0.02, 0.2))
    return x + rng.uniform(0.2, 1.0) * dry + sigma * rng.normal(size=len(t)), sigma


def louder(rng: np.random.Generator, t: Array) -> Made:
    """Noise that grows with speed, as of a geared drive."""
    x, sigma = rest_to_rest(rng, t), 10.0 ** rng.uniform(-3.0, -2.0)
    v = np.gradient(x, t)
    return 3.0 * v + sigma * (1.0 + 5.0 * np.abs(v)) * rng.normal(size=len(t)), 4.0 * sigma


def resting(rng: np.random.Generator, t: Array) -> Made:
    x, sigma = rest_to_rest(rng, t), 10.0 ** rng.uniform(-4.5, -3.0)
    return x + sigma * rng.normal(size=len(t)), sigma


def command(rng: np.random.Generator, t: Array) -> Made:
    """Piecewise constant, each value for 0.1 s or longer."""
    x, k = np.zeros(len(t)), 0
    while k < len(t):
        x[k:] = np.round(rng.uniform(-2.0, 2.0), 2)
        k += int(rng.uniform(20, 400))
    return x, 0.01


def walk(rng: np.random.Generator, t: Array) -> Made:
    return np.cumsum(rng.normal(size=len(t))), 1.0


def contact(rng: np.random.Generator, t: Array) -> Made:
    x, sigma = path(rng, t), 0.01
    return np.maximum(5.0 * x + sigma * rng.normal(size=len(t)), 0.0), sigma


def trapezoidal(rng: np.random.Generator, t: Array) -> Made:
    """A position of piecewise constant acceleration."""
    a, k = np.zeros(len(t)), 0
    while k < len(t) - 300:
        n, size = int(rng.integers(20, 80)), rng.uniform(-5.0, 5.0)
        a[k : k + n], a[k + n : k + 2 * n] = size, -size
        k += 2 * n + int(rng.integers(0, 150))
    x = np.cumsum(np.cumsum(a)) / RATE**2
    sigma = float(rng.choice([0.0, 1e-5]))
    return x + sigma * rng.normal(size=len(t)), max(sigma, 1e-4)


KINDS: dict[str, Callable[[np.random.Generator, Array], Made]] = {
    kind.__name__: kind
    for kind in (
        *(white, force, coloured, lowpassed, resonant, heavy, laplace, quantised, encoder, exact, jittering, speed),
        *(friction, louder, resting, command, walk, contact, trapezoidal),
    )
}
DAMAGED_KINDS = ("white", "force", "coloured", "heavy", "quantised", "encoder", "exact", "friction", "resting")


def _with_rates(q: Array, t: Array) -> tuple[Array, Array, Array]:
    """A motion at rest at both ends, with its speed and its acceleration by central differences."""
    v = np.gradient(q, t)
    return q, v, np.gradient(v, t)


def machine_log(rng: np.random.Generator, t: Array) -> dict[str, Array]:
    """Positions, speeds and forces of two joints: both move and rest, or both never rest; an encoder of 16 to 20 bits, or noise."""
    out: dict[str, Array] = {}
    moving = rng.random() < 0.5
    for name in ("a", "b"):
        q, v, a = path_and_rates(rng, t) if moving else _with_rates(rest_to_rest(rng, t), t)
        grain = float(rng.choice([0.0, 2.0 * np.pi / 2.0**16, 2.0 * np.pi / 2.0**20]))
        out[f"q.{name}"] = np.round(q / grain) * grain if grain else q + 2e-5 * rng.normal(size=len(t))
        out[f"qd.{name}"] = v + 1e-3 * rng.normal(size=len(t))
        tau = 0.3 * a + 2.0 * np.cos(q) + 0.4 * v + 0.5 * np.tanh(v / 0.01)
        out[f"force.{name}"] = tau + 10.0 ** rng.uniform(-2.5, -1.0) * rng.normal(size=len(t))
    return out


UNITS = {"q": "rad", "qd": "rad/s", "force": "N*m"}


def as_log(t: Array, values: dict[str, Array]) -> Experiment:
    """Channels of one clock; a name without a known kind has the unit V."""
    return Experiment(
        {n: Channel(n, t, x, UNITS.get(n.partition(".")[0], "V")) for n, x in values.items()}, "simulated"
    )


def clean_log(rng: np.random.Generator, machine: bool) -> tuple[Experiment, dict[str, str]]:
    """A log of 10 to 25 s without damage, and the kind of each of its channels."""
    t = np.arange(int(rng.uniform(10.0, 25.0) * RATE)) / RATE
    if machine:
        values = machine_log(rng, t)
        return as_log(t, values), {n: n.partition(".")[0] for n in values}
    kinds = {f"x{k}": str(kind) for k, kind in enumerate(rng.choice(list(KINDS), CHANNELS, replace=False))}
    return as_log(t, {n: KINDS[kind](rng, t)[0] for n, kind in kinds.items()}), kinds


def alarms(log: Experiment) -> list[Finding]:
    """Findings about single samples or runs of them that are more than notes."""
    return [f for f in inspect(log) if f.kind in ALARMS and f.severity != "note"]


@dataclass(frozen=True)
class Damage:
    """`apply(x, start, size, sigma, rng)` changes a channel in place and returns how many samples it changed; `words`: kinds of findings
    that name it; `sizes`: deviations of the noise, or samples."""

    name: str
    apply: Callable[[Array, int, float, float, np.random.Generator], int]
    words: tuple[str, ...]
    sizes: tuple[float, ...]


def _offset(least: int, most: int) -> Callable[[Array, int, float, float, np.random.Generator], int]:
    def apply(x: Array, start: int, size: float, sigma: float, rng: np.random.Generator) -> int:
        n = int(rng.integers(least, most + 1))
        x[start : start + n] += rng.choice([-1.0, 1.0]) * size * sigma
        return n

    return apply


def _burst(x: Array, start: int, size: float, sigma: float, rng: np.random.Generator) -> int:
    """Samples off by amounts that differ."""
    n = int(rng.integers(2, 21))
    x[start : start + n] += size * sigma * rng.normal(size=n)
    return n


def _constant(value: float | None) -> Callable[[Array, int, float, float, np.random.Generator], int]:
    def apply(x: Array, start: int, size: float, _sigma: float, rng: np.random.Generator) -> int:
        x[start : start + int(size)] = float(rng.uniform(x.min(), x.max())) if value is None else value
        return int(size)

    return apply


def _freeze(x: Array, start: int, size: float, _sigma: float, _rng: np.random.Generator) -> int:
    x[start : start + int(size)] = x[start]
    return int(size)


SIZES = (6.0, 10.0, 20.0, 50.0, 200.0)
DAMAGES = (
    Damage("one sample", _offset(1, 1), ("spike",), SIZES),
    Damage("two samples", _offset(2, 2), ("spike",), SIZES),
    Damage("offset of 3 to 20 samples", _offset(3, 20), ("spike",), SIZES),
    Damage("burst of 2 to 20 samples", _burst, ("spike",), SIZES),
    Damage("dropout to zero", _constant(0.0), ("dropout", "frozen"), (2.0, 5.0, 10.0, 20.0)),
    Damage("dropout to a constant", _constant(None), ("dropout", "frozen"), (5.0, 10.0, 20.0, 50.0)),
    Damage("freeze", _freeze, ("frozen", "dropout"), (5.0, 10.0, 30.0, 100.0)),
)


def named(rng: np.random.Generator, kind: str, damage: Damage, size: float) -> bool:
    """Whether the damage of one log of this kind is named."""
    t = np.arange(int(12.0 * RATE)) / RATE
    x, sigma = KINDS[kind](rng, t)
    start = int(rng.integers(200, len(t) - 300))
    n = damage.apply(x, start, size, sigma, rng)
    moving = path(rng, t) + 1e-4 * rng.normal(size=len(t))
    log = as_log(t, {"x": x, "beside": moving})
    first, last = t[start], t[start + n - 1]
    return any(
        f.channel == "x" and f.kind in damage.words and f.t_start <= last and f.t_end >= first for f in inspect(log)
    )


def seconds_a_million(rng: np.random.Generator) -> float:
    """CPU time of one inspection of 10⁶ samples of a force, the second of two."""
    t = np.arange(1_000_000) / RATE
    log = as_log(t, {"force.a": force(rng, t)[0]})
    inspect(log)
    start = time.process_time()
    inspect(log)
    return time.process_time() - start


def measured(seed: int, clean: int, runs: int) -> dict[str, object]:
    """Alarms of so many clean logs, and the share of damage that is named in so many logs of each kind and size."""
    rngs = np.random.default_rng(seed).spawn(3)
    alarmed, by_kind = 0, Counter[str]()
    for k, rng in enumerate(rngs[0].spawn(clean)):
        log, kinds = clean_log(rng, machine=k % 2 == 1)
        found = alarms(log)
        alarmed += bool(found)
        by_kind.update(f"{f.kind} of {kinds[f.channel]}" for f in found)
    power: dict[str, dict[str, dict[str, float]]] = {}
    for damage, own in zip(DAMAGES, rngs[1].spawn(len(DAMAGES)), strict=True):
        power[damage.name] = {
            kind: {
                f"{size:g}": float(np.mean([named(rng, kind, damage, size) for rng in part.spawn(runs)]))
                for size, part in zip(damage.sizes, child.spawn(len(damage.sizes)), strict=True)
            }
            for kind, child in zip(DAMAGED_KINDS, own.spawn(len(DAMAGED_KINDS)), strict=True)
        }
    return {
        "seed": seed,
        "clean": clean,
        "runs": runs,
        "alarmed": alarmed,
        "alarms": dict(by_kind.most_common()),
        "power": power,
        "seconds_a_million": seconds_a_million(rngs[2]) if clean > 100 else None,
    }


def table(power: dict[str, dict[str, dict[str, float]]]) -> str:
    """One row for each damage and kind of channel: percent named, by size."""
    lines = []
    for damage in DAMAGES:
        lines += [f"| {damage.name} | " + " | ".join(f"{s:g}" for s in damage.sizes) + " |"]
        lines += ["|---|" + "---:|" * len(damage.sizes)]
        rows = power[damage.name]
        lines += [f"| {k} | " + " | ".join(f"{100 * v:.0f}" for v in row.values()) + " |" for k, row in rows.items()]
        means = np.mean([list(row.values()) for row in rows.values()], axis=0)
        lines += ["| all | " + " | ".join(f"{100 * v:.0f}" for v in means) + " |", ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> dict[str, object]:
    """Measure, print, and keep the numbers where ``--json`` says."""
    parser = argparse.ArgumentParser(description="Alarms of clean logs, and the power to find damaged samples.")
    parser.add_argument("--quick", action="store_true", help="20 clean logs and 2 damaged ones of each kind")
    parser.add_argument("--seed", type=int, default=1, help="of all logs (default 1)")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    chosen = parser.parse_args(arguments)
    found = measured(chosen.seed, *((20, 2) if chosen.quick else (600, 16)))
    print(f"seed {found['seed']}: alarms in {found['alarmed']} of {found['clean']} clean logs {found['alarms']}")
    if found["seconds_a_million"] is not None:
        print(f"10⁶ samples: {found['seconds_a_million']:.2f} s of CPU time")
    print(table(found["power"]))  # pyright: ignore[reportArgumentType]
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
