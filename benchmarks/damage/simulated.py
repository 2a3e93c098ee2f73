"""Logs of a simulated four-joint arm, 15 s at 200 Hz, of encoders of 20 bits and torque sensors with white noise."""

from __future__ import annotations

import numpy as np

import veridyn as vd
from benchmarks.damage.bench import Bench
from benchmarks.damage.kinds import Table
from identify.smooth_arm import NOISE, drawn, path, truth
from veridyn.identify.regression.sampling import Sampling

RATE, SECONDS = 200.0, 15.0
DEAD_ZONE = {f"q{k}": 0.05 for k in range(1, 5)}
STUDY = """\
signals: {lowpass: 10}
sampling: {dead_zone: 0.05}
"""


def clean(seed: int, noise: float = 1.0, seconds: float = SECONDS) -> Table:
    """A log with `noise` times the noise of the torque sensors."""
    t = np.arange(int(seconds * RATE)) / RATE
    m = vd.Motion(t, *path().at(t))
    f = vd.inverse_dynamics(truth(), m) + noise * NOISE * np.random.default_rng([seed, 1]).normal(size=m.q.shape)
    q = np.round(m.q * 2**20 / (2 * np.pi)) * (2 * np.pi) / 2**20
    return {"t": t} | {f"q.q{k + 1}": q[:, k] for k in range(4)} | {f"force.q{k + 1}": f[:, k] for k in range(4)}


def simulated(seed: int, seconds: float = SECONDS) -> Bench:
    """The log of a seed, and the arm as its drawing has it."""
    how, tables = Sampling(dead_zone=DEAD_ZONE), [clean(seed, noise, seconds) for noise in (1.0, 0.0)]
    return Bench(f"seed {seed}", drawn(seed), tables[0], seed, tables[1], sampling=how, study=STUDY)
