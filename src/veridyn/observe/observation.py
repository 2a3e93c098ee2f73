"""What observing a mechanism found: its states with bands, virtual sensors, what became of the sensors, and how far to trust it.

Virtual sensors are quantities that nobody measures, from the estimated state, each with its band:

    y = g(q, q̇, q̈, λ, u),    σ² = (∂g/∂x) P (∂g/∂x)ᵀ

What a real sensor on a machine reads, a virtual one does too (:class:`~veridyn.model.sensor.Sensor`); beyond that, accelerations of points,
forces in springs and dampers, and reactions of joints. The formulation of the machine computes g; the band is what the filter's covariance
implies, and as reliable as the filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError, did_you_mean
from veridyn.inference.finding import FoundCause
from veridyn.inference.verdict import Verdict
from veridyn.lazy import above
from veridyn.mechanics.formulation import Instant
from veridyn.model.place import PointRef
from veridyn.model.sensor import Sensor
from veridyn.model.single_track import CarNoise
from veridyn.observe.alone import LostTrack
from veridyn.observe.consistency.health import Episode, SensorDelay, episodes, sensor_delays
from veridyn.observe.consistency.nis import (
    Consistency,
    DirectionCheck,
    direction_checks,
    direction_line,
    innovation_whiteness,
    nees,
    nis,
)
from veridyn.observe.consistency.observability import ClosedLoop, ExtraSensor, Observability, closed_loop, observability
from veridyn.observe.consistency.predictions import (
    FilterRun,
    PredictionCheck,
    check_lines,
    prediction_checks,
    remembering_outputs,
)
from veridyn.observe.filters.run import Smoothed, smooth
from veridyn.observe.fitting import Tuning
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements
from veridyn.observe.model_error import ModelErrorDensity
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.result import Estimates, Track
from veridyn.observe.system import System
from veridyn.signals.spectrum import Whiteness

Kind = Literal[
    "coordinate",
    "rate",
    "position",
    "velocity",
    "distance",
    "acceleration",
    "gyroscope",
    "accelerometer",
    "spring",
    "reaction",
    "force",
]


@dataclass(frozen=True)
class Virtual:
    """A quantity by name: `kind` as of a sensor, or acceleration (of a point, in the ground's axes), spring, or reaction.

    `on`: what it is on. For "spring", the name of a spring or damper: its tension or torque. For "reaction", a joint by its name: what its
    end a does to its end b, force and, where the joint carries one, moment about b's place, in the ground's axes; of a distance the force
    along it (positive: it pulls), of a rack that on its distance. Or (body, point) where bodies share the point, or where it is fixed: what
    the others do to that body there; with shared vectors or further shared points there is a moment about the point. On a tree, a joint by
    the body it carries, by its coordinate, or a cut joint by its name, and "force" for the force on a coordinate
    (:class:`~veridyn.mechanics.tree.virtual.TreeQuantity`).
    """

    name: str
    kind: Kind
    on: PointRef | tuple[str, str]


@dataclass(frozen=True, eq=False)
class Reading:
    """Values (N, k) of a virtual sensor with standard deviations (N, k), by the names of its components, each with its unit."""

    name: str
    components: tuple[str, ...]
    units: tuple[str, ...]
    t: Array
    values: Array
    sigma: Array

    def band(self, deviations: float = 1.96) -> tuple[Array, Array]:
        """The interval of so many standard deviations, (N, k) each."""
        return self.values - deviations * self.sigma, self.values + deviations * self.sigma


def placed_quantities(wanted: Sequence[Virtual | str]) -> list[Virtual]:
    """Quantities of a machine of bodies: each says what it is on, a name alone does not."""
    for one in wanted:
        if isinstance(one, str):
            expected = "Virtual(name, kind, on)"
            raise ModelError(
                "a name does not say what is wanted.", where="virtual sensor", expected=expected, found=repr(one)
            )
    return [one for one in wanted if isinstance(one, Virtual)]


def virtual(system: MachineSystem, track: Track, wanted: Sequence[Virtual], inputs: Array) -> dict[str, Reading]:
    """Each of the quantities along a track; `inputs` (N, p) are those of the measurements."""
    quantities = {w.name: quantity_of(system, w) for w in wanted}
    values: dict[str, list[Array]] = {name: [] for name in quantities}
    sigmas: dict[str, list[Array]] = {name: [] for name in quantities}
    for x, P, u in zip(track.x, track.P, inputs, strict=True):
        at = system.instant(x, u)
        for name, quantity in quantities.items():
            y, G = quantity.at(x, at, u)
            values[name].append(y)
            sigmas[name].append(np.sqrt(np.maximum(((G @ P) * G).sum(axis=1), 0.0)))
    return {
        name: Reading(name, q.components, q.units, track.t, np.array(values[name]), np.array(sigmas[name]))
        for name, q in quantities.items()
    }


def quantity_of(system: MachineSystem, wanted: Virtual) -> VirtualQuantity:
    """A virtual sensor on a machine of any formulation, made ready."""
    return VirtualQuantity(system, wanted)


class VirtualQuantity:
    """One virtual sensor, made ready: :meth:`at` gives its value and its derivative with respect to a change of state."""

    def __init__(self, system: MachineSystem, wanted: Virtual) -> None:
        self.system = system
        self._made = system.model.form.quantity(system.model, wanted.name, wanted.kind, wanted.on)

    @property
    def components(self) -> tuple[str, ...]:
        return self._made.components

    @property
    def units(self) -> tuple[str, ...]:
        return self._made.units

    def at(self, x: Array, at: Instant, inputs: Array) -> tuple[Array, Array]:
        """The value (k,) and its derivative (k, states) at a state, with the known loads `inputs` that the instant was made with."""
        system = self.system
        q, qd = system.posed_at(x, at)
        s = self._made.at(q, qd, system.split(x)[2], at, system.acting(inputs))
        G = system.chained(at, s.by_q, s.by_qd, s.by_qdd, s.by_lam)
        f = system.f
        G[:, 2 * f : 2 * f + s.by_u.shape[1]] += s.by_u
        return s.y, G


BEFORE_SENSORS = (
    10.0  # of 2 Δ log L beyond chance: errors of a model, which every machine has, look a little like a late clock
)
DELAY_FALSE_ALARMS = 1e-4  # of consistent filters: as many are said to have a late sensor


@dataclass(frozen=True, eq=False, repr=False)
class Observation:
    """The `track` of states, the `estimates` of the filter behind it (the same, but for a smoother), and what they were made with.

    `readings`: of the outputs, as the filter had them. `usable_nis`: within it the bands are of use, however long the log. `inspection`:
    what the log shows to be wrong by itself; `settled`: the sample from which on the run is judged.
    """

    usable_nis: ClassVar[tuple[float, float]] = (0.75, 1.25)  # a band of 95 % holds 92 to 98 % of the truth
    allows_for_colour: ClassVar[bool] = False  # whether bands allow for innovations that are correlated in time

    filter: str
    system: MachineSystem
    estimates: Estimates
    track: Estimates | Smoothed
    readings: Measurements
    process_noise: ProcessNoise | CarNoise
    tuning: Tuning | None = None
    model_error: ModelErrorDensity | None = None
    made_by: FilterRun | None = None
    lost: tuple[LostTrack, ...] = ()
    inspection: tuple[FoundCause, ...] = ()
    settled: int = 0

    def __len__(self) -> int:
        return len(self.track)

    @property
    def t(self) -> Array:
        return self.track.t

    @property
    def inputs(self) -> Array:
        """What acts, (N, p)."""
        return self.readings.inputs

    def state(self, name: str) -> Array:
        """The history (N,) of one state."""
        if name not in self.states:
            raise DataError(f"there is no state '{name}'.", where=self.filter, hint=did_you_mean(name, self.states))
        return self.reduced[:, self.states.index(name)]

    def episodes(self, least: int = 3) -> tuple[Episode, ...]:
        """What became of the sensors."""
        return episodes(self.estimates, least)

    def bounded(self) -> tuple[str, ...]:
        """Estimated parameters that stood at a bound, with how often: their estimate is the bound's there, and not the data's."""
        bounds = self.system.bounds
        held = {} if bounds is None else bounds.held(self.track.x)
        return tuple(
            f"parameter '{name}' stood at its bound {bound:g} at {times} of {len(self)} samples"
            for name, (bound, times) in held.items()
        )

    def nis(self, skip: int | None = None) -> Consistency:
        """Whether innovations are as large as stated, from sample `skip` on; by default from where the run has settled."""
        return nis(self.estimates, skip=self._first(skip))

    def directions(self, skip: int | None = None) -> tuple[DirectionCheck, ...]:
        """Innovations along the principal directions of outputs that are read together, the largest first; 1 is ideal in each."""
        return direction_checks(self.estimates, self._first(skip))

    def consistency_lines(self, skip: int | None = None) -> tuple[str, ...]:
        """What the summary says of directions, and of readings that the filter was not given."""
        return (*direction_line(self.directions(skip)), *check_lines(self.predictions))

    def whiteness(self, skip: int | None = None) -> dict[str, Whiteness]:
        return innovation_whiteness(self.estimates, skip=self._first(skip))

    def _first(self, skip: int | None) -> int:
        return self.settled if skip is None else skip

    def stability(self, skip: int = 1) -> ClosedLoop:
        """Whether errors die out under the gains that were used."""
        return closed_loop(self.estimates, self.estimates.sigma[skip:].mean(axis=0), skip)

    def __repr__(self) -> str:
        name = f"{type(self).__name__}({self.filter} on {self.system.name!r}"
        return f"{name}, {len(self)} samples, {len(self.states)} states)"

    def _repr_html_(self) -> str:
        return above("veridyn.report.notebook", "show_observation")(self)._repr_html_()

    def plot(self, *names: str) -> Any:
        """States with their 95 % bands, all or those that are named, for a notebook; ``save(path)`` writes a page."""
        return above("veridyn.report.notebook", "plot_states")(self, *names)

    def to_frame(self) -> Any:
        """A pandas data frame over time: for each state a column with its name, and one ``name.sigma``."""
        return above("veridyn.report.notebook", "frame_of_states")(self)

    def summary(self) -> str:
        """States at the end, what became of the sensors, whether innovations are as stated, and the verdict."""
        lines = [f"{self.filter} on {self.system.name}: {len(self)} samples, {self.t[0]:.6g} s to {self.t[-1]:.6g} s"]
        wide = max(24, 2 + max(map(len, self.states), default=0))
        for name, value, sigma in zip(self.states, self.reduced[-1], self.sigma[-1]):
            lines.append(f"  {name:<{wide}}{value:14.6g} ± {sigma:.3g}")
        lines += [f"  {one}" for one in self.lost]
        if self.estimates.dof.sum():
            lines.append("  " + self.nis().summary())
        lines += [f"  innovations of '{name}' {w.summary()}" for name, w in self.whiteness().items()]
        lines += [f"  {line}" for line in self.consistency_lines()]
        lines += [f"  {e}" for e in self.episodes()]
        lines += [f"  {line}" for line in self.bounded()]
        lines += [
            f"  parameter '{name}' drifts, and this log does not determine it: it keeps its value, and its uncertainty enters the bands"
            for name in self.system.frozen
        ]
        if self.tuning is not None:
            lines.append(f"  noise chosen on this log: {self.tuning.summary()}")
        if self.model_error is not None:
            lines += [f"  {line}" for line in self.model_error.lines()]
        return "\n".join([*lines, self.verdict.summary()])

    @property
    def q(self) -> Array:
        """All coordinates (N, n); of a free base position and quaternion first."""
        return self.system.split(self.track.x)[0]

    @property
    def qd(self) -> Array:
        """Their rates (N, n)."""
        return self.system.split(self.track.x)[1]

    @property
    def states(self) -> tuple[str, ...]:
        return self.system.states

    @property
    def units(self) -> tuple[str, ...]:
        """Of the states."""
        return state_units(self.system)

    @property
    def reduced(self) -> Array:
        """Independent coordinates, rates, unknown forces and biases (N, states)."""
        return self._reduced

    @cached_property
    def _reduced(self) -> Array:
        return self.system.reduced(self.track.x)

    @property
    def sigma(self) -> Array:
        """Standard deviations (N, states)."""
        if self.system.reports_changes and not self.track.x[:, -1].any():
            return self.track.sigma
        reported = [self.system.reported(x, P).diagonal() for x, P in zip(self.track.x, self.track.P, strict=True)]
        return np.sqrt(np.array(reported))

    def coordinate(self, name: str) -> tuple[Array, Array]:
        """Any coordinate (N,) with its standard deviation."""
        reading = self.virtual(Virtual(name, "coordinate", name))[name]
        return reading.values[:, 0], reading.sigma[:, 0]

    def virtual(self, *wanted: Virtual | str) -> dict[str, Reading]:
        """Quantities that nobody measured, with bands; of a car their names are enough."""
        return virtual(self.system, self.track, placed_quantities(wanted), self.inputs)

    @cached_property
    def qdd(self) -> Array:
        """Accelerations (N, n) of all coordinates, from the acceleration problem with the estimated forces."""
        return np.array([self.system.instant(x, u).qdd for x, u in zip(self.track.x, self.inputs, strict=True)])

    def constraint_errors(self) -> Array:
        """The largest |Φ|, |Φ_q q̇| and |Φ_q q̈ + Φ̇_q q̇| at each instant, (N, 3), of all constraints: of those left out as redundant too."""
        every = zip(self.q, self.qd, self.qdd, strict=True)
        return np.array([self.system.model.constraint_errors(*one) for one in every])

    def energy(self) -> Array:
        """Kinetic, gravity's and elastic energy (J) of the estimate, (N, 3)."""
        return self.system.model.energies(self.q, self.qd)

    def nees(self, q: ArrayLike, qd: ArrayLike, skip: int = 0) -> Consistency:
        """Of the independent coordinates and their rates, against the true coordinates and rates (N, n)."""
        shapes = ((len(self), self.system.nq), (len(self), self.system.nv))
        if (np.shape(q), np.shape(qd)) != shapes:
            raise DataError(
                "the true motion has another shape.",
                where="nees",
                expected=f"{shapes}",
                found=f"{(np.shape(q), np.shape(qd))}",
            )
        true = np.hstack([q, qd, np.zeros((len(self), self.track.x.shape[1] - sum(s[1] for s in shapes)))])
        f = self.system.f
        return nees(self.track, true, skip=skip, states=self.states[: 2 * f], subtract=self.system.subtract)

    def observability(
        self, scales: ArrayLike | None = None, part: slice = slice(None), extra: Sequence[Sensor] = ()
    ) -> Observability:
        """Observability along a part of the estimated motion, and whether the sensors `extra` would add to it.

        `scales`: typical sizes of the states, by default the largest they were.
        """
        sizes = np.maximum(np.abs(self.reduced).max(axis=0), 1e-6) if scales is None else np.asarray(scales)
        further = [e for i in extra for e in self._extra(i)]
        return observability(self.equations, self.t[part], self.track.x[part], sizes, self.inputs[part], further)

    @property
    def equations(self) -> System:
        """What the filter ran on."""
        return self.system

    @cached_property
    def predictions(self) -> tuple[PredictionCheck, ...]:
        """Readings that the filter was not given, against what it predicts for them: over horizons, and through muted sensors."""
        return self._checked()

    def urgent_predictions(self) -> tuple[PredictionCheck, ...]:
        """Those of :attr:`predictions` that the innovations give reason to ask for; all of them where they are known."""
        return (
            self.predictions if "predictions" in self.__dict__ else self._checked(remembering_outputs(self.estimates))
        )

    def _checked(self, remembering: Sequence[int] | None = None) -> tuple[PredictionCheck, ...]:
        if self.made_by is None:
            return ()
        table = self.system.table
        sensors: dict[str, list[int]] = {}
        for j, k in enumerate(table.owner):
            sensors.setdefault(table.sensors[k].name, []).append(j)
        return prediction_checks(self.made_by, self.estimates, sensors, remembering)

    @cached_property
    def delays(self) -> tuple[SensorDelay, ...]:
        """Outputs whose innovations show a delay that is not told, with its size (s) and deviation, the strongest evidence first."""
        if self.made_by is None:
            return ()
        readings = self.made_by.readings.select(self.estimates.outputs)
        return sensor_delays(self.estimates, readings.values, DELAY_FALSE_ALARMS, BEFORE_SENSORS)

    @cached_property
    def findings(self) -> tuple[FoundCause, ...]:
        """What limits what may be concluded from it, by rank: each with cause, place, evidence, size and sigma, as those of a fit."""
        return above("veridyn.observe.consistency.judge", "findings_of")(self)

    @cached_property
    def verdict(self) -> Verdict:
        """How good it is and why it is no better, by :mod:`veridyn.observe.consistency.judge`."""
        return above("veridyn.observe.consistency.judge", "judged_observation")(self)

    def own_findings(self) -> tuple[FoundCause, ...]:
        """What only this kind of machine can be found to have."""
        return ()

    def _extra(self, sensor: Sensor) -> list[ExtraSensor]:
        table = self.system.model.readout([sensor])

        def slope(x: Array, inputs: Array, j: int) -> Array:
            q, qd, _, _ = self.system.split(x)
            at = self.system.instant(x, inputs)
            by_q, by_qd, by_qdd = (d[j : j + 1] for d in table.derivatives(q, qd, at.qdd))
            return self.system.chained(at, by_q, by_qd, by_qdd, np.zeros((1, len(at.multipliers))))

        return [
            ExtraSensor(name, lambda x, inputs, j=j: slope(x, inputs, j), float(np.sqrt(sensor.variance)))
            for j, name in enumerate(table.names)
        ]


O = TypeVar("O", bound=Observation)


def smoothed(found: O) -> O:
    """The same log in the light of all its readings: backwards over what a filter left behind."""
    return replace(found, filter="smoother", track=smooth(found.estimates, found.equations))


def state_units(system: MachineSystem) -> tuple[str, ...]:
    """The units of a system's states, in their order."""
    model = system.model
    sizes = tuple(model.unit_of(name) for name in model.names)
    forces = tuple(model.force_unit(name) for name in model.unknown)
    parameters = tuple(model.varying_unit(name) for name in (*system.varying, *system.inner))
    biases = tuple(system.table.units[j] for j in system.drifting)
    return (*sizes, *(f"{u}/s" for u in sizes), *forces, *parameters, *biases)
