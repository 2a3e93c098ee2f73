"""A vehicle observed sample by sample, as a program beside the vehicle would do it: no log, one call for each set of readings.

Run it with `python examples/stream_buggy.py [seconds]`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

import veridyn as vd
from veridyn.papers.buggy.drive import RATE, BuggyDrive, driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import best_observer, standing_start, with_edges


def main(seconds: float = 2.0) -> float:
    """Drive, observe as the samples come, and return how far off the last position is (m)."""
    truth = driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=seconds, rack=-0.010))
    model = buggy(rolling_resistance=0.030)  # twice what it is
    log = with_edges(truth.log(np.random.default_rng(0), model.sensors))  # a wheel is read where a hole's edge passes

    how = best_observer()
    inputs = ("drive_rl", "drive_rr", "q.rack", "qd.rack", "qdd.rack")
    observer = vd.Observer(
        model,
        how.method,
        vd.ObserveSettings(
            process_noise=how.noise,
            start=standing_start(model),
            unknown=how.unknown,
            parameters=how.parameters,
            inputs=inputs,
            step=1.0 / RATE,
        ),
    )
    outputs, off = observer.system.outputs, 0.0
    readings = by_sample(
        log, outputs, len(truth.t)
    )  # what has come at each sample: GPS at every tenth, wheels now and then
    deviations = by_sample(log, [f"{name}.sigma" for name in outputs if f"{name}.sigma" in log.names], len(truth.t))
    for k, t in enumerate(truth.t.tolist()):
        sigma = {name.removesuffix(".sigma"): value for name, value in deviations[k].items()}
        state = observer.step(t, readings[k], [log[name].values[k] for name in inputs], sigma or None).values
        off = float(np.hypot(state["base.x"] - truth.q[k, 0], state["base.y"] - truth.q[k, 1]))
        if k % int(RATE / 2) == 0:
            print(
                f"{t:5.1f} s  x {state['base.x']:8.3f} m  speed {state['base.vx']:6.3f} m/s  off by {1000 * off:.2f} mm"
            )
    return off


def by_sample(log: vd.Experiment, names: Sequence[str], samples: int) -> list[dict[str, float]]:
    """For each sample the channels that have a value at its time."""
    found: list[dict[str, float]] = [{} for _ in range(samples)]
    for name in names:
        at = np.rint(log[name].t * RATE).astype(int).tolist()
        for k, value in zip(at, log[name].values.tolist(), strict=True):
            found[k][name] = value
    return found


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)
