"""Drives judged on other logs: every encoder simulated from commands alone, against what was measured, joint by joint."""

from __future__ import annotations

import math
from typing import Any

from veridyn.errors import CapabilityError, DataError, Limit
from veridyn.identify.drives.drive_result import DrivesFit
from veridyn.identify.error_measures import Moments, RowReport
from veridyn.identify.result import Fit
from veridyn.identify.validation import Validation
from veridyn.model.experiment import Experiment
from veridyn.progress import Progress, silent

NO_FORCES = Limit(
    "its log has commands and positions, and no forces or filters to compare",
    "Leave 'by' out: a fit of drives is judged by its simulation.",
)


def validate_drives(fit: Fit, data: Any, by: str = "fit", progress: Progress = silent, **others: Any) -> Validation:
    """What ``validate`` does with a fit of drives: `data` are logs with ``command.JOINT`` and ``position.JOINT``.

    Each simulation starts once, at the first sample, and sees nothing but commands from then on.
    """
    if not isinstance(fit, DrivesFit):
        raise DataError("it is no fit of drives.", where="validate, fit", found=fit.estimator)
    if by not in ("fit", "simulation"):
        raise CapabilityError(
            fit.described.formulation, f"validation of drives by {by}", *NO_FORCES, where="validate, by"
        )
    for name, value in others.items():
        if value is not None:
            raise DataError(
                f"'{name}' belongs to equations of forces.",
                where="validate",
                hint="Drives are judged by validate(fit, log): every sample of the log.",
                source=fit.described.name,
            )
    logs: list[Any] = list(data) if isinstance(data, list | tuple) else [data]
    joints = fit.replay.joints
    error, size = dict.fromkeys(joints, 0.0), dict.fromkeys(joints, Moments())
    for k, log in enumerate(logs):
        if not isinstance(log, Experiment):
            hint = "Read it with veridyn.load_log; its channels are command.JOINT and position.JOINT."
            raise DataError("drives are judged on logs.", where="validate, data", found=type(log).__name__, hint=hint)
        progress("simulating the encoders", float(k), float(len(logs)))
        replay = fit.simulate(log)
        for j, joint in enumerate(joints):
            error[joint] += float(((replay.measured[:, j] - replay.simulated[:, j]) ** 2).sum())
            size[joint] = size[joint].merge(Moments.of(replay.measured[:, j]))
    kinds = fit.described.kinds
    return Validation(
        tuple(
            RowReport(
                row=joint,
                samples=m.samples,
                rms=math.sqrt(error[joint] / m.samples) if m.samples else math.nan,
                measured_rms=m.rms,
                measured_std=m.std,
                noise=m.noise,
                unit="rad" if kinds[joint] == "turning" else "m",
            )
            for joint, m in size.items()
        ),
        by="simulation",
        fit=fit,
    )
