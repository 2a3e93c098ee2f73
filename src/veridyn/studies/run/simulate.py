"""One machine simulated as a study file says: the truth, the log its sensors record, and how far the integration is to be trusted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import SimulationError
from veridyn.files.yaml_reader import Place
from veridyn.mechanics.natural.equations.dynamics import energies
from veridyn.mechanics.natural.steps.integrate import MechanismRun, constraint_errors
from veridyn.mechanics.system.integrate import Trajectory
from veridyn.mechanics.tree.loops.closing import loop_values
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.mechanics.tree.recursion.kinematics import energy
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.signals.findings import warn_of_speeds
from veridyn.simulate.imperfection import Imperfection, imperfections_of, mechanism_truth, own_sensors, wrapped
from veridyn.simulate.simulator import (
    ACTING,
    LONGEST_STEP_S,
    Prescribed,
    Steered,
    SteeredRun,
    car_truth,
    exact,
    steered_run,
)
from veridyn.studies.config.simulate import SimulateAccept, SimulateFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.result import ParameterRow, Result, fingerprint
from veridyn.studies.run.machine import model_path, named_car, own_formulation
from veridyn.studies.run.simulation_inputs import OfTime, duration_of, given_inputs
from veridyn.studies.run.simulation_records import named_sensors, perfect_sensors, read_log, same_start
from veridyn.studies.run.simulation_setups import as_signals, mechanism_setup, tree_setup

FEW = 4  # samples that are run first, so that the time of a run is not that of compiling
OPEN = 1e-6  # m: constraints that open wider are told
ROUGH = 1e-4  # rad or m (of a car rad/s or m/s): a coarser integration that differs by more is told
COARSER = 100.0  # times the tolerances, or twice the step
CAR_COURSES = {"speed": "m/s", "steer": "rad", "bank": "rad"}
CAR_RATES = ("lateral_speed", "yaw_rate")  # at the start


@dataclass(frozen=True, eq=False)
class SimulateRun:
    """A simulated machine. `energies` (N, 3): kinetic, in gravity's field, elastic, J, on the clock of the truth, of a machine of bodies;
    `openings` (N,) of loops or constraints, m, where it has any; `errors` (N, k) of the coordinates a controller leads; `coarser` is what
    a coarser integration differs by, NaN where there is none: of coordinates, or of the lateral speed and yaw rate of a car of a few
    numbers. `seconds` is processor time."""

    machine: Machine
    motion: Trajectory | MechanismRun | SteeredRun
    truth: Experiment
    log: Experiment
    seconds: float
    inputs: Mapping[str, str]
    settings: Mapping[str, str]
    accept: SimulateAccept
    coarser: float
    energies: Array | None = None
    conservative: bool = False
    openings: Array | None = None
    errors: Array | None = None

    @property
    def t(self) -> Array:
        return next(iter(self.truth.channels.values())).t

    @property
    def coarser_unit(self) -> str:
        """In what a coarser integration is compared."""
        return "m/s or rad/s" if isinstance(self.motion, SteeredRun) else "rad or m"

    @cached_property
    def figures(self) -> dict[str, float]:
        """Numbers to judge the run by, named as in `result.json`."""
        duration = float(self.t[-1] - self.t[0])
        out = {
            "duration": duration,
            "samples": float(len(self.t)),
            "channels": float(len(self.log)),
            "real_time_factor": duration / self.seconds if self.seconds > 0.0 else float("nan"),
        }
        if self.conservative and self.energies is not None:
            total = self.energies.sum(axis=1)
            out["energy_drift"] = float(np.abs(total - total[0]).max())
            size = float(self.energies[:, 0].max())
            out["energy_drift_percent"] = 100.0 * out["energy_drift"] / size if size > 0.0 else 0.0
        if not np.isnan(self.coarser):
            out["coarser_difference"] = self.coarser
        if self.openings is not None:
            out["constraint_error"] = float(self.openings.max(initial=0.0))
        if self.errors is not None:
            out["tracking_error"] = float(np.abs(self.errors).max())
            out["tracking_rms"] = float(np.sqrt((self.errors**2).mean()))
        return out

    @cached_property
    def missed(self) -> tuple[str, ...]:
        """Sentences about limits of the study file that are not kept."""
        out = []
        for name, words in (
            ("energy_drift_percent", "drift of the energy, %"),
            ("constraint_error", "opening of loops or constraints, m"),
            ("coarser_difference", f"difference from a coarser integration, {self.coarser_unit}"),
            ("tracking_error", "error under the controller, rad or m"),
        ):
            most = getattr(self.accept, name)
            if most is None:
                continue
            if name not in self.figures:
                out.append(f"{words}: there is none to tell, and accept.{name} sets a limit to it.")
            elif not self.figures[name] <= most:
                found = self.figures[name]
                out.append(f"{words}: {found:.4g}, and at most {most:g} is accepted (accept.{name}).")
        return tuple(out)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know of the integration and of the sensors."""
        out = []
        f = self.figures
        if f.get("energy_drift_percent", 0.0) > 0.1:
            out.append(
                f"the energy drifts by {f['energy_drift_percent']:.3g} % where nothing feeds or brakes the machine. Try a smaller step."
            )
        if f.get("coarser_difference", 0.0) > ROUGH:
            out.append(
                f"a coarser integration differs by up to {f['coarser_difference']:.3g} {self.coarser_unit}. "
                "Try a smaller step or tighter tolerances."
            )
        if f.get("constraint_error", 0.0) > OPEN:
            out.append(f"loops or constraints open by up to {f['constraint_error']:.3g} m. Try a smaller step.")
        rate = 1.0 / float(self.t[1] - self.t[0])
        for name, c in self.log.channels.items():
            if c.rate > 1.001 * rate:
                out.append(
                    f"'{name}' is read at {c.rate:g} Hz and the truth is known at {rate:g} Hz: in between it is a spline."
                )
        return tuple(out)

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        """What is true of the machine, for those who identify it: the parameters of one in joint coordinates, or of a car."""
        if isinstance(self.motion, MechanismRun):
            return ()
        p = self.machine.parameters
        values = p.values if isinstance(self.motion, SteeredRun) else complete_values(self.machine)
        return tuple(
            ParameterRow(name, unit, float(x), float("nan"), float("nan"), float("nan"), float(x))
            for name, unit, x in zip(p.names, p.units, values, strict=True)
        )

    @cached_property
    def readings(self) -> dict[str, dict[str, float]]:
        """Channel of the log → how many readings, the rms of what they are off by, their mean error, and the rms of the readings."""
        table = {}
        for name, c in self.log.channels.items():
            true = self.true_at(name, c.t)
            off = c.values - true
            table[name] = {
                "samples": float(len(c)),
                "rms": float(np.sqrt((off**2).mean())),
                "mean_error": float(off.mean()),
                "measured_rms": float(np.sqrt((c.values**2).mean())),
            }
        return table

    def true_at(self, name: str, t: Array) -> Array:
        """The truth behind a channel of the log, at its times."""
        true = self.truth[name]
        return true.values[np.searchsorted(true.t, t)] if _among(t, true.t) else np.interp(t, true.t, true.values)

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        """The run as the record that its folder keeps; `validation` tells of each channel how far its readings are off."""
        every = (*self.warnings, *warnings)
        return Result(name, seed, False, self.inputs, self.figures, self.parameters, self.readings, every)

    def summary(self) -> str:
        """What the sensors made of the truth."""
        channels = f"{len(self.log)} channel{'' if len(self.log) == 1 else 's'}"
        head = f"{self.machine.name}: {self.figures['duration']:g} s, {len(self.t)} samples, {channels}"
        lines = [head, f"  {'channel':<24}{'readings':>9}{'rms':>12}{'off by, rms':>14}  unit"]
        for name, r in self.readings.items():
            unit = self.log[name].unit
            lines.append(f"  {name:<24}{r['samples']:9.0f}{r['measured_rms']:12.4g}{r['rms']:14.4g}  {unit}")
        return "\n".join(lines)


def simulate_study(
    loaded: Loaded[SimulateFile], progress: Progress = silent, clock: Callable[[], float] = time.process_time
) -> SimulateRun:
    """Simulate what a study file of kind simulate describes. `seconds` is time by `clock`, without that of compiling."""
    runs = {"tree": _tree, "natural": _mechanism, "single_track": _car}
    return runs[own_formulation(loaded, ("model",), loaded.study.model)](loaded, progress, clock)


def _tree(loaded: Loaded[SimulateFile], progress: Progress, clock: Callable[[], float]) -> SimulateRun:
    s = loaded.study
    setup = tree_setup(loaded)
    machine = setup.machine
    sensors = named_sensors(loaded) or perfect_sensors(machine)
    replace(setup.manoeuvre, duration=min(setup.manoeuvre.duration, FEW / s.rate)).run(machine)
    begin = clock()
    trajectory = setup.manoeuvre.run(machine, progress)
    seconds, trajectory = clock() - begin, as_signals(machine, trajectory)
    truth = _with_base(exact(machine, trajectory), trajectory)
    m = trajectory.motion
    units = ["rad" if kind == "turning" else "m" for kind in machine.coordinate_kinds]
    warn_of_speeds(machine.coordinates, units, m.qd)
    e = energy(machine, m, base_rotation=trajectory.base_rotation, base_position=trajectory.base_position)
    openings, errors = None, None
    if machine.closed:
        openings = np.abs(loop_values(tree_of(machine), m.q)[:, :, machine.n]).max(axis=1)
    if s.controller is not None and setup.led is not None:
        errors = m.q[:, list(machine.independent)] - setup.led.at(m.t)[0]
    coarser = float("nan")
    if s.integrator.check and not isinstance(setup.manoeuvre, Prescribed):
        how = setup.manoeuvre.method
        wider = replace(how, step=_twice(how.step, s.rate), rtol=COARSER * how.rtol, atol=COARSER * how.atol)
        again = replace(setup.manoeuvre, method=wider, rate=0.5 * s.rate)
        coarser = _difference(m.q, lambda: again.run(machine, _checking(progress)).motion.q)
    log = same_start(read_log(loaded, sensors, truth, np.random.default_rng(s.seed)))
    energies, words = np.column_stack([e.kinetic, e.gravity, e.elastic]), _manoeuvre_words(setup.manoeuvre)
    if trajectory.stepped_by_python:
        words["integrator"] += f"; stepped in Python: {trajectory.stepped_by_python}"
    found = energies, setup.conservative, openings, errors
    return SimulateRun(machine, trajectory, truth, log, seconds, _hashes(loaded), words, s.accept, coarser, *found)


def _mechanism(loaded: Loaded[SimulateFile], progress: Progress, clock: Callable[[], float]) -> SimulateRun:
    s = loaded.study
    setup = mechanism_setup(loaded)
    setup.run(min(setup.duration, FEW / s.rate))
    begin = clock()
    run = setup.run(setup.duration, progress)
    seconds = clock() - begin
    m, rng = setup.system.mechanism, np.random.default_rng(s.seed)
    warn_of_speeds(m.coordinates, [m.unit_of(c) for c in m.coordinates], run.motion.qd)
    truth = mechanism_truth(run)
    named = named_sensors(loaded)
    sensors = {**named, **{name: own for name, own in own_sensors(setup.machine, rng).items() if name not in named}}
    if not sensors:
        hint = "Give the model file sensors, or name channels under sensors: q.*, load.*."
        raise loaded.error_at(("sensors",), f"'{m.name}' has no sensors, so there is no log.", hint=hint)
    log = same_start(wrapped(m.sensors, read_log(loaded, sensors, truth, rng)))
    coarser = float("nan")
    if s.integrator.check and setup.led is None:
        again = replace(setup, method=replace(setup.method, step=_twice(setup.method.step, s.rate)), rate=0.5 * s.rate)
        coarser = _difference(run.motion.q, lambda: again.run(setup.duration, _checking(progress)).motion.q)
    drive = "led exactly" if setup.led else "loads" if setup.loads else "free"
    soft = f"; dry friction rounded off below {m.friction_speed:g}" if m.friction_speed > 0.0 else ""
    words = {"drive": drive, "integrator": setup.method.formulation + soft}
    openings = constraint_errors(setup.system, run.motion)[:, 0]
    found = energies(setup.system, run.motion.q, run.motion.qd), setup.conservative, openings
    return SimulateRun(setup.machine, run, truth, log, seconds, _hashes(loaded), words, s.accept, coarser, *found)


def _car(loaded: Loaded[SimulateFile], progress: Progress, clock: Callable[[], float]) -> SimulateRun:
    s = loaded.study
    setup = car_setup(loaded)
    car, drive, rng = setup.machine, setup.drive, np.random.default_rng(s.seed)
    steered_run(car, replace(drive, duration=min(drive.duration, FEW / s.rate)))
    begin = clock()
    run = steered_run(car, drive, progress)
    seconds = clock() - begin
    truth, named = car_truth(run), named_sensors(loaded)
    own = {**imperfections_of(car.sensors, rng), **dict.fromkeys(ACTING, Imperfection())}
    sensors = {**named, **{name: sensor for name, sensor in own.items() if name not in named}}
    coarser = float("nan")
    if s.integrator.check:
        every_second = float(run.t[::2][-1])
        again = replace(drive, duration=every_second, step=_twice(drive.step, s.rate), rate=0.5 * s.rate)
        coarser = _difference(run.states[:, :2], lambda: steered_run(car, again, _checking(progress)).states[:, :2])
    log = same_start(read_log(loaded, sensors, truth, rng))
    words = {"drive": "speed and steering", "integrator": f"RK4, step {drive.step:g} s"}
    return SimulateRun(car, run, truth, log, seconds, _hashes(loaded), words, s.accept, coarser)


def _difference(q: Array, again: Callable[[], Array]) -> float:
    """How far a motion lies from one that is integrated again at every second sample; infinite where that cannot be done."""
    if len(q) < 3:
        return float("nan")
    try:
        return float(np.abs(q[::2] - again()).max(initial=0.0))
    except SimulationError:
        return float("inf")


def _twice(step: float, rate: float) -> float:
    """Twice the step that is taken: samples cut it short."""
    return 2.0 * min(step, 1.0 / rate) if np.isfinite(step) else step


def _checking(progress: Progress) -> Progress:
    return lambda task, done, total: progress("integrating once more, coarser", done, total)


def _with_base(truth: Experiment, trajectory: Trajectory) -> Experiment:
    """The truth with the place of a free base."""
    if trajectory.base_position is None or trajectory.base_rotation is None:
        return truth
    t, p, R = trajectory.motion.t, trajectory.base_position, trajectory.base_rotation
    more = [Channel(f"base.position.{a}", t, p[:, k], "m") for k, a in enumerate("xyz")]
    more += [
        Channel(f"base.rotation.{a}{b}", t, R[:, i, j], "1") for i, a in enumerate("xyz") for j, b in enumerate("xyz")
    ]
    return truth.replacing(*more)


def _hashes(loaded: Loaded[SimulateFile]) -> dict[str, str]:
    s = loaded.study
    files: dict[str, tuple[str, Place]] = {}
    if s.motion is not None and s.motion.file:
        files["motion"] = (s.motion.file, ("motion", "file"))
    if s.inputs.file:
        files["inputs"] = (s.inputs.file, ("inputs", "file"))
    if s.controller is not None and s.controller.model:
        files["controller_model"] = (s.controller.model, ("controller", "model"))
    found = {k: fingerprint(loaded.path(*at)) for k, at in files.items()}
    model = fingerprint(model_path(loaded, ("model",), s.model))
    return {"study": fingerprint(loaded.text), "model": model} | found


def _manoeuvre_words(manoeuvre: Any) -> dict[str, str]:
    kind = type(manoeuvre).__name__
    if kind == "Prescribed":
        return {"drive": "motion made exactly", "integrator": "none: inverse dynamics"}
    drive = "inputs" if manoeuvre.inputs else "free"
    drive = {"Tracking": "motion tracked by a controller", "Commanded": "commands followed by its own controllers"}.get(
        kind, drive
    )
    m = manoeuvre.method
    how = f"{m.name}, step {m.step:g} s" if m.name == "RK4" else f"{m.name}, rtol {m.rtol:g}, atol {m.atol:g}"
    soft = f"; dry friction rounded off below {m.friction_speed:g}" if m.friction_speed > 0.0 else ""
    return {"drive": drive, "integrator": how + soft}


def _among(t: Array, clock: Array) -> bool:
    """Whether every time is one of the clock's."""
    k = np.searchsorted(clock, t)
    return bool((k < len(clock)).all() and (clock[np.minimum(k, len(clock) - 1)] == t).all())


@dataclass(frozen=True, eq=False)
class CarSetup:
    """A car with what its driver does."""

    machine: Machine
    drive: Steered


def car_setup(loaded: Loaded[SimulateFile]) -> CarSetup:
    """The car and its drive; everything the study says is checked here, before anything runs."""
    s = loaded.study
    _refuse_of_bodies(loaded)
    car, duration = named_car(loaded), duration_of(loaded, None)
    given = given_inputs(loaded, CAR_COURSES, duration)
    faults = [
        loaded.fault(("inputs",), f"a car is driven by its {name}, and nothing says what it is.", hint=hint)
        for name, hint in (
            ("speed", "Add inputs: {formulas: {speed: 20}}, m/s."),
            ("steer", "Add inputs: {formulas: {steer: 0.03*sin(0.8*t)}}, rad."),
        )
        if name not in given
    ]
    if "speed" in s.inputs.columns and s.inputs.between == "hold":
        what = "a speed that jumps from sample to sample has no acceleration."
        faults.append(loaded.fault(("inputs", "between"), what, "linear", "hold"))
    if faults:
        raise loaded.error(faults)
    speed = _continued(given["speed"], duration) if "speed" in s.inputs.columns else given["speed"]
    start = tuple(s.start.rates.get(name, 0.0) for name in CAR_RATES)
    step = LONGEST_STEP_S if s.integrator.step is None else s.integrator.step
    bank = given.get("bank", 0.0)
    return CarSetup(car, Steered(duration, s.rate, speed, given["steer"], bank, (start[0], start[1]), step))


def _refuse_of_bodies(loaded: Loaded[SimulateFile]) -> None:
    """What speaks of bodies and joints is refused by name, all of it at once."""
    s = loaded.study
    what = "a car of a few numbers has no bodies and joints that this could speak of."
    faults = [
        loaded.fault(("model", key), what, hint="Drop it.")
        for key in s.model.model_dump(exclude_defaults=True)
        if key not in ("file", "fit", "unexcited", "formulation")
    ]
    faults += [
        loaded.fault((key,), what, hint="Give speed and steer under inputs.")
        for key in ("motion", "controller")
        if getattr(s, key) is not None
    ]
    if s.start.coordinates or s.start.base is not None:
        at = ("start", "coordinates" if s.start.coordinates else "base")
        faults.append(loaded.fault(at, "a car starts at the origin, heading east.", hint="Drop it."))
    faults += [
        loaded.fault(("start", "rates", name), f"a car has no '{name}' to start with.", ", ".join(CAR_RATES))
        for name in s.start.rates
        if name not in CAR_RATES
    ]
    if s.integrator.name not in ("auto", "RK4"):
        found = s.integrator.name
        faults.append(loaded.fault(("integrator", "name"), "a drive is integrated by RK4.", "auto or RK4", found))
    if faults:
        raise loaded.error(faults)


def _continued(speed: OfTime, end: float) -> OfTime:
    """A speed of a table that goes on before its first time and after the end as it began and ended, so that its slope there is known."""

    def continued(t: float) -> float:
        edge = min(max(t, 0.0), end)
        return speed(t) if edge == t else 2.0 * speed(edge) - speed(2.0 * edge - t)

    return continued
