"""The bench robot's training motion as evidence, exact in its rates: what questions about data are tried on."""

from functools import lru_cache

import numpy as np

from studies.bench_robot import JOINTS, RATE, recording, robot
from veridyn.identify.diagnosis.evidence import Evidence, evidence
from veridyn.identify.regression.sampling import Sampling
from veridyn.model.experiment import Experiment
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, motion

LOW = Butterworth(8.0)
SAMPLING = Sampling(filter=LOW, decimate=5)


@lru_cache(maxsize=4)
def bench_motion(seed: int = 1) -> Motion:
    raw = recording(seed)
    values = {f"q.{c}": raw[c] for c in JOINTS} | {f"force.{c}": raw[f"tau{k + 1}"] for k, c in enumerate(JOINTS)}
    units = {name: "rad" if name.startswith("q.") else "N*m" for name in values}
    return motion(robot(), Experiment.from_arrays(raw["t"], values, units), Signals(rate=RATE, lowpass=8.0, trim=0.3))


@lru_cache(maxsize=1)
def bench_evidence() -> Evidence:
    return evidence(robot(), [bench_motion()], JOINTS, SAMPLING)


def permuted(i: int, j: int) -> np.ndarray:
    T = np.eye(3)
    T[[i, j]] = T[[j, i]]
    return T
