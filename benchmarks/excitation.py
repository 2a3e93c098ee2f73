"""D-optimal excitation of a 7-joint arm: with exact gradients, and the same search with finite differences."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects import arm
from veridyn.identify.excitation.design import design_excitation, problem_of
from veridyn.identify.excitation.interior import Barrier, minimise
from veridyn.identify.excitation.plan import ExcitationPlan
from veridyn.identify.excitation.problem import ExcitationProblem, drawn
from veridyn.identify.excitation.shape import Fourier
from veridyn.model.machine import Machine
from veridyn.signals.trajectory import JointLimits

Array = NDArray[np.float64]

# Ranges, speeds and accelerations of the Franka Panda as its maker publishes them ("Robot and interface specifications").
LIMITS = JointLimits(
    low=np.array([-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973]),
    high=np.array([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973]),
    speed=np.array([2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61]),
    acceleration=np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0]),
)
LONG_RUNS, ALLOWED = 20, 60.0  # searches that make the reference; seconds for the design
STEP = 1e-6  # of the scaled unknowns, of a forward difference


@dataclass(frozen=True)
class Result:
    """Seconds of the design and of the reference; D-efficiencies against the best of the long runs, of the design and of finite
    differences in as many seconds; seconds of one gradient either way."""

    seconds: float
    efficiency: float
    reference_seconds: float
    difference_efficiency: float
    difference_seconds: float
    gradient: float
    difference_gradient: float
    parameters: int


def excitation() -> Result:
    """Five harmonics of 0.1 Hz, 43 base parameters, 77 unknowns. The reference and the design start from different random motions."""
    machine = arm()
    with ThreadPoolExecutor(2) as pool:
        design_excitation(machine, LIMITS, starts=2, barrier=Barrier(iterations=2), executor=pool)  # compiles
        begin = time.perf_counter()
        plan = design_excitation(
            machine, LIMITS, starts=8, barrier=Barrier(iterations=250), rng=np.random.default_rng(1), executor=pool
        )
        seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        best = _reference(machine, pool)
        long = time.perf_counter() - begin
    rng = np.random.default_rng(1)
    problem, place, _ = problem_of(machine, LIMITS, Fourier(), rng=rng)
    start = drawn(problem, place, rng.spawn(1)[0])
    exact = _timed(lambda: problem.value(start))
    coarse = _timed(lambda: _differences(problem, start))
    begin = time.perf_counter()
    iterations = max(2, int(seconds / coarse))
    found = minimise(problem.limited(lambda u: _differences(problem, u)), start, Barrier(iterations=iterations))
    slow = time.perf_counter() - begin
    return Result(
        seconds,
        plan.efficiency(best),
        long,
        float(np.exp(best.value - found.goal)),
        slow,
        exact,
        coarse,
        plan.base.count,
    )


def _reference(machine: Machine, pool: ThreadPoolExecutor) -> ExcitationPlan:
    return design_excitation(
        machine,
        LIMITS,
        starts=LONG_RUNS,
        barrier=Barrier(iterations=1000, last=1e-6, tolerance=0.1),
        rng=np.random.default_rng(2),
        executor=pool,
    )


def _differences(problem: ExcitationProblem, u: Array) -> tuple[float, Array]:
    """The goal and its gradient by forward differences: one more evaluation for each unknown."""
    here = problem.goal_alone(u)
    slope = np.array([(problem.goal_alone(u + STEP * e) - here) / STEP for e in np.eye(len(u))])
    return here, slope


def _timed(work: Callable[[], object], repeat: int = 5) -> float:
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def line(r: Result) -> str:
    """What the benchmark prints."""
    return (
        f"- D-optimal excitation of the 7-joint arm (5 harmonics, {r.parameters} base parameters, limits on position, speed and "
        f"acceleration): {r.seconds:.1f} s on two cores (allowed {ALLOWED:.0f}), D-efficiency {r.efficiency:.3f} against the best of "
        f"{LONG_RUNS} long runs ({r.reference_seconds:.0f} s). Finite differences reach {r.difference_efficiency:.3f} in "
        f"{r.difference_seconds:.1f} s; one gradient takes {1e3 * r.gradient:.1f} ms, by differences {1e3 * r.difference_gradient:.0f} ms."
    )


if __name__ == "__main__":
    print(line(excitation()))
