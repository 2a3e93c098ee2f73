"""What a filter is run with: the method, the process noise, where the machine starts, what is unknown of it and what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault, ModelError
from veridyn.mechanics.formulated import GivenMachine, formulated
from veridyn.mechanics.formulation import FRICTION_SPEED, require
from veridyn.model.sensor import Choice, chosen_sensors
from veridyn.observe.bounds import Parameters
from veridyn.observe.ekf import EKF
from veridyn.observe.filter import Filter
from veridyn.observe.linearised import Linearised
from veridyn.observe.machine import MachineSystem
from veridyn.observe.methods import ErrorEKF, LinearKF, filter_of
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.readings import InputHold
from veridyn.observe.setup import machine_system
from veridyn.observe.system import System
from veridyn.observe.ukf import UKF

Array = NDArray[np.float64]


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

    def system(self, machine: GivenMachine, process_noise: ProcessNoise) -> tuple[MachineSystem, Array, Array]:
        """The system that the filter runs on, and the configuration and velocity it starts from."""
        form = formulated(machine).taking(self.inputs or ())
        made = machine_system(
            form,
            process_noise,
            error_model=self.method.error_model,
            unknown=self.unknown if self.method.estimates_forces else (),
            independents=self.independents,
            inputs=self.inputs or (),
            start=None if isinstance(self.start, str) else self.start,  # a log tells it once the sensors are known
            rates=self.rates,
            parameters=self.parameters,
            sensors=chosen_sensors(form.sensors, self.sensors, "observe"),
            consider=self.consider,
            friction_speed=self.friction_speed,
            step=self.step,
        )
        considered = made[0].uncertainty
        if considered is not None and isinstance(self.method, UKF):
            what = "considered parameters in an unscented filter"
            require(form, what, where="observe", found=", ".join(considered.names))
        return made

    def seen(self, system: MachineSystem, q: Array) -> System:
        """The machine as the filter takes it: itself, with rows of H for the attitude alone, or its tangent at rest where it starts."""
        if isinstance(self.method, ErrorEKF) and self.method.accelerometer == "attitude":
            require(system.model.form, "attitude rows", where="ErrorEKF.accelerometer")
            kinds = [system.table.sensors[k].kind for k in system.table.owner]
            return replace(system, attitude_rows=np.array([kind == "accelerometer" for kind in kinds]))
        if not isinstance(self.method, LinearKF):
            return system
        alone = replace(system, model=system.model.keeping())
        return Linearised(alone, system.belief(q, np.zeros(system.nv)).x)
