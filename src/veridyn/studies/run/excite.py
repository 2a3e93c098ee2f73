"""One experiment designed as a study file says: the plan, the table a controller runs, and what is promised of each parameter.

Its limits are the study's own, and those of a URDF where it leaves them out; a limit that neither gives is named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import IdentificationWarning, did_you_mean, warn
from veridyn.files.machine.urdf import UrdfLimits, urdf_limits
from veridyn.files.machine.urdf_shapes import PACKAGES, urdf_capsules
from veridyn.files.yaml_reader import Place
from veridyn.identify.excitation.capsules import FLOOR, Capsule, Collision, always_touching, moving, separable, without
from veridyn.identify.excitation.design import design_excitation
from veridyn.identify.excitation.interior import Barrier
from veridyn.identify.excitation.limits import Clearance, Limits
from veridyn.identify.excitation.plan import ExcitationPlan, Noise
from veridyn.identify.excitation.plant import Plant, closed_samples, plant_of
from veridyn.identify.excitation.shape import SHAPES
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.place import GROUND
from veridyn.progress import Progress, silent
from veridyn.signals.trajectory import JointLimits
from veridyn.studies.config.excite import CollisionSettings, ExciteFile, RangeSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, Result, csv_text, fingerprint, parameter_rows
from veridyn.studies.run.estimation import executor_of
from veridyn.studies.run.machine import links_of, model_path, study_machine

POSTURES = 300  # random ones, in which a pair of bodies must come apart at least once to be checked

LISTED_NOTES = 8  # bodies that a message names, with what is wrong with their shapes


def limits_of(loaded: Loaded[ExciteFile], plant: Plant) -> Limits:
    """All limits of a study; what is not checked is in `unchecked`, where Limits cannot see it by itself."""
    own = loaded.study.limits
    file = model_path(loaded, ("model",), loaded.study.model)
    is_urdf = file.suffix.lower() == ".urdf"
    found = urdf_limits(file) if is_urdf else {}
    actuators = _actuators(loaded, plant, found)
    force, notes = _forces(loaded, plant, found)
    collision, skipped = (None, []) if own.collision is None else _collision(loaded, plant, own.collision, actuators)
    return Limits(
        actuators,
        _ranges(loaded, ("limits", "coordinates"), own.coordinates, plant.coordinates),
        force=force,
        workspace={body: (box.low, box.high) for body, box in own.workspace.items()},
        clearances=tuple(Clearance(c.body, c.other, c.distance, c.point, c.other_point) for c in own.clearances),
        collision=collision,
        endless=tuple(n for n in plant.bounded if n in found and np.isinf(found[n].upper) and n not in own.actuators),
        unchecked=(*notes, *skipped),
    )


def check_name(loaded: Loaded[ExciteFile], at: Place, name: str, names: tuple[str, ...], what: str) -> None:
    """Refuse a name that is none of these."""
    if name not in names:
        raise loaded.error_at(at, f"'{name}' is no {what} of this machine.", hint=did_you_mean(name, names))


def _actuators(loaded: Loaded[ExciteFile], plant: Plant, found: Mapping[str, UrdfLimits]) -> JointLimits | None:
    """Ranges, speeds and accelerations: of the study, of the URDF, infinite; None where neither says anything."""
    own = loaded.study.limits
    given = _ranges(loaded, ("limits", "actuators"), own.actuators, plant.bounded)
    spread = own.acceleration if isinstance(own.acceleration, dict) else {}
    for name, value in spread.items():
        check_name(loaded, ("limits", "acceleration", name), name, plant.bounded, "actuator")
        _positive(loaded, ("limits", "acceleration", name), value)
    if isinstance(own.acceleration, float):
        _positive(loaded, ("limits", "acceleration"), own.acceleration)
        spread = dict.fromkeys(plant.bounded, own.acceleration)
    n = len(plant.bounded)
    low, high, speed, hard = (np.full(n, sign * np.inf) for sign in (-1.0, 1.0, 1.0, 1.0))
    for k, name in enumerate(plant.bounded):
        limit = found.get(name, UrdfLimits())
        if "range" in own.urdf:
            low[k], high[k] = limit.lower, limit.upper
        if "speed" in own.urdf and limit.velocity > 0.0:
            speed[k] = limit.velocity
        hard[k] = spread.get(name, np.inf)
    if given is not None:
        ranged = np.isfinite(given.low)
        low, high = np.where(ranged, given.low, low), np.where(ranged, given.high, high)
        speed = np.where(np.isfinite(given.speed), given.speed, speed)
        hard = np.where(np.isfinite(given.acceleration), given.acceleration, hard)
    stuck = [name for name, a, b in zip(plant.bounded, low, high, strict=True) if not a < b]
    if stuck:
        what = f"the URDF leaves {', '.join(stuck)} no room to move."
        hint = "Give its range under limits.actuators, or make the joint fixed."
        raise loaded.error_at(("limits", "actuators"), what, hint=hint)
    if not np.isfinite(np.concatenate([high - low, speed, hard])).any():
        return None
    return JointLimits(low, high, speed, hard)


def _positive(loaded: Loaded[ExciteFile], at: Place, value: float) -> None:
    if not value > 0.0:
        raise loaded.error_at(at, "an acceleration must be above zero.", found=f"{value:g}")


def _forces(
    loaded: Loaded[ExciteFile], plant: Plant, found: Mapping[str, UrdfLimits]
) -> tuple[list[float] | None, list[str]]:
    """The largest force of each row, infinite where nobody gives one; and what that leaves unchecked for another reason."""
    own = loaded.study.limits
    for name, value in own.force.items():
        check_name(loaded, ("limits", "force", name), name, plant.rows, "row")
        if not value > 0.0:
            raise loaded.error_at(("limits", "force", name), "a force must be above zero.", found=f"{value:g}")
    force = []
    for row in plant.rows:
        effort = found[row].effort if row in found and "force" in own.urdf else np.inf
        force.append(own.force.get(row, effort if effort > 0.0 else np.inf))
    if not np.isfinite(force).any():
        return None, []
    values = plant.base.reduce(plant.base.parameters.values)
    if not np.isfinite(values).all() and not own.force:
        missing = len(plant.base.parameters.missing())
        return None, [f"efforts of the URDF ({missing} parameters of the model have no value to predict forces with)"]
    return force, []


def _ranges(
    loaded: Loaded[ExciteFile], at: Place, given: Mapping[str, RangeSettings], names: tuple[str, ...]
) -> JointLimits | None:
    if not given:
        return None
    for name in given:
        check_name(loaded, (*at, name), name, names, "coordinate")
    free = RangeSettings()
    each = [given.get(name, free) for name in names]
    ends = [e.range or (-np.inf, np.inf) for e in each]
    return JointLimits(
        low=np.array([low for low, _ in ends]),
        high=np.array([high for _, high in ends]),
        speed=np.array([np.inf if e.speed is None else e.speed for e in each]),
        acceleration=np.array([np.inf if e.acceleration is None else e.acceleration for e in each]),
    )


def _collision(
    loaded: Loaded[ExciteFile], plant: Plant, c: CollisionSettings, actuators: JointLimits | None
) -> tuple[Collision, list[str]]:
    """Capsules, pairs of bodies and the floor; and what is not checked among them, with reasons."""
    at: Place = ("limits", "collision")
    bodies = plant.machine.body_names
    capsules = []
    for k, s in enumerate(c.capsules):
        check_name(loaded, (*at, "capsules", k, "body"), s.body, (*bodies, GROUND), "body")
        capsules.append(Capsule(s.body, s.start, s.start if s.end is None else s.end, s.radius))
    ignored: list[frozenset[str]] = []
    for k, pair in enumerate(c.ignore):
        for name in pair:
            check_name(loaded, (*at, "ignore", k), name, (*bodies, GROUND, "floor"), "body")
        ignored.append(frozenset(pair))
    notes = [f"collisions of {' and '.join(sorted(pair))} (ignored)" for pair in ignored]
    if c.shapes == "model":
        capsules += _of_model(loaded, plant, {x.body for x in capsules}, notes)
    if not capsules:
        hint = (
            "Give capsules under limits.collision.capsules, or leave the section out: collisions are then not checked."
        )
        if any("is not found" in note for note in notes):
            hint = f"package://NAME is looked for above the URDF file and in {' and '.join(PACKAGES)}. {hint}"
        unread = [note.removeprefix("collisions of ") for note in notes]
        found = "; ".join(unread[:LISTED_NOTES]) + ("; …" if len(unread) > LISTED_NOTES else "")
        raise loaded.error_at(at, "there is no shape to check.", "shapes that can be read", found, hint)
    above = moving(plant.machine, capsules) if c.floor is not None else ()
    above = tuple(a for a in above if frozenset((a, "floor")) not in ignored)
    made = Collision(tuple(capsules), separable(plant.machine, capsules, ignored), c.floor, above, c.margin)
    if not made.names:
        what = "no pair of these capsules can touch: their bodies are fixed together or joined by one joint."
        raise loaded.error_at(at, what, hint="Give capsules of more bodies, or a floor.")
    if not plant.machine.closed:
        touching = always_touching(plant.machine, made, _postures(plant, actuators))
        notes += [f"{name} (touching in every posture)" for name in touching]
        made = without(made, touching)
    return made, [note.replace(f"to {FLOOR}", "to the floor") for note in notes]


def _of_model(loaded: Loaded[ExciteFile], plant: Plant, have: set[str], notes: list[str]) -> list[Capsule]:
    """Capsules of a model file, or around the shapes of a URDF, for bodies that have none yet; bodies without are added to the notes."""
    file = model_path(loaded, ("model",), loaded.study.model)
    bodies = plant.machine.by_name
    if file.suffix.lower() != ".urdf":
        return _of_links(loaded, {name for name, b in bodies.items() if b.real}, have, notes)
    found = urdf_capsules(file)
    kinds: dict[str, Literal["none", "unread"]] = {}
    for link, why in found.missing.items():
        if link in bodies and link not in have and bodies[link].real and why != "it has no collision shape":
            notes.append(f"collisions of {link} ({why})")
            kinds[link] = "unread"
    bare = [
        x for x, why in found.missing.items() if x in bodies and x not in have and bodies[x].real and x not in kinds
    ]
    notes += [f"collisions of {', '.join(bare)} (no collision shape in the URDF)"] if bare else []
    return [c for c in found.capsules if c.body in bodies and c.body not in have]


def _of_links(loaded: Loaded[ExciteFile], real: set[str], have: set[str], notes: list[str]) -> list[Capsule]:
    links = links_of(loaded, ("model",), loaded.study.model)
    found = [
        Capsule(link.name, c.start, c.end, c.radius) for link in links if link.name not in have for c in link.capsules
    ]
    if not found and not have:
        what = "the model has no shapes: neither capsules of a model file, nor collision shapes of a URDF."
        hint = "Give capsules of its bodies in the model file, or here under capsules."
        raise loaded.error_at(("limits", "collision"), what, hint=hint)
    bare = [link.name for link in links if link.name in real - have and not link.capsules]
    notes += [f"collisions of {', '.join(bare)} (no capsule in the model file)"] if bare else []
    return found


def _postures(plant: Plant, actuators: JointLimits | None) -> Array:
    n, rng = len(plant.bounded), np.random.default_rng(0)
    low, high = (np.full(n, -np.pi), np.full(n, np.pi)) if actuators is None else (actuators.low, actuators.high)
    low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    return rng.uniform(low, high, (POSTURES, n))


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
        return parameter_rows(p.names, p.units, p.priors, p.sigma, p.relative_sigma, p.priors)

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
        kinds = self.machine.kinds
        for labels, *orders in blocks:
            for order, (prefix, per) in zip(orders, (("q", ""), ("qd", "/s"), ("qdd", "/s^2")), strict=True):
                head += [f"{prefix}.{n} [{'m' if kinds[n] == 'sliding' else 'rad'}{per}]" for n in labels]
                columns += list(order.T)
        return csv_text(head, ([f"{value:.10g}" for value in row] for row in np.column_stack(columns)))

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
            missed.append(f"{name}: the predicted deviation is {sigma:.4g}, and at most {most:.4g} is accepted.")
    inputs = {"study": fingerprint(loaded.text), "model": fingerprint(model_path(loaded, ("model",), s.model))}
    return ExcitationStudy(machine, plant, plan, closed_samples(plant, t, np.stack(x)), tuple(missed), inputs)


def _noise(loaded: Loaded[ExciteFile], plant: Plant) -> Noise:
    n = loaded.study.noise
    for name in n.sigma:
        check_name(loaded, ("noise", "sigma", name), name, plant.rows, "row")
    missing = [row for row in plant.rows if row not in n.sigma]
    if missing and n.sigma:
        raise loaded.error_at(
            ("noise", "sigma"), f"no deviation is given for {', '.join(missing)}.", hint="Give all or none."
        )
    if missing:
        what = "no noise is given, so 1 N or N*m is assumed on every row: only ratios of the predicted deviations are meaningful."
        hint = "Give noise: {sigma: {row: …}}: the residual of a first identification, or what a torque shows at rest."
        warn(IdentificationWarning, loaded.fault(("noise",), what, hint=hint))
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
        raise loaded.error_at(("motion", "start"), what)
    return x


def joint_trajectory(
    names: Sequence[str], t: Array, q: Array, qd: Array, qdd: Array, effort: Array | None = None
) -> str:
    """The ROS message trajectory_msgs/JointTrajectory of samples (N,) and (N, n) of the joints `names`: YAML, one point a line.

    The names are those of ROS 2: header.stamp and time_from_start have sec and nanosec. Positions in rad or m, velocities and accelerations
    per second and second squared, efforts in N*m or N; an empty list where none are known.
    """
    lines = [
        "header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}",
        f"joint_names: {json.dumps(list(names))}",
        "points:",
    ]
    for k, time in enumerate(t):
        sec, nanosec = divmod(round(1e9 * float(time)), 1_000_000_000)
        forces = "[]" if effort is None else _floats(effort[k])
        lines.append(
            f"- {{positions: {_floats(q[k])}, velocities: {_floats(qd[k])}, accelerations: {_floats(qdd[k])}, effort: {forces}, "
            f"time_from_start: {{sec: {sec}, nanosec: {nanosec}}}}}"
        )
    return "\n".join(lines) + "\n"


def _floats(values: Array) -> str:
    """Numbers with a decimal point, which YAML 1.1 needs to read them as floats: 1e-05 without one is text."""
    return "[" + ", ".join(f"{v:.9f}" for v in values) + "]"
