"""``python -m benchmarks.car_steering [seed]``: what sinusoidal steering alone identifies of a car, on a rough and on a smooth road.

Paper 000 identifies 26 of 33 parameters from it. Two drives, at 90 and 110 km/h, identified as the study does it; and how many parameters
pass σ % < 10 by noise alone and by the whole budget.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veridyn.papers.car.bent import selected
from veridyn.papers.car.budget import budget, corrected, thirty_three, with_carriers
from veridyn.papers.car.drive import campaign
from veridyn.papers.car.knowledge import CarKnown
from veridyn.papers.car.machine import car_38
from veridyn.papers.car.sensors import sensors_2006
from veridyn.papers.car.simulator.description import KMH, Vehicle, restless, sinusoidal_steering
from veridyn.papers.car.study import NAMES

ACCEPTED = 0.1  # σ over the value, section VII.A


@dataclass(frozen=True)
class SteeringAlone:
    """Of one class of road: the model reported, names that pass by noise alone and by the whole budget, and what decides the others."""

    road: str
    model: str
    by_noise: tuple[str, ...]
    by_budget: tuple[str, ...]
    why: Mapping[str, str]


def steering_alone(rng: np.random.Generator, road: str = "C", duration: float = 10.0) -> SteeringAlone:
    """Two drives of so many seconds on roads of one class."""
    car, sensors = Vehicle(), sensors_2006()
    given = CarKnown.of(car, sensors).drawn(rng)
    drives = {
        f"steering at {v} km/h": (restless(sinusoidal_steering(speed=v * KMH), rng), road, duration) for v in (90, 110)
    }
    made = campaign(rng, drives, car, sensors, known=given)
    machine = thirty_three(car_38())
    how = corrected(machine)
    found = selected(with_carriers(machine, given.carriers), [made.motion(machine, name) for name in drives], how)
    chosen = found.chosen
    stated = budget(chosen, found.takes.sigma, made, tuple(drives), how)
    size = np.abs(chosen.values)
    own = [k for k, name in enumerate(chosen.names) if name in NAMES]
    noise, whole = (
        tuple(chosen.names[k] for k in own if s[k] < ACCEPTED * size[k]) for s in (chosen.sigma, stated.total)
    )
    why = {}
    for name in NAMES:
        if name in stated.names and name not in whole:
            parts = stated.of(name)
            why[name] = max(parts, key=lambda source: parts[source])
    return SteeringAlone(road, found.name, noise, whole, why)


def main(arguments: list[str]) -> int:
    seed = int(arguments[0]) if arguments else 0
    for name in ("C", "A"):
        s = steering_alone(np.random.default_rng(seed), name)
        counts = f"{len(s.by_noise)} of {len(NAMES)} by noise, {len(s.by_budget)} by the whole budget"
        print(f"road {name}, {s.model}: {counts}")
        print("  not identified: " + ", ".join(f"{n} ({source})" for n, source in s.why.items()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
