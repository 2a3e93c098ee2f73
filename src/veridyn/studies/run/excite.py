"""One experiment designed as a study file says: the plan, the table a controller runs, and what is promised of each parameter."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import IdentificationWarning, warn
from veridyn.files.controllers import joint_trajectory
from veridyn.identify.excitation.closed import closed_samples, plant_of
from veridyn.identify.excitation.design import design_excitation
from veridyn.identify.excitation.interior import Barrier
from veridyn.identify.excitation.plan import ExcitationPlan, Noise
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.excitation.shape import SHAPES
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.studies.config.excite import ExciteFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, Result, fingerprint
from veridyn.studies.run.excite_limits import check_name, limits_of
from veridyn.studies.run.executors import executor_of
from veridyn.studies.run.machine import model_path, study_machine

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExcitationStudy:
    """A plan for a machine. `motion` holds all coordinates over the running up and one period; `missed` are sentences about deviations
    larger than the study file accepts."""

    machine: Machine
    plant: Plant
    plan: ExcitationPlan
    motion: Motion
    missed: tuple[str, ...]
    inputs: Mapping[str, str]

    @property
    def figures(self) -> dict[str, float]:
        """Numbers to judge the plan by, named as in `result.json`."""
        p = self.plan
        relative = p.relative_sigma
        return {
            "base_parameters": float(len(p.names)),
            "criterion": p.value,
            "condition": p.condition,
            "frequency": p.frequency,
            "period": p.trajectory.period,
            "lead": p.lead,
            "duration": p.lead + p.periods * p.trajectory.period,
            "starts": float(len(p.goals)),
            "well_identified": float((relative < 10.0).sum()),
            "share_of_tightest_limit": max(p.used.values()),
            "limits_checked": float(len(p.used)),
            "limits_not_checked": float(len(p.unchecked)),
            "noise_assumed": float(p.noise.assumed),
        }

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        """One row for each base parameter: its prior, and the deviation it is promised."""
        p = self.plan
        columns = (p.priors, p.sigma, p.relative_sigma, p.priors)
        return tuple(
            ParameterRow(name, unit, *(float(x) for x in numbers))
            for name, unit, *numbers in zip(p.names, p.units, *columns, strict=True)
        )

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        return Result(name, seed, False, self.inputs, self.figures, self.parameters, {}, warnings)

    def table(self) -> str:
        """The motion as CSV for a controller, from rest through all periods: time, then position, speed and acceleration of each
        designed coordinate, then the same of the actuators where these are others."""
        t, x, xd, xdd = self.plan.samples()
        names = list(self.plan.coordinates)
        blocks = [(names, x, xd, xdd)]
        if self.plant.bounded != self.plant.coordinates:
            whole = closed_samples(self.plant, t, np.stack([x, xd, xdd]))
            own = [self.machine.coordinates.index(name) for name in self.plant.bounded]
            blocks.append((list(self.plant.bounded), whole.q[:, own], whole.qd[:, own], whole.qdd[:, own]))
        head, columns = ["time [s]"], [t]
        kinds = dict(zip(self.machine.coordinates, self.machine.coordinate_kinds, strict=True))
        for labels, *orders in blocks:
            for order, (prefix, per) in zip(orders, (("q", ""), ("qd", "/s"), ("qdd", "/s^2")), strict=True):
                head += [f"{prefix}.{n} [{'m' if kinds[n] == 'sliding' else 'rad'}{per}]" for n in labels]
                columns += list(order.T)
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(head)
        out.writerows([f"{value:.10g}" for value in row] for row in np.column_stack(columns))
        return text.getvalue()

    def ros(self) -> str:
        """The motion of the actuators as the text of a trajectory_msgs/JointTrajectory, with efforts where the model has values."""
        t, *x = self.plan.samples()
        X = np.stack(x)
        whole = closed_samples(self.plant, t, X)
        own = [self.machine.coordinates.index(name) for name in self.plant.bounded]
        effort = None
        values = self.plan.priors
        if np.isfinite(values).all() and self.plant.rows == self.plant.bounded:
            effort = self.plant.regressor(X) @ values
        return joint_trajectory(self.plant.bounded, t, whole.q[:, own], whole.qd[:, own], whole.qdd[:, own], effort)


def excitation(loaded: Loaded[ExciteFile], progress: Progress = silent) -> ExcitationStudy:
    """Design what a study file of kind excite asks for."""
    s = loaded.study
    machine = study_machine(loaded, ("model",), s.model)
    plant = plant_of(machine, s.rows if isinstance(s.rows, str) else list(s.rows), s.motion.at or None)
    limits = limits_of(loaded, plant)
    size = "harmonics" if s.motion.kind == "fourier" else "points"
    settings = {size: getattr(s.motion, size), "frequency": s.motion.frequency}
    with executor_of(loaded) as executor:
        plan = design_excitation(
            plant,
            limits,
            loaded.build(("motion",), SHAPES[s.motion.kind], settings),
            criterion=s.search.criterion,
            noise=_noise(loaded, plant),
            rate=s.rate,
            periods=s.periods,
            starts=s.search.starts,
            barrier=Barrier(iterations=s.search.iterations),
            centre=_places(loaded, plant, "centre", loaded.study.motion.centre),
            start=_start(loaded, plant),
            rng=np.random.default_rng(s.seed),
            executor=executor,
            progress=progress,
        )
    t, *x = plan.samples(1)
    missed = []
    for name, most in s.accept.items():
        check_name(loaded, ("accept", name), name, plan.names, "base parameter")
        sigma = float(plan.sigma[plan.names.index(name)])
        if sigma > most:
            missed.append(f"{name} is promised a deviation of {sigma:.4g}, and at most {most:.4g} was to be.")
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(model_path(loaded, ("model",), s.model))}
    return ExcitationStudy(machine, plant, plan, closed_samples(plant, t, np.stack(x)), tuple(missed), inputs)


def _noise(loaded: Loaded[ExciteFile], plant: Plant) -> Noise:
    n = loaded.study.noise
    for name in n.sigma:
        check_name(loaded, ("noise", "sigma", name), name, plant.rows, "row")
    missing = [row for row in plant.rows if row not in n.sigma]
    if missing and n.sigma:
        fault = loaded.fault(
            ("noise", "sigma"), f"no deviation is given for {', '.join(missing)}.", hint="Give all or none."
        )
        raise loaded.error(fault)
    if missing:
        warn(
            IdentificationWarning,
            loaded.fault(
                ("noise",),
                "no noise is given, so 1 N or N*m is assumed on every row: only ratios of the promised deviations count.",
                hint="Give noise: {sigma: {row: …}}: the residual of a first identification, or what a torque shows at rest.",
            ),
        )
    s = np.array([n.sigma.get(row, 1.0) for row in plant.rows])
    covariance = ((1.0 - n.correlation) * np.eye(len(s)) + n.correlation) * np.outer(s, s)
    return Noise(covariance, n.memory, assumed=bool(missing))


def _places(loaded: Loaded[ExciteFile], plant: Plant, key: str, given: Mapping[str, float]) -> Array | None:
    """Designed coordinates (n,) from names; NaN where one is left out, None where all are."""
    for name in given:
        check_name(loaded, ("motion", key, name), name, plant.coordinates, "coordinate")
    return np.array([given.get(name, np.nan) for name in plant.coordinates]) if given else None


def _start(loaded: Loaded[ExciteFile], plant: Plant) -> Array | None:
    x = _places(loaded, plant, "start", loaded.study.motion.start)
    if x is not None and np.isnan(x).any():
        missing = [name for name, v in zip(plant.coordinates, x, strict=True) if np.isnan(v)]
        what = f"no place is given for {', '.join(missing)}, and the machine stands somewhere."
        raise loaded.error(loaded.fault(("motion", "start"), what))
    return x
