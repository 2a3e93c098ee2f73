"""One experiment designed as a study file says: the plan, the table a controller runs, and what is promised of each parameter."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, did_you_mean
from veridyn.files.machine.urdf import UrdfLimits, urdf_limits
from veridyn.files.yaml_plain import Place
from veridyn.identify.excitation.closed import closed_samples, plant_of
from veridyn.identify.excitation.design import design_excitation
from veridyn.identify.excitation.limits import Clearance, Limits
from veridyn.identify.excitation.plan import ExcitationPlan, Noise
from veridyn.identify.excitation.plant import Plant
from veridyn.identify.excitation.shape import SHAPES
from veridyn.identify.interior import Barrier
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree
from veridyn.progress import Progress, silent
from veridyn.signals.trajectory import JointLimits
from veridyn.studies.config.excite import ExciteFile, RangeSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, Result, fingerprint
from veridyn.studies.run.executors import executor_of
from veridyn.studies.run.machine import model_path, tree_of

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExcitationStudy:
    """A plan for a tree. `motion` holds all coordinates over the running up and one period; `missed` are sentences about deviations
    larger than the study file accepts."""

    tree: Tree
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
            own = [self.tree.coordinates.index(name) for name in self.plant.bounded]
            blocks.append((list(self.plant.bounded), whole.q[:, own], whole.qd[:, own], whole.qdd[:, own]))
        head, columns = ["time [s]"], [t]
        kinds = dict(zip(self.tree.coordinates, self.tree.coordinate_kinds, strict=True))
        for labels, *orders in blocks:
            for order, (prefix, per) in zip(orders, (("q", ""), ("qd", "/s"), ("qdd", "/s^2")), strict=True):
                head += [f"{prefix}.{n} [{'m' if kinds[n] == 'sliding' else 'rad'}{per}]" for n in labels]
                columns += list(order.T)
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(head)
        out.writerows([f"{value:.10g}" for value in row] for row in np.column_stack(columns))
        return text.getvalue()


def excitation(loaded: Loaded[ExciteFile], progress: Progress = silent) -> ExcitationStudy:
    """Design what a study file of kind excite asks for."""
    s = loaded.study
    tree = tree_of(loaded, ("model",), s.model)
    plant = plant_of(tree, s.rows if isinstance(s.rows, str) else list(s.rows), s.motion.at or None)
    limits = _limits(loaded, plant)
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
            centre=_centre(loaded, plant),
            rng=np.random.default_rng(s.seed),
            executor=executor,
            progress=progress,
        )
    t, *x = plan.samples(1)
    missed = []
    for name, most in s.accept.items():
        _known(loaded, ("accept", name), name, plan.names, "base parameter")
        sigma = float(plan.sigma[plan.names.index(name)])
        if sigma > most:
            missed.append(f"{name} is promised a deviation of {sigma:.4g}, and at most {most:.4g} was to be.")
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(model_path(loaded, ("model",), s.model))}
    return ExcitationStudy(tree, plant, plan, closed_samples(plant, t, np.stack(x)), tuple(missed), inputs)


def _limits(loaded: Loaded[ExciteFile], plant: Plant) -> Limits:
    own = loaded.study.limits
    actuators = _ranges(loaded, ("limits", "actuators"), own.actuators, plant.bounded)
    model = model_path(loaded, ("model",), loaded.study.model)
    if actuators is None and model.suffix.lower() == ".urdf":
        actuators = _of_urdf(plant, urdf_limits(model))
    force = None
    if own.force:
        missing = [row for row in plant.rows if row not in own.force]
        for name in own.force:
            _known(loaded, ("limits", "force", name), name, plant.rows, "row")
        if missing:
            raise loaded.error(
                loaded.fault(
                    ("limits", "force"), f"no force is given for {', '.join(missing)}.", hint="Give all or none."
                )
            )
        force = [own.force[row] for row in plant.rows]
    return Limits(
        actuators,
        _ranges(loaded, ("limits", "coordinates"), own.coordinates, plant.coordinates),
        force,
        {body: (box.low, box.high) for body, box in own.workspace.items()},
        tuple(Clearance(c.body, c.other, c.distance, c.point, c.other_point) for c in own.clearances),
    )


def _ranges(
    loaded: Loaded[ExciteFile], at: Place, given: Mapping[str, RangeSettings], names: tuple[str, ...]
) -> JointLimits | None:
    if not given:
        return None
    for name in given:
        _known(loaded, (*at, name), name, names, "coordinate")
    free = RangeSettings()
    each = [given.get(name, free) for name in names]
    ends = [e.range or (-np.inf, np.inf) for e in each]
    return JointLimits(
        low=np.array([low for low, _ in ends]),
        high=np.array([high for _, high in ends]),
        speed=np.array([np.inf if e.speed is None else e.speed for e in each]),
        acceleration=np.array([np.inf if e.acceleration is None else e.acceleration for e in each]),
    )


def _of_urdf(plant: Plant, found: Mapping[str, UrdfLimits]) -> JointLimits | None:
    """Ranges and speeds as the URDF has them; accelerations are none of its business."""
    rows = [found[name] for name in plant.bounded if name in found]
    if len(rows) < len(plant.bounded):
        return None
    low, high, speed = (np.array([getattr(row, key) for row in rows]) for key in ("lower", "upper", "velocity"))
    return JointLimits(low, high, np.where(speed > 0.0, speed, np.inf), np.full(len(rows), np.inf))


def _noise(loaded: Loaded[ExciteFile], plant: Plant) -> Noise:
    n = loaded.study.noise
    for name in n.sigma:
        _known(loaded, ("noise", "sigma", name), name, plant.rows, "row")
    s = np.array([n.sigma.get(row, 1.0) for row in plant.rows])
    return Noise(((1.0 - n.correlation) * np.eye(len(s)) + n.correlation) * np.outer(s, s), n.memory)


def _centre(loaded: Loaded[ExciteFile], plant: Plant) -> Array | None:
    given = loaded.study.motion.centre
    if not given:
        return None
    for name in given:
        _known(loaded, ("motion", "centre", name), name, plant.coordinates, "coordinate")
    missing = [name for name in plant.coordinates if name not in given]
    if missing:
        raise loaded.error(loaded.fault(("motion", "centre"), f"no place is given for {', '.join(missing)}."))
    return np.array([given[name] for name in plant.coordinates])


def _known(loaded: Loaded[ExciteFile], at: Place, name: str, names: tuple[str, ...], what: str) -> None:
    if name not in names:
        fault: Fault = loaded.fault(at, f"'{name}' is no {what} of this machine.", hint=did_you_mean(name, names))
        raise loaded.error(fault)
