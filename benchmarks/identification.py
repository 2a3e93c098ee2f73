"""A log of a million samples of the 20-dof car: streamed by veridyn, and by a Pinocchio loop with numpy.linalg.qr."""

from __future__ import annotations

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from benchmarks.kernels import states
from benchmarks.made_logs import car, recorded
from benchmarks.subjects import PinModel
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

SAMPLES = 1_000_000
FITS = 4_000  # samples whose whole observation matrix is stored for the comparison


@dataclass(frozen=True)
class Result:
    """Seconds of the parts, extra memory, and the peer's time extrapolated from what fits in memory."""

    one: float
    one_cpu: float
    two: float
    extra_megabytes: float
    peer: float
    peer_regressor: float
    peer_qr: float
    difference: float


def identification() -> Result:
    """All parameters of all moving bodies (150) from all 20 rows, weighted least squares."""
    machine, m = recorded(car(20), SAMPLES)
    solve(observation(machine, m[:20_000], settings=IdentifySettings(engine="compiled")))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    solve(observation(machine, m, settings=IdentifySettings(engine="compiled", threads=1)))
    one, one_cpu = time.perf_counter() - wall, time.process_time() - cpu
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024.0
    with ThreadPoolExecutor(2) as pool:
        wall = time.perf_counter()
        solve(observation(machine, m, settings=IdentifySettings(engine="compiled"), executor=pool))
        two = time.perf_counter() - wall
    loop, qr, difference = _peer(machine, m[:FITS])
    scale = SAMPLES / FITS
    return Result(one, one_cpu, two, extra, scale * (loop + qr), scale * loop, scale * qr, difference)


def _peer(machine: Machine, m: Motion) -> tuple[float, float, float]:
    """Seconds of the regressor loop and of the QR of the stacked matrix, and how far apart the residuals of both ways lie."""
    oracle = PinModel(machine)
    data = oracle.model.createData()
    q, v, a = states(oracle, m)
    start = time.perf_counter()
    W = np.array([pin.computeJointTorqueRegressor(oracle.model, data, q[k], v[k], a[k]) for k in range(len(m))])
    loop = time.perf_counter() - start
    y = np.column_stack([m.wrenches[machine.root], m.forces]) @ oracle.S.T
    stacked = np.column_stack([W.reshape(-1, W.shape[2]), y.reshape(-1)])
    start = time.perf_counter()
    R = np.asarray(np.linalg.qr(stacked, mode="r"))
    qr = time.perf_counter() - start
    ours = observation(machine, m, settings=IdentifySettings(engine="compiled"))
    residuals = [_residual(x) for x in (R, ours.stacked([1.0] * len(ours.rows)))]
    return loop, qr, abs(residuals[1] / residuals[0] - 1.0)


def _residual(R: np.ndarray) -> float:
    """The norm of what least squares leaves of the last column; the columns are dependent, so by singular values."""
    solution = np.linalg.lstsq(R[:, :-1], R[:, -1], rcond=1e-10)[0]
    return float(np.linalg.norm(R[:, -1] - R[:, :-1] @ solution))
