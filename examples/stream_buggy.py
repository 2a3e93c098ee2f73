"""A vehicle observed sample by sample, as a program beside the vehicle would do it: no log, one call for each set of readings.

Run it with `python examples/stream_buggy.py [seconds]`.
"""

from __future__ import annotations

import sys

import numpy as np

import veridyn as vd
from veridyn.papers.buggy.drive import RATE, BuggyDrive, driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import best_observer, standing_start


def main(seconds: float = 2.0) -> float:
    """Drive, observe as the samples come, and return how far off the last position is (m)."""
    truth = driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=seconds, rack=-0.010))
    model = buggy(rolling_resistance=0.030)  # twice what it is
    log = truth.log(np.random.default_rng(0), model.sensors)

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
    for k, t in enumerate(truth.t.tolist()):
        readings = {name: log[name].values[k] for name in outputs if len(log[name]) == len(truth.t)}
        if k % 10 == 0:  # GPS comes ten times more rarely
            readings |= {name: log[name].values[k // 10] for name in outputs if name.startswith("gps")}
        state = observer.step(t, readings, [log[name].values[k] for name in inputs]).values
        off = float(np.hypot(state["base.x"] - truth.q[k, 0], state["base.y"] - truth.q[k, 1]))
        if k % int(RATE / 2) == 0:
            print(
                f"{t:5.1f} s  x {state['base.x']:8.3f} m  speed {state['base.vx']:6.3f} m/s  off by {1000 * off:.2f} mm"
            )
    return off


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0)
