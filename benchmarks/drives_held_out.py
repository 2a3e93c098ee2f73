"""``python -m benchmarks.drives --foreign --circumstances limit``: what fits of drives that lack a law do to data that they have not seen.

Each seed is the quadruped of :mod:`benchmarks.foreign.quadruped`, FITTED seconds of its log fitted and HELD_OUT behind them simulated on.
Circumstances that the fit is not told of:

    ideal   none: sampled PD drives
    limit   a limit of each drive's torque, which its law reaches in about LIMITED of the samples
    right   none, and the file has the true values: what is found of it is a false alarm

Printed are the share of the samples at a limit, the rms of the encoders held out with the fit and with the values of the file, and
whether the verdict is red (a grade "poor", with a finding).
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import veridyn as vd
from benchmarks.foreign.quadruped import (
    JOINTS,
    KD,
    KP,
    LEGS,
    RATE,
    TICKS,
    TrueDrives,
    commands,
    drawn,
    driven,
    machine,
    recorded,
)
from veridyn.errors import IdentificationError, VeridynWarning
from veridyn.identify.drives.drive_result import rms_of_all
from veridyn.identify.drives.drive_unknowns import with_drives
from veridyn.identify.drives.held_out import WORSE_THAN_FILE

CIRCUMSTANCES = ("ideal", "limit", "right")
FITTED, HELD_OUT = 10.0, 5.0  # s
LIMITED = 0.05  # of the samples of each joint


@dataclass(frozen=True)
class Foreseen:
    """One quadruped, or some of its legs: `limited` is the share of samples at a limit; `failed`: the error of a fit that ended in one."""

    seed: int
    circumstance: str
    limited: float = 0.0
    fitted: float = np.nan
    held_out: float = np.nan
    of_file: float = np.nan
    red: bool = False
    seconds: float = 0.0
    failed: str = ""

    @property
    def worse(self) -> bool:
        """Whether the file is better on what was held out, beyond chance or not."""
        return self.held_out > self.of_file


def foreseen(seed: int, circumstance: str, legs: Sequence[str] = LEGS) -> Foreseen:
    """The fit of one seed, or of some legs of it; `seconds` are of the processor, without the simulation."""
    rng = np.random.default_rng(seed)
    truth = drawn(rng, "coulomb")
    again = np.random.default_rng([seed, 1])
    own = [k for k, joint in enumerate(JOINTS) if joint.partition("_")[0] in legs]
    limit, share = np.full(len(JOINTS), np.inf), 0.0
    if circumstance == "limit":
        t = np.arange(int((FITTED + HELD_OUT) * RATE) + 1) / RATE
        asked = commands(np.random.default_rng([seed, 1]), t)
        limit = np.quantile(np.abs(driven(truth, asked)[1]), 1.0 - LIMITED, axis=0)
        share = float((np.abs(driven(truth, asked, limit)[1]) > limit)[:, own].mean())
    log = recorded(truth, FITTED + HELD_OUT, again, limit)
    with tempfile.TemporaryDirectory() as folder:
        robot = machine(Path(folder), legs)
    if circumstance == "right":
        robot = with_truth(robot, truth, legs)
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VeridynWarning)
            fit = vd.identify(robot, log, vd.estimators.Drives(kp=KP, kd=KD, until=FITTED))
    except IdentificationError as error:
        return Foreseen(seed, circumstance, share, seconds=time.process_time() - begin, failed=str(error))
    assert isinstance(fit, vd.estimators.DrivesFit)
    return Foreseen(
        seed,
        circumstance,
        share,
        rms_of_all(fit.replays, 0.0, fit.until),
        fit.rms_held_out,
        fit.rms_held_out_defaults,
        fit.verdict.grade == "poor" and any(f.cause == WORSE_THAN_FILE for f in fit.findings),
        time.process_time() - begin,
    )


def with_truth(robot: vd.Machine, truth: TrueDrives, legs: Sequence[str]) -> vd.Machine:
    """The machine with drives as they are."""
    robot, named = with_drives(robot, KP, KD, TICKS), truth.named
    delays = {joint: named[f"{leg}.command_delay"] for leg in legs for joint in JOINTS if joint.startswith(leg)}
    own = {c.on: {key: named[f"{c.name}.{key}"] for key in ("kp", "kd", "zero")} for c in robot.controllers}
    return robot.with_parameters({n: x for n, x in named.items() if n in robot.parameters.names}).with_controllers(
        [replace(c, constants={**c.constants, **own[c.on], "command_delay": delays[c.on]}) for c in robot.controllers]
    )


def one_of(job: tuple[int, str]) -> Foreseen:
    """Of a seed and its circumstance."""
    return foreseen(*job)


def held_out_lines(found: Sequence[Foreseen]) -> list[str]:
    """A table of Markdown, and a line with how many were worse than the file, and how many verdicts were red."""
    text = [
        "| circumstance | seed | at a limit % | fitted, mrad | held out, mrad | values of the file, mrad | red | CPU s |",
        "|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    for o in found:
        numbers = " | ".join(f"{1e3 * x:.2f}" for x in (o.fitted, o.held_out, o.of_file))
        red = "failed" if o.failed else "yes" if o.red else "no"
        text.append(f"| {o.circumstance} | {o.seed} | {100.0 * o.limited:.1f} | {numbers} | {red} | {o.seconds:.1f} |")
    fits = [o for o in found if not o.failed]
    worse = [o for o in fits if o.worse]
    red, silent = sum(o.red for o in worse), sum(o.worse and not o.red for o in fits if o.circumstance == "limit")
    closing = (
        f"worse than the file on held-out data: {len(worse)} of {len(fits)} fits, {red} of them with a red verdict; with a limit {silent} "
        f"without one (goal 0), and of files that are right {sum(o.red for o in fits if o.circumstance == 'right')} red (goal 0)."
    )
    return [*text, "", closing, *(f"seed {o.seed}: {o.failed}" for o in found if o.failed)]
