"""``python -m benchmarks.observers --latency``: how long single steps of a streaming observer take, the slowest among them.

Three observers as a control loop would call them, readings as arrays: an arm of seven joints (EKF with estimated forces), the buggy of
paper 003 on its circle (errorEKF of 20 states, derivatives at every fifth step) and a car of a few lines (EKF with two stiffnesses). Each
has 10⁵ steps (``--steps``) with Python's garbage collector as it is, and as many with it frozen and off, as ``docs/observers.md``
recommends. At the end of a recorded drive a new observer takes it from its start; making it is not counted.

    median_us, p99_us, worst_us    wall time of one step, µs; what else the computer does is in it
    p99_cpu_us, worst_cpu_us       processor time of the thread in one step, µs
    collections                    runs of the garbage collector while steps were made
    blocks_a_step                  blocks of memory that a step has left behind (``sys.getallocatedblocks``), the result of the step dropped
    peak_bytes                     what a step has in use at most beyond what it leaves (``tracemalloc``, which does not see machine code)
"""

from __future__ import annotations

import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.subjects import arm
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import CarNoise
from veridyn.observe.filters.methods import EKF
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer
from veridyn.papers.buggy.drive import BuggyDrive, driven
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import INPUTS, error_ekf, standing_start

Array = NDArray[np.float64]
STEPS = 100_000
FIRST = 50  # steps before the clock runs, for which code may be compiled
COUNTED = 2_000  # steps whose memory is counted
SECONDS = 20.0  # of a recorded drive
ARM_RATE, CAR_RATE = 1000.0, 100.0  # Hz
Step = tuple[float, Array, Array | None]
Subject = tuple[Callable[[], Observer], list[Step]]


@dataclass(frozen=True)
class Latency:
    """The steps of one observer under one state of the collector; the module's docstring says what the figures are."""

    observer: str
    collector: str
    steps: int
    median_us: float
    p99_us: float
    worst_us: float
    p99_cpu_us: float
    worst_cpu_us: float
    collections: int
    blocks_a_step: float
    peak_bytes: int


def arm_subject(seconds: float = SECONDS) -> Subject:
    """Seven encoders that swing slowly about a pose."""
    machine = arm()
    sensors = tuple(Sensor(f"encoder_{c}", "coordinate", c, 1e-4) for c in machine.coordinates)
    noise = ProcessNoise(force=100.0, start=0.01, start_rate=0.1, start_force=10.0)
    settings = ObserveSettings(process_noise=noise, start=dict.fromkeys(machine.coordinates, 0.3))
    t = np.arange(1, round(seconds * ARM_RATE) + 1) / ARM_RATE
    rows = 0.3 + 0.05 * np.sin(2.0 * np.pi * 0.3 * t)[:, None] * np.ones(machine.n)
    rows += 1e-4 * np.random.default_rng(0).standard_normal(rows.shape)
    seen = replace(machine, sensors=sensors)
    return lambda: Observer(seen, EKF(), settings), [(time, row, None) for time, row in zip(t.tolist(), rows)]


def buggy_subject(seconds: float = SECONDS) -> Subject:
    """The circle of paper 003 at 500 Hz."""
    truth = driven(buggy(rolling_resistance=0.015), BuggyDrive(duration=seconds, rack=-0.010))
    model = buggy(rolling_resistance=0.030)
    log, start, how = truth.log(np.random.default_rng(0), model.sensors), standing_start(model), error_ekf()
    _, rows, _ = how.beside(model, log, start)
    inputs = np.column_stack([log[name].values for name in INPUTS])
    steps: list[Step] = list(zip(truth.t.tolist(), rows, inputs, strict=True))
    return lambda: how.beside(model, log, start)[0], steps


def car_subject(seconds: float = SECONDS) -> Subject:
    """Bends at 25 m/s with a gyroscope and a lateral accelerometer, readings of a car that follows its wheel."""
    from veridyn.papers.car.drive import saloon
    from veridyn.papers.car.simulator.description import Vehicle

    car, rng = saloon(Vehicle()), np.random.default_rng(0)
    noise = ObserveSettings(process_noise=CarNoise(), parameters=("front_stiffness", "rear_stiffness"))
    t = np.arange(round(seconds * CAR_RATE)) / CAR_RATE
    steer = 0.3 * np.sin(0.9 * t)
    yaw_rate = 25.0 * steer / (16.0 * 2.7)  # a steering ratio and a wheelbase of a saloon, no slip
    rows = np.column_stack([yaw_rate, 25.0 * yaw_rate]) + [0.003, 0.1] * rng.standard_normal((len(t), 2))
    inputs = np.column_stack([np.full(len(t), 25.0), steer, np.zeros(len(t))])
    steps: list[Step] = list(zip(t.tolist(), rows, inputs, strict=True))
    return lambda: Observer(car, EKF(), noise), steps


SUBJECTS: dict[str, Callable[[float], Subject]] = {"arm": arm_subject, "buggy": buggy_subject, "car": car_subject}


def passes(made: Callable[[], Observer], steps: list[Step], count: int) -> Iterator[tuple[Observer, list[Step]]]:
    """Observers that are ready, each with the steps it is to take, `count` in all."""
    left = count
    while left > 0:
        observer = made()
        for step in steps[:FIRST]:
            observer.step(*step)
        part = steps[FIRST : FIRST + left]
        left -= len(part)
        yield observer, part


def timed(made: Callable[[], Observer], steps: list[Step], count: int, off: bool) -> tuple[Array, int]:
    """Wall and processor seconds (2, count) of single steps, and how often the collector ran; `off`: whether it was frozen and off."""
    spent, done, runs = np.empty((2, count)), 0, 0
    wall, own = time.perf_counter_ns, time.thread_time_ns
    for observer, part in passes(made, steps, count):
        step = observer.step
        gc.collect()  # what making it ready has left behind
        if off:
            gc.freeze()
            gc.disable()
        before = sum(generation["collections"] for generation in gc.get_stats())
        try:
            for t, readings, inputs in part:
                begin, processor = wall(), own()
                step(t, readings, inputs)
                spent[1, done] = own() - processor
                spent[0, done] = wall() - begin
                done += 1
        finally:
            runs += sum(generation["collections"] for generation in gc.get_stats()) - before
            if off:
                gc.enable()
                gc.unfreeze()
    return 1e-9 * spent, runs


def memory(made: Callable[[], Observer], steps: list[Step], count: int = COUNTED) -> tuple[float, int]:
    """Blocks that a step leaves behind, the mean over `count` steps, and the most bytes that one has in use beyond what it leaves."""
    observer, part = next(passes(made, steps, min(count, len(steps) - FIRST)))
    half = len(part) // 2
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        for step in part[:half]:
            observer.step(*step)
        left = (sys.getallocatedblocks() - before) / half
        tracemalloc.start()
        most = 0
        for step in part[half:]:
            tracemalloc.reset_peak()
            own = tracemalloc.get_traced_memory()[0]
            observer.step(*step)
            most = max(most, tracemalloc.get_traced_memory()[1] - own)
    finally:
        tracemalloc.stop()
        gc.enable()
    return left, most


def latencies(count: int = STEPS, seconds: float = SECONDS) -> Iterator[Latency]:
    """Every observer, with the collector as it is and off."""
    for name, subject in SUBJECTS.items():
        made, steps = subject(seconds)
        left, most = memory(made, steps)
        for word, off in (("on", False), ("frozen and off", True)):
            spent, runs = timed(made, steps, count, off)
            (median, p99, worst), (_, p99_cpu, worst_cpu) = (
                1e6 * np.quantile(spent, [0.5, 0.99, 1.0], axis=1)
            ).T.tolist()
            yield Latency(name, word, count, median, p99, worst, p99_cpu, worst_cpu, runs, left, most)


def report(count: int, as_json: bool) -> None:
    """Print a table, or JSON."""
    found = []
    for one in latencies(count):
        found.append(one)
        print(line(one), file=sys.stderr, flush=True)
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=1))
        return
    columns = (
        "median µs",
        "99 % µs",
        "worst µs",
        "99 % CPU µs",
        "worst CPU µs",
        "collections",
        "blocks a step",
        "peak bytes",
    )
    print("| observer | collector | steps | " + " | ".join(columns) + " |")
    print("|---|---|---:|" + len(columns) * "---:|")
    print(*map(line, found), sep="\n")


def line(one: Latency) -> str:
    return (
        f"| {one.observer} | {one.collector} | {one.steps} | {one.median_us:.0f} | {one.p99_us:.0f} | {one.worst_us:.0f} | "
        f"{one.p99_cpu_us:.0f} | {one.worst_cpu_us:.0f} | {one.collections} | {one.blocks_a_step:.2f} | {one.peak_bytes} |"
    )
