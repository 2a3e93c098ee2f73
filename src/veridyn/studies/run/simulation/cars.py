"""A car of a few numbers simulated as a study file says: its speed and steering over time, on a road with a bank."""

from __future__ import annotations

from dataclasses import dataclass

from veridyn.model.machine import Machine
from veridyn.simulate.car import LONGEST_STEP_S, Steered
from veridyn.studies.config.simulate import SimulateFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.observer import named_car
from veridyn.studies.run.simulation.inputs import OfTime, duration_of, given_inputs

COURSES = {"speed": "m/s", "steer": "rad", "bank": "rad"}
RATES = ("lateral_speed", "yaw_rate")  # at the start


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
    given = given_inputs(loaded, COURSES, duration)
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
    speed = _beyond(given["speed"], duration) if "speed" in s.inputs.columns else given["speed"]
    start = tuple(s.start.rates.get(name, 0.0) for name in RATES)
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
        loaded.fault(("start", "rates", name), f"a car has no '{name}' to start with.", ", ".join(RATES))
        for name in s.start.rates
        if name not in RATES
    ]
    if s.integrator.name not in ("auto", "RK4"):
        found = s.integrator.name
        faults.append(loaded.fault(("integrator", "name"), "a drive is integrated by RK4.", "auto or RK4", found))
    if faults:
        raise loaded.error(faults)


def _beyond(speed: OfTime, end: float) -> OfTime:
    """A speed of a table that goes on before its first time and after the end as it began and ended, so that its slope there is known."""

    def continued(t: float) -> float:
        edge = min(max(t, 0.0), end)
        return speed(t) if edge == t else 2.0 * speed(edge) - speed(2.0 * edge - t)

    return continued
