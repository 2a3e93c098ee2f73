"""What a filter is run with: the method, the process noise, where the machine starts, what is unknown of it and what is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, ModelError
from veridyn.mechanics.measurement import readout
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.mechanics.natural.of_machine import mechanism_of
from veridyn.mechanics.natural.slopes import with_parameter_slopes
from veridyn.mechanics.natural.system import NaturalSystem, system_of
from veridyn.mechanics.tree.model import FRICTION_SPEED
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine
from veridyn.model.sensor import Choice, chosen_sensors
from veridyn.observe.bounds import Parameters
from veridyn.observe.ekf import EKF
from veridyn.observe.filter import Filter
from veridyn.observe.free import FreeSystem, free_system, is_free
from veridyn.observe.inputs import with_motor_inputs
from veridyn.observe.linearised import Linearised
from veridyn.observe.machine import MachineSystem
from veridyn.observe.mechanism import MechanismSystem
from veridyn.observe.mechanism_setup import mechanism_system
from veridyn.observe.methods import ErrorEKF, LinearKF, filter_of
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.readings import InputHold
from veridyn.observe.system import System
from veridyn.observe.tree_setup import tree_system
from veridyn.observe.ukf import UKF

Array = NDArray[np.float64]
Observable = Machine | Tree | Mechanism | NaturalSystem


@dataclass(frozen=True, kw_only=True)
class ObserverSetup:
    """How to observe; every field has the meaning that :func:`~veridyn.observe.observe.observe` gives it."""

    method: Filter = field(default_factory=EKF)
    process_noise: ProcessNoise | None = None
    start: Mapping[str, float] | Literal["readings"] | None = None
    rates: Mapping[str, float] | None = None
    independents: tuple[str, ...] = ()
    unknown: tuple[str, ...] | None = None
    inputs: tuple[str, ...] | None = None
    frozen_after: int | None = None
    step: float | None = None
    input_hold: InputHold = "zero"
    friction_speed: float = FRICTION_SPEED
    parameters: Parameters = ()
    sensors: Choice | None = None
    consider: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", filter_of(self.method, "observe"))
        if isinstance(self.start, str) and self.start != "readings":
            expected = 'coordinates with their values, or "readings"'
            raise ModelError(Fault("it is not known.", "observe, start", expected, f"{self.start!r}"))
        if self.input_hold not in get_args(InputHold):
            expected = " or ".join(get_args(InputHold))
            raise ModelError(Fault("it is not known.", "observe, input_hold", expected, f"{self.input_hold!r}"))
        if not self.friction_speed > 0.0:
            found = f"{self.friction_speed}"
            raise ModelError(Fault("it is not usable.", "observe, friction_speed", "a speed above zero", found))
        for name in ("independents", "unknown", "inputs", "parameters"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, Mapping):
                object.__setattr__(self, name, tuple(given))

    def system(self, machine: Observable, process_noise: ProcessNoise) -> tuple[MachineSystem, Array, Array]:
        """The system that the filter runs on, and the configuration and velocity it starts from."""
        common: dict[str, Any] = {
            "error_model": self.method.error_model,
            "unknown": self.unknown if self.method.estimates_forces else (),
            "independents": self.independents,
            "inputs": self.inputs or (),
            "start": None if isinstance(self.start, str) else self.start,  # a log tells it once the sensors are known
            "rates": self.rates,
        }
        machine = formulated(machine, self.inputs or ())
        if is_free(machine):
            assert isinstance(machine, Machine)
            sensors = chosen_sensors(mechanism_of(machine).sensors, self.sensors, "observe")
            return free_system(
                machine,
                process_noise,
                sensors=sensors,
                step=self.step,
                parameters=tuple(self.parameters),
                **common,
            )
        assert not isinstance(machine, Machine)
        if isinstance(machine, Tree):
            sensors = chosen_sensors(machine.sensors, self.sensors, "observe")
            chosen: dict[str, Any] = {"parameters": self.parameters, "sensors": sensors, "consider": self.consider}
            chosen |= {"friction_speed": self.friction_speed, "step": self.step}
            return tree_system(machine, process_noise, **chosen, **common)
        if self.parameters:
            raise ModelError(
                Fault(
                    "parameters are estimated with the state on trees only.",
                    "observe",
                    found=", ".join(self.parameters),
                    hint="Describe the machine as a tree with joints; springs and masses of mechanisms are fixed.",
                )
            )
        natural = machine if isinstance(machine, NaturalSystem) else system_of(machine)
        table = readout(natural, chosen_sensors(natural.mechanism.sensors, self.sensors, "observe"))
        if self.consider and natural.parameters is not None and isinstance(self.method, UKF):
            raise ModelError(
                Fault(
                    "the unscented filter does not consider uncertain parameters in natural coordinates.",
                    "observe",
                    found=", ".join(natural.parameters.names),
                    hint="Use 'ekf', observe the machine in formulation tree, or consider=False.",
                )
            )
        return mechanism_system(natural, process_noise, sensors=table, step=self.step, consider=self.consider, **common)

    def seen(self, system: MachineSystem, q: Array) -> System:
        """The machine as the filter takes it: itself, with rows of H for the attitude alone, or its tangent at rest where it starts."""
        if isinstance(self.method, ErrorEKF) and self.method.accelerometer == "attitude":
            if isinstance(system, FreeSystem):
                what = "rows of an accelerometer for the attitude alone are there on trees only."
                hint = "Observe the machine in formulation tree, or leave accelerometer at its default."
                raise ModelError(Fault(what, "ErrorEKF.accelerometer", found="formulation natural", hint=hint))
            kinds = [system.table.sensors[k].kind for k in system.table.owner]
            return replace(system, attitude_rows=np.array([kind == "accelerometer" for kind in kinds]))
        if not isinstance(self.method, LinearKF):
            return system
        alone = replace(system, one_set=True) if isinstance(system, MechanismSystem) else system
        return Linearised(alone, system.belief(q, np.zeros(system.nv)).x)


def formulated(machine: Observable, inputs: Sequence[str] = ()) -> Observable:
    """A machine in the formulation it is described in, able to take these inputs; what is one already stays, and one over the freedoms
    of its base as well."""
    if not isinstance(machine, Machine):
        return machine
    if machine.formulation == "tree":
        return tree_of(machine)
    machine = with_motor_inputs(machine, inputs)
    if is_free(machine):
        return machine
    return (
        mechanism_of(machine)
        if machine.uncertainty is None
        else with_parameter_slopes(system_of(mechanism_of(machine)), machine)
    )


def ready(system: MachineSystem) -> Observable:
    """The machine of a system, prepared as far as it can be: redundant constraints have been reported once."""
    if isinstance(system, FreeSystem):
        return system.model.machine
    return system.model.system if isinstance(system, MechanismSystem) else system.model.tree
