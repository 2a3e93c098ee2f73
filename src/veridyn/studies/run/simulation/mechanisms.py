"""A machine in natural coordinates simulated as a study file says: driven by its loads, or led along a motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, VeridynError, did_you_mean
from veridyn.files.machine.load import load_model
from veridyn.mechanics.natural.description.of_machine import mechanism_of, rounded
from veridyn.mechanics.natural.equations.position import independent
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.steps.driven import MechanismRun, driven, led
from veridyn.mechanics.natural.steps.integrate import Loads, NaturalMethod
from veridyn.mechanics.natural.steps.minimal import start_of
from veridyn.model.load import Drive, channels
from veridyn.model.machine import Machine
from veridyn.progress import Progress, silent
from veridyn.studies.config.simulate import SimulateFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.machine import fitted_machine, model_path
from veridyn.studies.run.simulation.inputs import Led, OfTime, duration_of, followed, given_inputs

STEP = 1e-3  # s, where the study gives none
EXPLICIT = ("RK4", "RK45", "DOP853")


@dataclass(frozen=True, eq=False)
class MechanismSetup:
    """A machine in natural coordinates with what it is to do; `system` is it made ready for computing."""

    machine: Machine
    system: NaturalSystem
    duration: float
    rate: float
    loads: Loads | None
    start: Mapping[str, float]
    rates: Mapping[str, float]
    method: NaturalMethod
    led: Led | None

    @property
    def conservative(self) -> bool:
        """Whether nothing feeds or brakes it."""
        m, still = self.system.mechanism, not self.system.forces.values.any()
        return self.led is None and self.loads is None and still and not (m.dampers or m.laws)

    def run(self, duration: float, progress: Progress = silent) -> MechanismRun:
        """The motion over `duration` seconds."""
        system, rate, loads = self.system, self.rate, self.loads
        if self.led is not None:
            return led(system, duration, rate, self.led.reference, self.led.names, loads, progress=progress)
        start, rates, method = self.start, self.rates, self.method
        return driven(system, duration, rate, loads, start=start, rates=rates, method=method, progress=progress)


def _natural(loaded: Loaded[SimulateFile]) -> Machine:
    """The machine in natural coordinates; what a study can do to a tree only is refused by name."""
    s, tree = loaded.study, "Drop it, or write formulation: tree under model."
    given = s.model.model_dump(exclude_defaults=True)
    faults = [
        loaded.fault(("model", key), "only a machine in joint coordinates (a tree) takes this.", hint=tree)
        for key in given
        if key not in ("file", "fit", "unexcited", "formulation")
    ]
    if s.controller is not None:
        what = "in natural coordinates a machine makes its motion exactly."
        faults.append(loaded.fault(("controller",), what, "no controller", hint=tree))
    if faults:
        raise loaded.error(faults)
    if s.model.fit:
        machine = fitted_machine(loaded, ("model", "fit"), s.model.fit, s.model.unexcited)
    else:
        machine = load_model(model_path(loaded, ("model",), s.model))
    return machine.with_formulation("natural")


def mechanism_setup(loaded: Loaded[SimulateFile]) -> MechanismSetup:
    """The mechanism and what drives it; everything the study says is checked here, before anything runs."""
    s = loaded.study
    machine = _natural(loaded)
    parts = mechanism_of(machine)
    if s.motion is None:  # a motion that is made exactly has the laws as they are
        with loaded.placing(("integrator", "friction_speed"), CapabilityError):
            parts = rounded(parts, s.integrator.friction_speed)
    system = system_of(parts)
    m = system.mechanism
    faults = [
        loaded.fault(
            ("start", section, n), f"'{n}' is no coordinate of '{m.name}'.", hint=did_you_mean(n, m.coordinates)
        )
        for section, names in (("coordinates", s.start.coordinates), ("rates", s.start.rates))
        for n in names
        if n not in m.coordinates
    ]
    if s.start.base is not None:
        faults.append(loaded.fault(("start", "base"), "a mechanism stands on the ground."))
    if faults:
        raise loaded.error(faults)
    with loaded.placing(("start",), VeridynError):
        q, _ = start_of(system, s.start.coordinates, s.start.rates)
    motion = _led(loaded, system, q) if s.motion is not None else None
    duration = duration_of(loaded, motion)
    loads = _loads(loaded, system, duration)
    return MechanismSetup(
        machine, system, duration, s.rate, loads, s.start.coordinates, s.start.rates, _method(loaded), motion
    )


def _led(loaded: Loaded[SimulateFile], system: NaturalSystem, q: Array) -> Led:
    m = system.mechanism
    driving = [load.coordinate for load in m.loads if isinstance(load, Drive)]
    return followed(loaded, {c: m.unit_of(c) for c in m.coordinates}, independent(system, q, driving))


def _loads(loaded: Loaded[SimulateFile], system: NaturalSystem, duration: float) -> Loads | None:
    m = system.mechanism
    units, places = {}, {}
    for load in m.loads:
        for k, name in enumerate(channels(load)):
            units[name], places[name] = m.force_unit(load.name), (load.name, k)
    given = given_inputs(loaded, units, duration)
    if not given:
        return None
    own = {load.name: system.forces.values[system.forces.loads[load.name]] for load in m.loads}
    parts: dict[str, list[tuple[int, OfTime]]] = {}
    for name, f in given.items():
        load, k = places[name]
        parts.setdefault(load, []).append((k, f))

    def loads(t: float) -> dict[str, ArrayLike]:
        out: dict[str, ArrayLike] = {}
        for load, components in parts.items():
            values = own[load].copy()
            for k, f in components:
                values[k] = f(t)
            out[load] = values
        return out

    return loads


def _method(loaded: Loaded[SimulateFile]) -> NaturalMethod:
    s = loaded.study.integrator
    step = STEP if s.step is None else s.step
    if s.name in EXPLICIT:
        return NaturalMethod("explicit", step, rule=s.name)
    if s.name not in ("auto", "index3", "penalty", "augmented", "r_matrix"):
        expected = f"index3, penalty, augmented, r_matrix, {', '.join(EXPLICIT)}"
        raise loaded.error_at(("integrator", "name"), f"'{s.name}' integrates trees.", expected)
    return NaturalMethod("index3" if s.name == "auto" else s.name, step)
