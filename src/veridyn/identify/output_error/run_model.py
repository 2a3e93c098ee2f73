"""How runs of a log are simulated and compared: what a simulation offers, and which one a machine needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.identify.output_error.log_runs import Runs
from veridyn.identify.output_error.shooting import Shooting
from veridyn.identify.result import ReplaySettings
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion


class RunModel(Protocol):
    """How runs of a log are simulated: :class:`~veridyn.identify.output_error.shooting.Shooting` all runs of an open machine at once,
    :class:`~veridyn.identify.output_error.step_shooting.StepShooting` any machine, run by run."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the m outputs that are compared."""
        ...

    @property
    def units(self) -> tuple[str, ...]:
        """Of the outputs."""
        ...

    @property
    def size(self) -> int:
        """The length of an initial state."""
        ...

    @property
    def substeps(self) -> int:
        """Steps per sample."""
        ...

    @property
    def kinked(self) -> bool:
        """Whether outputs may have kinks as functions of the parameters: where friction just stops a joint, or just does not."""
        ...

    def at(self, constants: Array, /) -> RunModel:
        """The same with other constants of laws."""
        ...

    def refined(self) -> RunModel:
        """The same with half the step."""
        ...

    def initial(self, runs: Runs, /) -> Array:
        """(R, size): the start of each run as measured."""
        ...

    def measured(self, runs: Runs, /) -> Array:
        """(R, K, m) of the outputs."""
        ...

    def residuals(self, runs: Runs, state: Array, values: Array, /) -> Array:
        """(R, K, m): measured less simulated."""
        ...

    def columns(self, runs: Runs, state: Array, values: Array, spread: Array, /) -> tuple[Array, Array]:
        """The residuals, and (R, K, m, p + c + size) of the outputs by parameters, constants and initial state."""
        ...


def run_model(
    machine: Machine,
    motions: Sequence[Motion],
    values: Array,
    how: ReplaySettings,
    *,
    varying: Sequence[int] = (),
    compare: Literal["coordinates", "forces"] = "coordinates",
    constants: Sequence[str] = (),
) -> RunModel:
    """Runs of all motions at once where the machine is open, on a fixed base and free of wrenches; else run by run.

    `values` are all parameters, of which those numbered `varying` change from call to call.
    """
    bodies = sorted({body for motion in motions for body in motion.wrenches})
    check_outputs(machine, how.outputs)
    if machine.base == "fixed" and not machine.closed and not machine.prescribed and not bodies:
        return Shooting(
            machine=machine,
            law=how.law,
            hold=how.hold,
            friction_speed=how.friction_speed,
            substeps=how.substeps,
            constants=tuple(constants),
            chosen=how.outputs,
            compare=compare,
        )
    from veridyn.identify.output_error.step_shooting import step_shooting  # here: it brings a compiler along

    return step_shooting(
        machine,
        outputs=how.outputs,
        varying=varying,
        values=values,
        wrenches=bodies,
        hold=how.hold,
        friction_speed=how.friction_speed,
        substeps=how.substeps,
        constants=constants,
    )


def check_outputs(machine: Machine, outputs: Sequence[str]) -> None:
    """Refuse names that are no coordinate, are prescribed, or are named twice."""
    from veridyn.mechanics.tree.steps.states import BASE_NAMES

    known = [
        *(BASE_NAMES if machine.base == "free" else ()),
        *(c for c in machine.coordinates if c not in machine.prescribed),
    ]
    faults = Faults()
    for name in dict.fromkeys(outputs):
        if name in machine.prescribed:
            faults.add(f"'{name}' is prescribed, so it says nothing.", where="outputs", expected=", ".join(known))
        elif name not in known:
            faults.add(f"there is no coordinate '{name}'.", where="outputs", hint=did_you_mean(name, known))
        if list(outputs).count(name) > 1:
            faults.add(f"'{name}' is named twice.", where="outputs")
    faults.raise_if_any(DataError, machine.name)
