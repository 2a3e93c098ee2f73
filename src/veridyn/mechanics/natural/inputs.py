"""What acts on a machine in natural coordinates and is in its log: the same channels, by the same names, as on its tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from veridyn.errors import CapabilityError, Fault, ModelError, did_you_mean
from veridyn.mechanics.formulation import WRENCH
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.load import Drive, Torque, channels
from veridyn.model.machine import Machine

FORCE = "force."


def motor_names(machine: Machine) -> tuple[str, ...]:
    """force.C of every coordinate with a motor that is not prescribed, from the description alone."""
    motors = (c for j in machine.joints for c, on in zip(j.coordinate_names, j.motors, strict=True) if on)
    return tuple(f"{FORCE}{c}" for c in dict.fromkeys(motors) if c not in machine.prescribed)


def with_motor_inputs(machine: Machine, inputs: Sequence[str]) -> Machine:
    """The machine with a drive named force.C for each such input, so that natural coordinates take it as a tree does: it adds to what
    else acts on the coordinate C."""
    own = {load.name for load in machine.loads}
    wanted = [name for name in dict.fromkeys(inputs) if name.startswith(FORCE) and name not in own]
    if not wanted:
        return machine
    known = motor_names(machine)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known)
        raise ModelError([Fault(f"there is no input '{name}'.", where=machine.name, hint=hint) for name in unknown])
    carried = None if machine.description is None else {a.name for a in machine.description.added}
    for name in wanted:
        if carried is not None and name.removeprefix(FORCE) not in carried:
            raise CapabilityError(
                "natural",
                f"input '{name}'",
                "a force acts on an added angle or distance, and its points have none of that name",
                "Add it to the coordinates of the model, or observe the machine in formulation tree.",
                where=machine.name,
            )
    return replace(machine, loads=(*machine.loads, *(Drive(n, n.removeprefix(FORCE)) for n in wanted)))


def inputs_on_points(machine: Machine, names: Sequence[str]) -> tuple[str, ...]:
    """Those of the channels of a log that act on a machine in natural coordinates."""
    found = [*motor_names(machine), *(f"signal.{e.signal}" for e in machine.elements if e.kind == "drive_gain")]
    found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in machine.prescribed]
    found += [name for load in machine.loads for name in channels(load)]
    for link in machine.links:
        six = [f"{WRENCH}{link.name}.{row}" for row in WRENCH_ROWS]
        found += six if all(name in names for name in six) else []
    if machine.dimension == 2:  # as a tree calls them
        found += [f"{load.name}.z" for load in machine.loads if isinstance(load, Torque) and load.name not in names]
    return tuple(name for name in dict.fromkeys(found) if name in names)
