"""``kind: identify`` with a section ``flexible``, run: stiffness of joints from two encoders, judged by the deflection of other logs."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from veridyn.errors import DataError
from veridyn.identify.flexible.two_encoders import FlexibleFit, identify_flexible
from veridyn.model.experiment import Experiment
from veridyn.progress import Progress, silent
from veridyn.studies.config.drives import FlexibleFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, Result, fingerprint
from veridyn.studies.run.machine import model_path, study_machine
from veridyn.studies.run.recordings import Recordings, cut_log


@dataclass(frozen=True, eq=False)
class FlexibleRun:
    """The fit of the training logs, that of the validation logs beside it, and the deflections of the latter."""

    fit: FlexibleFit
    again: FlexibleFit
    logs: tuple[Experiment, ...]
    inputs: dict[str, str]
    missed: tuple[str, ...] = ()

    @cached_property
    def std_percent(self) -> dict[str, float]:
        """Joint → error of its predicted deflection, % of the standard deviation, the worst of the validation logs; where it moves."""
        return {c: max(joint.std_percent(log) for log in self.logs) for c, joint in self.fit.joints.items()}

    @cached_property
    def agreement(self) -> dict[str, float]:
        """Joint → difference of its stiffness between training and validation logs, in standard deviations of the difference."""
        out = {}
        for c, joint in self.fit.joints.items():
            a, b = joint.stiffness, self.again.joints[c].stiffness
            out[c] = abs(a.value - b.value) / float(np.hypot(a.sigma, b.sigma))
        return out

    @property
    def figures(self) -> dict[str, float]:
        """Numbers by name; joints are numbered in order."""
        out: dict[str, float] = {}
        for k, (c, joint) in enumerate(self.fit.joints.items(), 1):
            x, other = joint.stiffness, self.again.joints[c].stiffness
            out |= {f"stiffness_{k}": x.value, f"sigma_stiffness_{k}": x.sigma}
            out |= {f"stiffness_{k}_determined": float(x.determined)}
            out |= {f"stiffness_{k}_validation": other.value, f"sigma_stiffness_{k}_validation": other.sigma}
            out |= {f"stiffness_{k}_agreement": self.agreement[c]}
            out |= {f"encoder_delay_{k}": joint.own_delay[0], f"sigma_encoder_delay_{k}": joint.own_delay[1]}
            out |= {f"deflection_std_percent_{k}": self.std_percent[c]}
            at_rest = max(joint.std_percent(log, at_rest=True) for log in self.logs)
            out |= {f"deflection_at_rest_std_percent_{k}": at_rest}
        out |= {"encoder_delay": self.fit.delay, "sigma_encoder_delay": self.fit.delay_sigma}
        out |= {"encoder_delay_validation": self.again.delay, "sigma_encoder_delay_validation": self.again.delay_sigma}
        return out | {"deflection_std_percent": max(self.std_percent.values())}

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        """What is not determined is no parameter of the result; the warnings name it."""
        rows = [
            ParameterRow(f"{x.name}_{c}", x.unit, x.value, x.sigma, 100.0 * x.sigma / abs(x.value), x.prior)
            for c, joint in self.fit.joints.items()
            for x in joint.quantities.values()
            if x.determined
        ]
        checks = {}
        for c, joint in self.fit.joints.items():
            y = np.concatenate([joint.predict(log)[0].deflection for log in self.logs])
            own = {"samples": float(len(y)), "measured_std": float(np.std(y))}
            checks[c] = own | {"error_std_percent": self.std_percent[c]}
        told = (*warnings, *self.fit.notes())
        return Result(name, seed, False, self.inputs, self.figures, tuple(rows), checks, told)

    def table(self) -> str:
        """Measured and predicted deflection of every joint on the validation logs, rad or m, as CSV."""
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(("log", "joint", "t", "measured", "predicted"))
        for log in self.logs:
            for c, joint in self.fit.joints.items():
                samples, predicted = joint.predict(log)
                y = samples.deflection - np.mean(samples.deflection - predicted)
                for row in zip(samples.t, y, predicted, strict=True):
                    out.writerow((log.name, c, *(f"{x:.9g}" for x in row)))
        return text.getvalue()


def run_flexible(loaded: Loaded[FlexibleFile], progress: Progress = silent) -> FlexibleRun:
    """Read the logs, fit the joints to those for training and, beside it, to those for validation, and compare."""
    study = loaded.study
    machine = study_machine(loaded, ("model",), study.model, "unknown")
    progress("reading the logs", 0.0, None)
    inner: Loaded[Any] = loaded
    recorded = Recordings(inner)
    own, joints = study.flexible.settings(), study.flexible.joints
    with loaded.placing(("flexible",), DataError):
        training, validation = (
            [cut_log(recorded, part) for part in some] for some in (recorded.training, recorded.validation)
        )
        progress("fitting the joints", 0.0, None)
        fit = identify_flexible(machine, training, joints=joints, settings=own)
        again = identify_flexible(machine, validation, joints=joints, settings=own)
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(model_path(loaded, ("model",), study.model))}
    run = FlexibleRun(fit, again, tuple(validation), {**inputs, **recorded.hashes})
    return FlexibleRun(fit, again, run.logs, run.inputs, tuple(_missed(loaded, run)))


def _missed(loaded: Loaded[FlexibleFile], run: FlexibleRun) -> list[str]:
    accept, out = loaded.study.accept, []
    for c, limit in accept.deflection_std_percent.items():
        if c not in run.std_percent:
            at = ("accept", "deflection_std_percent", c)
            raise loaded.error_at(at, f"'{c}' is none of the joints.", ", ".join(run.std_percent))
        if not run.std_percent[c] <= limit:
            out.append(
                f"deflection of {c}, % of its standard deviation: {run.std_percent[c]:.4g}, and at most {limit:g} is accepted."
            )
    for c, off in run.agreement.items():
        if accept.agreement is not None and not off <= accept.agreement:
            out.append(
                f"stiffness of {c} differs by {off:.3g} standard deviations, and at most {accept.agreement:g} is accepted."
            )
    return out
