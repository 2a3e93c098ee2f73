"""A machine simulated as a study file says: in joint coordinates led, tracked or driven, in natural coordinates driven or led."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, VeridynError, did_you_mean
from veridyn.files.machine.load import load_model
from veridyn.files.yaml_reader import Place
from veridyn.mechanics.natural.description.of_machine import mechanism_of, rounded
from veridyn.mechanics.natural.equations.position import independent, start_of
from veridyn.mechanics.natural.equations.system import NaturalSystem, system_of
from veridyn.mechanics.natural.steps.integrate import Loads, MechanismRun, NaturalMethod, driven, led
from veridyn.mechanics.system.integrate import BaseState, Inputs, Method, Trajectory
from veridyn.mechanics.tree.dynamics.forward import mass_matrix, open_mass_matrix
from veridyn.mechanics.tree.loops.closure import close, closed_home, closed_motion, loop_jacobian
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import complete_values
from veridyn.model.controller import MOTOR
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.model.motion import Reference
from veridyn.progress import Progress, silent
from veridyn.signals.trajectory import SampledTrajectory
from veridyn.simulate.commanded import Commanded
from veridyn.simulate.simulator import Driven, Prescribed, Tracking, check_led, signal_unit
from veridyn.studies.config.simulate import ControllerSettings, SimulateFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.machine import existing_file, fitted_machine, model_path, study_machine
from veridyn.studies.run.simulation_inputs import Led, OfTime, duration_of, followed, given_inputs

FIXED_STEP = 1e-3  # s, of RK4 where the study gives none


@dataclass(frozen=True, eq=False)
class TreeSetup:
    """A machine with what it is to do. `led`: the reference of the independent coordinates, where there is one."""

    machine: Machine
    manoeuvre: Driven | Tracking | Prescribed | Commanded
    led: Reference | None

    @property
    def conservative(self) -> bool:
        """Whether nothing feeds or brakes it."""
        kinds = {e.kind for e in self.machine.elements}
        return (
            isinstance(self.manoeuvre, Driven)
            and self.manoeuvre.inputs is None
            and kinds <= {"spring", "offset", "inertia"}
            and not any(e.on_body for e in self.machine.elements)
        )


def tree_setup(loaded: Loaded[SimulateFile]) -> TreeSetup:
    """The machine and the manoeuvre that a study describes; everything it says is checked here, before anything runs."""
    s = loaded.study
    machine = study_machine(loaded, ("model",), s.model)
    complete_values(machine)
    led = _led(loaded, machine) if s.motion is not None else None
    duration = duration_of(loaded, led)
    inputs = _inputs(loaded, machine, duration)
    if led is None:
        q, qd = _start(loaded, machine)
        base = None if s.start.base is None else BaseState(**s.start.base.model_dump())
        if base is not None and machine.base != "free":
            raise loaded.error_at(("start", "base"), f"the base of '{machine.name}' is fixed.")
        return TreeSetup(machine, Driven(duration, s.rate, q, qd, inputs, base, _method(loaded, machine)), None)
    check_led(machine, len(led.names), "Leave motion out, and give forces of the others as inputs.")
    if s.controller is None:
        return TreeSetup(machine, Prescribed(led.reference, duration, s.rate, inputs), led.reference)
    if s.controller.own:
        return TreeSetup(machine, _commanded(loaded, machine, led.reference, duration, inputs), led.reference)
    kp, kd, feedforward = _controller(loaded, machine, s.controller, led.reference)
    method = _method(loaded, machine)
    made = Tracking(led.reference, duration, s.rate, kp, kd, feedforward, method, inputs)
    return TreeSetup(machine, made, led.reference)


def as_signals(machine: Machine, trajectory: Trajectory) -> Trajectory:
    """The same motion where drive gains stand for motors: the force on a coordinate, less what acts already, as the signal that makes it.

    A coordinate whose one gain acts on it alone is driven by its signal; its force is then zero.
    """
    m = trajectory.motion
    gains = [e for e in machine.elements if e.kind == "drive_gain"]
    if not gains or m.forces is None:
        return trajectory
    forces, signals = m.forces.copy(), dict(m.signals)
    values = complete_values(machine)
    for e in gains:
        (c, a), *others = e.on.items()
        alone = not others and sum(c in g.on for g in gains) == 1 and sum(g.signal == e.signal for g in gains) == 1
        k = machine.coordinates.index(c)
        if alone and np.any(forces[:, k] != 0.0):
            gain = a * values[machine.parameters.index(e.parameter_name)]
            signals[e.signal] = signals[e.signal] + forces[:, k] / gain
            forces[:, k] = 0.0
    return replace(trajectory, motion=replace(m, forces=forces, signals=signals))


def _led(loaded: Loaded[SimulateFile], machine: Machine) -> Led:
    units = {
        c: "m" if kind == "sliding" else "rad"
        for c, kind in zip(machine.coordinates, machine.coordinate_kinds, strict=True)
    }
    own = [machine.coordinates[k] for k in machine.independent]
    led = followed(loaded, units, own)
    if set(led.names) == set(own):
        return led
    if not machine.closed or not isinstance(led.reference, SampledTrajectory):
        missing = ", ".join(f"q.{c}" for c in own if c not in led.names)
        raise loaded.error_at(("motion",), f"its table has no {missing}.", "positions of every coordinate")
    table = led.reference
    with loaded.placing(("motion",), VeridynError):
        whole = closed_motion(machine, table.t, *table.at(table.t), at=led.names)
    at = list(machine.independent)
    reference = SampledTrajectory(table.t, whole.q[:, at], whole.qd[:, at], whole.qdd[:, at])
    return Led(reference, tuple(own), led.length)


def _inputs(loaded: Loaded[SimulateFile], machine: Machine, duration: float) -> Inputs | None:
    led = loaded.study.motion is not None
    driven = list(dict.fromkeys(e.signal for e in machine.elements if e.kind in ("drive_gain", MOTOR)))
    read_by_laws = [name for e in machine.elements if e.own_law is not None for name in e.signals if name not in driven]
    units = (
        {}
        if led
        else {f"force.{c}": "N" if machine.kinds[c] == "sliding" else "N*m" for c in machine.actuated_coordinates}
    )
    units |= {f"signal.{name}": signal_unit(machine, name) for name in ([] if led else driven) + read_by_laws}
    units |= {
        f"wrench.{b.name}.{row}": "N" if row.startswith("f") else "N*m" for b in machine.links for row in WRENCH_ROWS
    }
    given = given_inputs(loaded, units, duration)
    missing = [name for name in read_by_laws if f"signal.{name}" not in given]
    if missing:
        what = f"the law of an element reads the signal '{missing[0]}', and nothing says what it is."
        raise loaded.error_at(("inputs",), what, hint=f"Add inputs: {{formulas: {{signal.{missing[0]}: NUMBER}}}}.")
    if not given and not driven:
        return None
    forces = [(machine.coordinates.index(name[6:]), f) for name, f in given.items() if name.startswith("force.")]
    on: dict[str, list[tuple[int, OfTime]]] = {}
    for name, f in given.items():
        if name.startswith("wrench."):
            body, _, row = name[7:].rpartition(".")
            on.setdefault(body, []).append((WRENCH_ROWS.index(row), f))
    read: dict[str, OfTime] = {name: given.get(f"signal.{name}", lambda _: 0.0) for name in [*driven, *read_by_laws]}

    def pushed(t: float, q: Array, qd: Array) -> Array:
        return _filled(machine.n, forces, t)

    def acting(t: float, q: Array, qd: Array) -> Mapping[str, ArrayLike]:
        return {body: _filled(6, parts, t) for body, parts in on.items()}

    def signals(t: float, q: Array, qd: Array) -> Mapping[str, float]:
        return {name: f(t) for name, f in read.items()}

    return Inputs(pushed if forces else None, acting if on else None, signals if read else None)


def _filled(n: int, parts: list[tuple[int, OfTime]], t: float) -> Array:
    out = np.zeros(n)
    for k, f in parts:
        out[k] = f(t)
    return out


def _start(loaded: Loaded[SimulateFile], machine: Machine) -> tuple[Array, Array]:
    s = loaded.study.start
    for section, names in (("coordinates", s.coordinates), ("rates", s.rates)):
        _known(loaded, ("start", section), names, machine)
    if not machine.closed:
        q, qd = (np.array([x.get(c, 0.0) for c in machine.coordinates]) for x in (s.coordinates, s.rates))
        return q, qd
    with loaded.placing(("start",), VeridynError):
        q = closed_home(machine)
        if s.coordinates:
            given = {c: [value] for c, value in s.coordinates.items()}
            q = close(machine, given, at=tuple(s.coordinates), path=False).q[0]
        qd = np.zeros(machine.n)
        if s.rates:
            qd = loop_jacobian(machine, q[None], at=tuple(s.rates))[0] @ np.array(list(s.rates.values()))
        return q, qd


def _known(loaded: Loaded[SimulateFile], at: Place, names: Mapping[str, object], machine: Machine) -> None:
    faults = [
        loaded.fault(
            (*at, n), f"'{n}' is no coordinate of '{machine.name}'.", hint=did_you_mean(n, machine.coordinates)
        )
        for n in names
        if n not in machine.coordinates
    ]
    if faults:
        raise loaded.error(faults)


def _method(loaded: Loaded[SimulateFile], machine: Machine) -> Method:
    s = loaded.study.integrator
    if s.name in ("index3", "explicit", "penalty", "augmented", "r_matrix"):
        raise loaded.error_at(
            ("integrator", "name"), f"'{s.name}' integrates mechanisms.", "RK4 or one of SciPy's methods"
        )
    dry = any(e.has_sign for e in machine.elements)
    holds = dry and s.friction_speed == 0.0
    if holds and s.name not in ("auto", "RK4"):
        what = f"'{s.name}' cannot step with dry friction that holds."
        hint = "Give RK4, or a friction_speed above zero below which friction is rounded off."
        raise loaded.error_at(("integrator", "name"), what, "RK4", hint=hint)
    name = ("RK4" if holds else "LSODA" if dry else "DOP853") if s.name == "auto" else s.name
    step = s.step if s.step is not None else FIXED_STEP if name == "RK4" else np.inf
    return Method(name, step, s.rtol, s.atol, s.friction_speed if dry else 0.0)


def _controller(
    loaded: Loaded[SimulateFile], machine: Machine, s: ControllerSettings, reference: Reference
) -> tuple[Array, Array, Machine | None]:
    own = [machine.coordinates[k] for k in machine.independent]
    w, moved = 2.0 * np.pi * s.bandwidth, None
    gains = []
    for key, factor in (("kp", w**2), ("kd", 2.0 * w)):
        given = getattr(s, key)
        if given is None:
            moved = _moved(machine, reference) if moved is None else moved
            gains.append(factor * moved)
        elif isinstance(given, dict):
            _known(loaded, ("controller", key), given, machine)
            missing = [c for c in own if c not in given]
            if missing:
                raise loaded.error_at(("controller", key), f"no gain is given for {', '.join(missing)}.")
            gains.append(np.array([given[c] for c in own]))
        else:
            gains.append(np.full(len(own), float(given)))
    return gains[0], gains[1], _controller_model(loaded, machine, s) if s.feedforward else None


def _commanded(
    loaded: Loaded[SimulateFile], machine: Machine, reference: Reference, duration: float, inputs: Inputs | None
) -> Commanded:
    """The machine's own controllers follow the motion; every coordinate of it needs one."""
    s, place = loaded.study, ("controller", "own")
    names = [machine.coordinates[k] for k in machine.independent]
    without = [c for c in names if c not in {x.on for x in machine.controllers}]
    if without:
        hint = "Add controllers to the model file, or give kp and kd here."
        raise loaded.error_at(place, f"'{machine.name}' has no controller of {', '.join(without)}.", hint=hint)
    if machine.closed:
        what = "the machine's own controllers follow motions of open machines in a study."
        raise loaded.error_at(place, what, found="closed loops", hint="Give kp and kd here.")
    method = _method(loaded, machine)
    if s.integrator.name == "auto":  # methods that choose their steps would begin anew at every tick
        step = FIXED_STEP if s.integrator.step is None else s.integrator.step
        method = Method("RK4", step, friction_speed=method.friction_speed)
    if method.name == "RK4":  # two steps a tick at least: with one, a run with steps twice as long would be the same
        fastest = max(c.rate * c.current_ticks for c in machine.controllers)
        method = replace(method, step=min(method.step, 0.5 / fastest))
    q, qd, _ = reference.at(0.0)
    assert s.controller is not None  # the caller looked
    model = _controller_model(loaded, machine, s.controller)
    return Commanded(reference, duration, s.rate, q, qd, model, method, inputs)


def _controller_model(loaded: Loaded[SimulateFile], machine: Machine, s: ControllerSettings) -> Machine:
    """What the controller computes with: the machine itself, or another model file of it."""
    feedforward = machine
    if s.model:
        file: Path = existing_file(loaded, s.model, ("controller", "model"))
        assert loaded.study.model is not None
        feedforward = study_machine(loaded, ("controller",), loaded.study.model.model_copy(update={"file": s.model}))
        if feedforward.coordinates != machine.coordinates:
            found = ", ".join(feedforward.coordinates)
            raise loaded.error_at(
                ("controller", "model"), f"{file.name} is another machine.", ", ".join(machine.coordinates), found
            )
    return feedforward


def _moved(machine: Machine, reference: Reference) -> Array:
    """The inertia that each independent coordinate moves where the reference starts, the others at rest."""
    q, qd, qdd = (x[None] for x in reference.at(0.0))
    if not machine.closed:
        return np.diagonal(mass_matrix(machine, q, engine="numpy")[0]).copy()
    whole = closed_motion(machine, [0.0], q, qd, qdd)
    G = loop_jacobian(machine, whole.q)[0]
    return np.diagonal(G.T @ open_mass_matrix(tree_of(machine), whole.q, engine="numpy")[0] @ G).copy()


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
    motion = _led_points(loaded, system, q) if s.motion is not None else None
    duration = duration_of(loaded, motion)
    loads = _loads(loaded, system, duration)
    return MechanismSetup(
        machine, system, duration, s.rate, loads, s.start.coordinates, s.start.rates, _natural_method(loaded), motion
    )


def _led_points(loaded: Loaded[SimulateFile], system: NaturalSystem, q: Array) -> Led:
    m = system.mechanism
    driving = [load.coordinate for load in m.loads if isinstance(load, Drive)]
    return followed(loaded, {c: m.unit_of(c) for c in m.coordinates}, independent(system, q, driving))


def _loads(loaded: Loaded[SimulateFile], system: NaturalSystem, duration: float) -> Loads | None:
    m = system.mechanism
    units, places = {}, {}
    for load in m.loads:
        for k, name in enumerate(load.channels):
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


def _natural_method(loaded: Loaded[SimulateFile]) -> NaturalMethod:
    s = loaded.study.integrator
    step = STEP if s.step is None else s.step
    if s.name in EXPLICIT:
        return NaturalMethod("explicit", step, rule=s.name)
    if s.name not in ("auto", "index3", "penalty", "augmented", "r_matrix"):
        expected = f"index3, penalty, augmented, r_matrix, {', '.join(EXPLICIT)}"
        raise loaded.error_at(("integrator", "name"), f"'{s.name}' integrates trees.", expected)
    return NaturalMethod("index3" if s.name == "auto" else s.name, step)
