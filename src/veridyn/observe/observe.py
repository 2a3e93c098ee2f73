"""The door to filters on machines: a machine with sensors, a log and a method in; states with bands and virtual sensors out.

states = observe(machine, log, EKF(gate=0.999))            methods: :mod:`veridyn.observe.filters.methods`

What acts on a machine and is in its log: the same channels, by the same names, in every formulation.

    force.C             the force of the motor on the coordinate C
    NAME, NAME.x …      loads, by components where they have several
    q.C, qd.C, qdd.C    motions of prescribed coordinates
    signal.S            measured signals that laws of elements read
    wrench.B.fx … mz    wrenches on bodies, all six components

What one formulation does not take is refused by name, and what acts on nothing is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, ModelError, SimulationError, VeridynError, warn
from veridyn.mechanics.formulated import GivenMachine, formulated
from veridyn.mechanics.formulation import Instant
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.alone import AloneCoordinate, coordinates_alone, lost_tracks
from veridyn.observe.consistency.findings import warn_of_findings
from veridyn.observe.consistency.predictions import FilterRun
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import LinearKF, Smoother, filter_of
from veridyn.observe.filters.run import in_order, run
from veridyn.observe.filters.stepping import REFINEMENTS, TOLERATED_BIAS_SIGMAS, bounded_step_bias, warn_of_long_steps
from veridyn.observe.fitting import Tuning, tune
from veridyn.observe.hung import without_hung
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Measurements, Status, first_positions, measurements_of
from veridyn.observe.model_error import ModelErrorDensity, with_density
from veridyn.observe.observation import Observation, smoothed
from veridyn.observe.observer_setup import ObserverSetup, determined, with_frozen
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.result import Belief, Estimates
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.system import System
from veridyn.progress import Progress, silent
from veridyn.settings import verb_with_method


def inputs_in(machine: GivenMachine, names: Sequence[str], where: str) -> tuple[str, ...]:
    """The channels of a log that act on a machine, in one order; `names` are those of the log that is called `where`.

    Those that the machine has and its formulation cannot take are refused; those named as forces, wrenches or loads of the machine that
    nevertheless act on nothing are reported by a warning.
    """
    form = formulated(machine)
    found, known = form.inputs_in(names), {name for load in form.loads for name in load.channels}
    _warn_of_unused([n for n in names if n not in found and (n in known or n.startswith(("force.", "wrench.")))], where)
    return found


def _warn_of_unused(names: Sequence[str], where: str) -> None:
    if names:
        warn(
            DataWarning,
            Fault(
                "these channels of the log act on nothing of the machine, and are not used.",
                where=where,
                expected="force.C of a coordinate with a motor, all six components of a wrench on a body, loads by their names",
                found=", ".join(names),
                hint="Rename them, give the machine a motor or load there, or list those that are used: ObserveSettings(inputs=…).",
            ),
        )


SHORTER = 0.25  # of a step whose iteration does not converge: its first guess is then off by a sixteenth, for that is of order h²
TUNING_SAMPLES = 1000  # samples of a log that choose the noise where none is given
TUNING_DECADES = 5.0  # around an acceleration of 1 rad/s² or 1 m/s²
OF_THE_FILTER = "It is a setting of the filter: observe(machine, log, EKF({}=…))."
GONE = {name: OF_THE_FILTER.format(name) for name in ("gate", "late", "horizon", "engine")}
GONE["filter"] = "The filter is the third argument: observe(machine, log, EKF(gate=0.999)), or a word such as 'ukf'."


@dataclass(frozen=True, eq=False)
class NoiseTuning(Tuning):
    """How logs chose the process noise, and what their encoders say by themselves (`alone`)."""

    alone: tuple[AloneCoordinate, ...] = ()


@checked
@verb_with_method(ModelError, GONE)
def observe(
    machine: Machine,
    log: Experiment | Measurements,
    method: Filter | str = "ekf",
    settings: ObserveSettings | None = None,
    *,
    progress: Progress = silent,
) -> Observation:
    """Estimate the states of a machine from a log of its sensors.

    Parameters
    ----------
    machine : Machine
        The machine, open or closed, on a fixed base or a free one, in either formulation, with its sensors. ``fit.machine()`` brings the
        covariance of its identified parameters along. A car of a few numbers (formulation single_track) is observed by "ekf", "ukf" or
        "smoother" from speed, steer, ax and its sensors, and gives a ``CarObservation``, which is an ``Observation``.
    log : Experiment
        Channels by the names of the sensors' outputs and of the inputs, in the sensors' units.
    method : Filter or str
        The filter: an object such as ``EKF(gate=0.999)``, or a word for one with default settings: "linear", "error_ekf",
        "error_ekf_force", "ekf" (the default), "ukf", "smoother".
    settings : ObserveSettings, optional
        Process noise, start, unknown forces, inputs, step, estimated parameters, sensors: see :class:`ObserveSettings`.
    progress : callable (task, done, total), optional
        Called as samples are filtered.

    Returns
    -------
    Observation
        States with standard deviations over time, virtual sensors, and how far to trust them; ``print(states.summary())``.

    Warns
    -----
    DataWarning
        What limits the estimates: innovations far from as large as the filter states (NIS), readings that were not used and lie beside
        what the filter predicts for them (over horizons, and through muted sensors), a model error as large as the motion itself, sensors
        that read beside what the model expects, are refused often or never used, steps that are too long, channels that act on nothing.
        A study of kind observe reports the same.

    Raises
    ------
    ModelError
        The machine, a setting or a name cannot be used; every fault is named.
    DataError
        The log lacks a channel, or has another unit or clock than the machine expects.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> encoder = vd.Sensor("encoder", "coordinate", "q1", 1e-3)
    >>> inertia = {"1": vd.spatial.from_centre(1.0, [0.5, 0.0, 0.0], np.diag([1e-3, 0.08, 0.08]))}
    >>> rod = vd.model.Body("1", placement=vd.spatial.MDH(alpha=-np.pi / 2))
    >>> pendulum = vd.Machine.of_bodies([rod], inertia=inertia, sensors=[encoder])
    >>> released = vd.manoeuvres.Driven(1.0, 100.0, [0.3], [0.0])
    >>> log = vd.simulate(pendulum, released, rng=np.random.default_rng(0))
    >>> settings = vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-4), start={"q1": 0.0})
    >>> states = vd.observe(pendulum, log, "ekf", settings)
    >>> states.states
    ('q1', 'q1_dot', 'force.q1')
    >>> bool(states.sigma[-1, 0] < 1e-3)
    True
    """
    chosen = settings or ObserveSettings()
    setup = ObserverSetup(filter_of(method, "observe"), chosen)
    if machine.car is not None:
        from veridyn.observe.car.observation import observe_car  # here: it brings compiled equations along

        found = observe_car(setup, machine, log, progress)
    else:
        found = observe_with(setup, machine, log, progress)
    warn_of_findings(found, log if isinstance(log, Experiment) else None)
    return found


def observe_with(
    setup: ObserverSetup,
    machine: GivenMachine,
    log: Experiment | Measurements,
    progress: Progress = silent,
    tuning: NoiseTuning | None = None,
) -> Observation:
    """:func:`observe` of a machine of bodies, without its warnings; `tuning`: how this log chose the process noise of the setup."""
    form = formulated(machine)
    if setup.settings.inputs is None and isinstance(log, Experiment):
        setup = setup.replaced(inputs=inputs_in(form, log.names, log.name))
    system, q, qd = setup.system(form)
    readings = log if isinstance(log, Measurements) else measurements_of(system, log, setup.settings.input_hold)
    if setup.settings.start == "readings":
        if isinstance(log, Measurements):
            raise DataError(
                "first readings are taken from a log's channels.", where="observe, start", expected="an Experiment"
            )
        first = first_positions(system, log)
        setup, system, q, qd = setup.started(system, first)
    readings = without_hung(readings, system.table, setup.settings.frozen_after)
    if setup.settings.process_noise is None:
        form = system.model.form
        learns = setup.settings.model_error == "learned"
        process_noise, tuning = tuned(setup, form, [readings], progress, walk_alone=learns)
        setup = setup.replaced(process_noise=process_noise)
        system, q, qd = setup.system(form)
    method, smooths, start = setup.method, isinstance(setup.method, Smoother), system.belief(q, qd)
    ordered = in_order(method, readings.select(system.outputs))
    if smooths:  # it goes back along one chain of steps
        readings = ordered
    refinements = 0 if setup.settings.step is not None else REFINEMENTS
    floor = setup.foreseen_floor(system, q, start, ordered) if tuning is None else None
    bare = system
    system = system if floor is None else with_density(system, floor)
    system, estimates = _converging(setup, system, readings, q, start, progress, refinements)
    ran, system = system, with_frozen(system, estimates)
    bare = replace(bare, longest=system.longest, frozen=system.frozen)
    error = setup.model_error(bare, q, start, ordered, estimates, progress, tuning is not None, floor)
    if error is not None and not (error.density is floor and system is ran):
        system = error.added_to(bare)

    def again(other: MachineSystem) -> Estimates:
        return run(method, setup.seen(other, q), readings, start, progress)

    if system is not ran:  # again where the model's error leaves a parameter less well determined
        system, estimates = determined(system, again(system), again)
    while not isinstance(method, LinearKF) and not estimates.replayed and len(estimates) > 1:
        bias = bounded_step_bias(system, estimates, readings.inputs)
        if bias.deviations <= TOLERATED_BIAS_SIGMAS or not refinements:
            warn_of_long_steps(system, bias)
            break
        refinements -= 1
        system = replace(system, longest=bias.better)
        estimates = again(system)
    alone = tuning.alone if tuning is not None else ()
    lost = lost_tracks(alone, estimates) if not estimates.replayed else ()
    if lost and error is not None and tuning is not None:
        safe = _bearing_all(tuning, error, alone)
        other = safe.added_to(bare)
        try:
            followed = again(other)
        except VeridynError:
            followed = estimates
        still = lost_tracks(alone, followed)
        if sum(one.excess for one in still) < sum(one.excess for one in lost):
            system, estimates, error, lost = other, followed, safe, still
    found = Observation(
        method.word,
        system,
        estimates,
        estimates,
        readings.inputs,
        system.process_noise,
        tuning,
        error,
        FilterRun(method, setup.seen(system, q), readings, start),
        lost,
    )
    return smoothed(found) if smooths else found


def _bearing_all(tuning: Tuning, error: ModelErrorDensity, alone: Sequence[AloneCoordinate]) -> ModelErrorDensity:
    """A model error with which a chosen walk of the unknown forces follows every encoder, whatever the model says."""
    bears = max((one.density for one in alone), default=0.0)
    walk = max(bears / tuning.values.get("density", np.inf), error.walk)
    none = None if error.force is None else np.zeros_like(error.force)
    return replace(error, density=error.floor, force=none, walk=walk)


def _converging(
    setup: ObserverSetup,
    system: MachineSystem,
    readings: Measurements,
    q: Array,
    start: Belief,
    progress: Progress,
    tries: int,
) -> tuple[MachineSystem, Estimates]:
    """A run along the readings, and the system it was made with: one of shorter steps, up to `tries` times, where steps do not converge."""
    while True:
        try:
            return system, run(setup.method, setup.seen(system, q), readings, start, progress)
        except SimulationError:
            if not tries:
                raise
        tries -= 1
        taken = min(system.longest, float(np.diff(readings.t).max(initial=0.0)) or system.longest)
        system = replace(system, longest=SHORTER * taken)


def _screened(setup: ObserverSetup, system: System, readings: Measurements, start: Belief) -> Measurements:
    """The readings without those that a gate refuses even where the model is hardly trusted: outliers do not pass for process noise."""
    if setup.method.gate is None:
        return readings
    ordered = in_order(setup.method, readings.select(system.outputs))
    try:
        found = run(replace(setup.method, gate=setup.method.pass_probability), system, ordered, start)
    except SimulationError:
        return ordered  # the model cannot go where these readings are: it refuses none, and the trials count what that costs
    return ordered.flagged(found.status == Status.OUTLIER, Status.OUTLIER)


def first_forces(
    system: MachineSystem, at: Instant, start: Belief, alone: Sequence[AloneCoordinate]
) -> dict[str, float] | float:
    """How large the unknown forces may be where a log begins: as large as explains the accelerations that the encoders show there, and the
    model without them does not; none where encoders do not show all accelerations."""
    f, forces = system.f, system.model.unknown
    known = {one.place: one.begins for one in alone}
    if len(known) < f:
        return 0.0
    push = system.model.accelerated(at, system.set_of(start.x))[:, 2 * f : 2 * f + len(forces)]
    model = system.model.local(at.q, at.qdd, system.set_of(start.x))[f:]
    missing = [abs(known[k][0, 1] - model[k]) + known[k][1, 1] for k in range(f)]
    size = np.abs(np.linalg.pinv(push)) @ np.array(missing)
    return dict(zip(forces, size.tolist(), strict=True))


def tuned(
    setup: ObserverSetup,
    machine: GivenMachine,
    logs: Sequence[Measurements],
    progress: Progress = silent,
    samples: int = TUNING_SAMPLES,
    walk_alone: bool = False,
) -> tuple[ProcessNoise, NoiseTuning]:
    """The `process_noise` under which the logs are most likely: one number scales the walk of all forces, or all white accelerations.

    The scale is that of an acceleration of 1 rad/s² or 1 m/s²: a force density of θ (Rᵀ M R)² for θ in (unit/s²)²/s. Where forces are
    estimated, both are tried: a walk that stands for a white disturbance makes bands too narrow. `walk_alone`: only the walk is, because a
    model error will be learned, which scales it once more beside its own white forces.
    """
    system, q, qd = setup.system(machine)
    alone = tuple(one for log in logs for one in coordinates_alone(system, log.select(system.outputs)))
    bears = max((one.density for one in alone), default=1.0)  # a walk with which no model loses track
    base = setup.settings.process_noise or ProcessNoise()
    assert isinstance(base, ProcessNoise)  # that of a car is refused where the system is made
    start = system.belief(q, qd)
    f, forces = system.f, system.model.unknown
    at = system.instant(start.x, np.zeros(len(system.inputs)) if not logs else logs[0].inputs[0])

    if forces and base.start_force == 0.0:
        base = replace(base, start_force=first_forces(system, at, start, alone))

    def described(values: Mapping[str, float]) -> ProcessNoise:
        white = values.get("acceleration", 0.0)
        if not forces:
            return replace(base, acceleration=values.get("density", white))
        theta = values.get("density", 10.0**-TUNING_DECADES)
        push = np.abs(system.model.accelerated(at, 0)[:, 2 * f : 2 * f + len(forces)]).max(axis=0)
        walk = {n: theta / max(float(p), 1e-12) ** 2 for n, p in zip(forces, push)}
        return replace(base, acceleration=white or base.acceleration, force=walk)

    def build(values: Mapping[str, float]) -> System:
        trial = setup.replaced(process_noise=described(values))
        return setup.seen(trial.system(system.model.form)[0], q)

    parts = [(_screened(setup, build({"density": bears}), log.first(samples), start), start) for log in logs]

    def most_likely(name: str) -> Tuning:
        first = bears if name == "density" else 1.0
        decades = TUNING_DECADES + abs(float(np.log10(first)))
        return tune(setup.method, build, {name: first}, parts, decades=decades, progress=progress)

    found = most_likely("density")
    if forces and not walk_alone:
        white = most_likely("acceleration")
        found = white if white.log_likelihood > found.log_likelihood else found
    known = {f.name: getattr(found, f.name) for f in fields(found)}
    return described(found.values), NoiseTuning(**known, alone=alone)
