"""A log of a million samples of the 20-dof car: streamed by veridyn, and by a Pinocchio loop with numpy.linalg.qr."""

from __future__ import annotations

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from benchmarks.kernels import states
from benchmarks.subjects import PinModel, car, motion
from veridyn.identify.least_squares import solve
from veridyn.identify.observation import observation
from veridyn.mechanics.inverse import inverse_dynamics

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
    tree = car(20)
    m = motion(tree, SAMPLES)
    # The measured side: the exact forces on the base, as a wrench, and on the joints, with noise on all.
    exact = inverse_dynamics(tree, m)
    rng = np.random.default_rng(2)
    noisy = exact + rng.normal(size=exact.shape) * exact.std(axis=0) * 0.01
    from dataclasses import replace

    driven = tree.__class__.build(
        [replace(b, actuated=True) for b in tree.bodies],
        name=tree.name,
        base="free",
        inertia={
            b.name: tree.parameters.values[10 * k : 10 * k + 10] for k, b in enumerate(x for x in tree.bodies if x.real)
        },
    )
    m = replace(m, forces=noisy[:, 6:], wrenches={tree.bodies[0].name: noisy[:, :6]})
    del exact, noisy
    solve(observation(driven, m[:20_000], engine="compiled"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    fit = solve(observation(driven, m, engine="compiled"))
    one, one_cpu = time.perf_counter() - wall, time.process_time() - cpu
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024.0
    with ThreadPoolExecutor(2) as pool:
        wall = time.perf_counter()
        solve(observation(driven, m, engine="compiled", executor=pool))
        two = time.perf_counter() - wall
    regressor_time, qr_time, difference = _peer(driven, m[:FITS])
    scale = SAMPLES / FITS
    return (
        Result(
            one,
            one_cpu,
            two,
            extra,
            scale * (regressor_time + qr_time),
            scale * regressor_time,
            scale * qr_time,
            difference,
        )
        if fit.values.size
        else _nothing()
    )


def _nothing() -> Result:
    raise SystemExit("the fit is empty")


def _peer(tree, m) -> tuple[float, float, float]:
    """Seconds of the regressor loop and of the QR of the stacked matrix, and how far the two solutions lie apart."""
    oracle = PinModel(tree)
    data = oracle.model.createData()
    q, v, a = states(oracle, m)
    start = time.perf_counter()
    W = np.array([pin.computeJointTorqueRegressor(oracle.model, data, q[k], v[k], a[k]) for k in range(len(m))])
    loop = time.perf_counter() - start
    y = np.column_stack([next(iter(m.wrenches.values())), m.forces]) @ oracle.S.T
    stacked = np.column_stack([W.reshape(-1, W.shape[2]), y.reshape(-1)])
    start = time.perf_counter()
    R = np.linalg.qr(stacked, mode="r")
    qr = time.perf_counter() - start
    ours = observation(tree, m, engine="compiled")
    R2 = ours.stacked([1.0] * len(ours.rows))
    residual = abs(abs(R[-1, -1]) - abs(R2[-1, -1])) / abs(R[-1, -1])
    return loop, qr, float(residual)
