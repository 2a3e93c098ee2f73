"""The machine that a study of kind observe names, with the sensors that its log has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veridyn.errors import ModelError, did_you_mean
from veridyn.files.machine.load import load_model
from veridyn.mechanics.formulated import formulated
from veridyn.mechanics.natural.formulation import PointsForm
from veridyn.mechanics.natural.inputs import motor_names
from veridyn.mechanics.natural.measurement import readout
from veridyn.mechanics.natural.system import NaturalSystem, natural_system
from veridyn.mechanics.tree.model import BASE_NAMES
from veridyn.mechanics.tree.readout import tree_readout
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.load import channels
from veridyn.model.machine import Machine
from veridyn.model.placed import placed_load, placed_sensor
from veridyn.model.sensor import Sensor
from veridyn.studies.config.observe import ObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.fitted import fit_file, fitted_machine


@dataclass(frozen=True, kw_only=True)
class Described:
    """The names of a machine that a study may use: coordinates, loads, channels of what acts, and outputs of its sensors.

    `base`: the coordinates of a free base, base.x … base.yaw.
    """

    name: str
    coordinates: tuple[str, ...]
    loads: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    base: tuple[str, ...] = ()


def existing_file(loaded: Loaded[Any], text: str, at: tuple[str, ...]) -> Path:
    """A file that the study names, refused where it is not there."""
    file = loaded.path(text, at)
    if not file.is_file():
        hint = "Paths are relative to the study file; ${NAME} stands for a variable."
        raise loaded.error(loaded.fault(at, "there is no such file.", found=str(file), hint=hint))
    return file


def model_file(loaded: Loaded[Any]) -> Path:
    """The file that describes the machine: a model file, or that of a fit."""
    s = loaded.study
    if s.model.fit:
        return fit_file(loaded, ("model", "fit"), s.model.fit)
    return existing_file(loaded, s.model.file, ("model", "file"))


def observed_machine(loaded: Loaded[ObserveFile]) -> tuple[Machine, Described]:
    """The machine with the sensors that the log has, and its names; what is wrong with it is reported under the name of its file."""
    machine = _measured(loaded, _machine(loaded))
    try:
        return machine, _in_points(machine) if machine.formulation == "natural" else _in_joints(machine)
    except ModelError as error:
        raise ModelError(error.faults, model_file(loaded).name) from error


def _in_joints(machine: Machine) -> Described:
    tree_readout(machine)  # refuses sensors that it cannot have
    return Described(
        name=machine.name,
        coordinates=machine.coordinates,
        loads=tuple(load.name for load in machine.loads),
        inputs=_acting(machine),
        outputs=_outputs([placed_sensor(machine, i) for i in machine.sensors], 3),
        base=BASE_NAMES if machine.base == "free" else (),
    )


def _in_points(machine: Machine) -> Described:
    """One with tyres or prescribed coordinates is run over the freedoms of its joints, and has their names."""
    system = natural_system(machine)
    _refuse_unread(system)
    points = isinstance(formulated(machine), PointsForm)
    prescribed = [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in machine.prescribed]
    return Described(
        name=machine.name,
        coordinates=system.coordinates if points else machine.coordinates,
        loads=tuple(load.name for load in system.mechanism.loads),
        inputs=(*system.forces.places, *motor_names(machine), *prescribed),
        outputs=_outputs(machine.sensors, machine.dimension),
        base=BASE_NAMES if not points and machine.base == "free" else (),
    )


def named_machine(loaded: Loaded[Any]) -> Machine:
    """The machine of the section ``model``, from its file or from a fit, in its own formulation, with all its sensors."""
    s, file = loaded.study, model_file(loaded)
    if s.model.fit:
        return fitted_machine(loaded, ("model", "fit"), s.model.fit, s.model.unexcited)
    return load_model(file)


def _machine(loaded: Loaded[ObserveFile]) -> Machine:
    """The machine in the formulation of the study."""
    machine = named_machine(loaded)
    return machine.with_formulation(loaded.study.model.formulation or machine.formulation)


def _acting(machine: Machine) -> tuple[str, ...]:
    """The channels of a log that act on a machine in joint coordinates."""
    found = [c for load in machine.loads for c in channels(placed_load(machine, load))]
    found += [f"force.{c}" for c in machine.actuated_coordinates if c not in machine.prescribed]
    found += [f"signal.{name}" for name in machine.signals]
    found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in machine.prescribed]
    found += [f"wrench.{b.name}.{row}" for b in machine.links for row in WRENCH_ROWS]
    return tuple(found)


def _outputs(sensors: Sequence[Sensor], dimension: int) -> tuple[str, ...]:
    return tuple(c for s in sensors for c in s.channels(dimension))


def _refuse_unread(system: NaturalSystem) -> None:
    """Refuse sensors that points and vectors cannot read, all of them at once."""
    faults = []
    for i in system.mechanism.sensors:
        try:
            readout(system, [i])
        except ModelError as error:
            faults += [replace(f, where=f"sensor '{i.name}', {f.where}") for f in error.faults]
    if faults:
        raise ModelError(faults)


def _measured(loaded: Loaded[ObserveFile], machine: Machine) -> Machine:
    """The machine with the sensors that the log has, and the noise the study gives them."""
    s = loaded.study
    names = [i.name for i in machine.sensors]
    faults = [
        loaded.fault(at, f"'{name}' is no sensor of '{machine.name}'.", hint=did_you_mean(name, names))
        for at, name in (
            *((("without", k), name) for k, name in enumerate(s.without)),
            *((("process_noise", "sensors", name), name) for name in s.process_noise.sensors),
        )
        if name not in names
    ]
    kept = [i for i in machine.sensors if i.name not in s.without]
    if not kept:
        at = ("without",) if s.without else ("model",)
        faults.append(loaded.fault(at, "no sensor is left, so there is nothing to observe it by."))
    for i in kept:
        sigma = s.process_noise.sensors.get(i.name, i.sigma)
        if sigma < 0.0 or (sigma == 0.0 and i.quantum == 0.0):
            at = ("process_noise", "sensors", i.name)
            faults.append(loaded.fault(at, "this is no deviation.", "a positive number", f"{sigma:g}"))
    if faults:
        raise loaded.error(faults)
    return replace(machine, sensors=tuple(replace(i, sigma=s.process_noise.sensors.get(i.name, i.sigma)) for i in kept))
