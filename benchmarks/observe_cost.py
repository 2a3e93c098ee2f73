"""``python -m benchmarks.observers --whole``: what `vd.observe` costs beyond one run of its filter along the log.

By default the model's error is learned, and the filter is checked by readings that it was not given (over horizons, through muted
sensors). A car of a few lines has neither: its filter runs once. Logs have 10⁴ samples (``--samples``); process noise is given, so that
none is chosen on the log. Times are of the processor, best of three.

    filter_ms        one run of the filter along the log
    plain_ms         `vd.observe` with ``model_error="off"``: the run, the bias of its steps, innovations and sensors
    whole_ms         `vd.observe` with defaults
    over_filter      whole_ms over filter_ms
    over_plain       whole_ms over plain_ms
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

import veridyn as vd
from benchmarks.clock import best_of
from benchmarks.foreign.small import MACHINES
from benchmarks.subjects import arm
from strangers.walks import CRANE, walked
from veridyn.errors import VeridynWarning
from veridyn.machines import crane
from veridyn.model.experiment import Experiment
from veridyn.model.sensor import Sensor
from veridyn.observe.observation import Observation
from veridyn.observe.settings import ObserveSettings

SAMPLES = 10_000
RATE = 500.0  # Hz
Subject = tuple[vd.Machine, Experiment, ObserveSettings]


@dataclass(frozen=True)
class ObserveCost:
    """The times of one machine; the module's docstring says what they are."""

    machine: str
    samples: int
    filter_ms: float
    plain_ms: float
    whole_ms: float

    @property
    def over_filter(self) -> float:
        return self.whole_ms / self.filter_ms

    @property
    def over_plain(self) -> float:
        return self.whole_ms / self.plain_ms


def swinging(machine: vd.Machine, centre: float, reach: float, sigma: float, samples: int) -> Experiment:
    """Encoders of all sensors of `machine` that follow sines, with their noise."""
    t, rng = np.arange(samples) / RATE, np.random.default_rng(0)
    rows = {
        s.name: centre + reach * np.sin((1.9 + 0.3 * k) * t) + sigma * rng.standard_normal(samples)
        for k, s in enumerate(machine.sensors)
    }
    return Experiment.from_arrays(t, rows, dict.fromkeys(rows, "rad"), machine.name)


def arm_subject(samples: int) -> Subject:
    """A two-link arm with its encoders."""
    machine = vd.load_model(MACHINES["two-link arm"].file)
    return machine, swinging(machine, 0.3, 0.4, 1e-4, samples), settings(force=100.0)


def seven_joints(samples: int) -> Subject:
    """An arm of seven joints with their encoders."""
    bare = arm()
    machine = replace(bare, sensors=tuple(Sensor(f"encoder_{c}", "coordinate", c, 1e-4) for c in bare.coordinates))
    return machine, swinging(machine, 0.3, 0.2, 1e-4, samples), settings(force=100.0)


def slider_crank(samples: int) -> Subject:
    """A crank that swings, in coordinates of joints with a loop."""
    machine = vd.load_model(MACHINES["slider-crank"].file)
    return machine, swinging(machine, 0.8, 0.5, 1e-4, samples), settings(force=100.0)


def crane_subject(samples: int) -> Subject:
    """A trolley with a swinging load in natural coordinates."""
    walk = replace(CRANE, samples=samples)
    _, log = walked(crane(), walk, np.random.default_rng(0))
    return crane(), log, replace(walk.setup("ekf").settings, model_error="learned")


def settings(force: float) -> ObserveSettings:
    noise = vd.ProcessNoise(force=force, start=0.01, start_rate=1.0, start_force=10.0)
    return ObserveSettings(process_noise=noise, start="readings")


SUBJECTS: Mapping[str, Callable[[int], Subject]] = {
    "two-link arm": arm_subject,
    "seven-joint arm": seven_joints,
    "slider-crank": slider_crank,
    "crane": crane_subject,
}


def cost(name: str, samples: int, repeat: int = 3) -> ObserveCost:
    """The times of one machine of `SUBJECTS`."""
    machine, log, how = SUBJECTS[name](samples)

    def observed(chosen: ObserveSettings) -> Observation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VeridynWarning)
            return vd.observe(machine, log, "ekf", chosen)

    plain = replace(how, model_error="off")
    made = observed(plain).made_by
    assert made is not None
    alone, without, whole = (
        best_of(function, repeat=repeat).cpu
        for function in (made.repeated, lambda: observed(plain), lambda: observed(how))
    )
    return ObserveCost(name, samples, 1e3 * alone, 1e3 * without, 1e3 * whole)


def costs(samples: int = SAMPLES) -> Iterator[ObserveCost]:
    """Every machine."""
    for name in SUBJECTS:
        yield cost(name, samples)


def report(samples: int, as_json: bool) -> None:
    """Print a table, or one JSON object a line."""
    if not as_json:
        print("| machine | samples | filter, ms | without checks, ms | vd.observe, ms | over the filter | over plain |")
        print("|---|---:|---:|---:|---:|---:|---:|")
    for c in costs(samples):
        if as_json:
            print(json.dumps({**asdict(c), "over_filter": c.over_filter, "over_plain": c.over_plain}))
            continue
        times = " | ".join(f"{ms:.0f}" for ms in (c.filter_ms, c.plain_ms, c.whole_ms))
        print(f"| {c.machine} | {c.samples} | {times} | {c.over_filter:.2f} | {c.over_plain:.2f} |", flush=True)
