"""``python -m benchmarks.car_steering [seed]``: what sinusoidal steering alone identifies of a car, on a rough and on a smooth road."""

from __future__ import annotations

import sys

import numpy as np

from veridyn.studies.papers.car.steering import steering_alone
from veridyn.studies.papers.car.study import NAMES


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
