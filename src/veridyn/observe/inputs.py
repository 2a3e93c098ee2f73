"""What acts on a machine and is in its log: the same channels, by the same names, in every formulation.

    force.C             the force of the motor on the coordinate C
    NAME, NAME.x …      loads, by components where they have several
    q.C, qd.C, qdd.C    motions of prescribed coordinates
    signal.S            measured signals that laws of elements read
    wrench.B.fx … mz    wrenches on bodies, all six components

What one formulation does not take is refused by name, and what acts on nothing is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from veridyn.errors import DataWarning, Fault, Faults, ModelError, did_you_mean, warn
from veridyn.mechanics.natural.mechanism import Mechanism
from veridyn.mechanics.natural.system import NaturalSystem
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements import WRENCH_ROWS
from veridyn.model.load import Drive, Torque, channels
from veridyn.model.machine import Machine

FORCE, WRENCH = "force.", "wrench."


def inputs_in(machine: Machine | Tree | Mechanism | NaturalSystem, names: Sequence[str], where: str) -> tuple[str, ...]:
    """The channels of a log that act on a machine, in one order; `names` are those of the log that is called `where`.

    Those that the machine has and its formulation cannot take are refused; those named as forces, wrenches or loads of the machine that
    nevertheless act on nothing are reported by a warning.
    """
    if isinstance(machine, Machine):
        found = _on_tree(tree_of(machine), names) if machine.formulation == "tree" else _on_points(machine, names)
        known = {name for load in machine.loads for name in channels(load)}
    elif isinstance(machine, Tree):
        found, known = _on_tree(machine, names), set[str]()
    else:
        mechanism = machine.mechanism if isinstance(machine, NaturalSystem) else machine
        read = {channel for sensor in mechanism.sensors for channel in sensor.channels(mechanism.dimension)}
        loads = (name for load in mechanism.loads for name in channels(load))
        found, known = tuple(name for name in loads if name in names and name not in read), set[str]()
    _warn_of_unused([n for n in names if n not in found and (n in known or n.startswith((FORCE, WRENCH)))], where)
    return found


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
    known, faults = motor_names(machine), Faults()
    carried = None if machine.description is None else {a.name for a in machine.description.added}
    for name in wanted:
        if name not in known:
            faults.add(f"there is no input '{name}'.", where=machine.name, hint=did_you_mean(name, known))
        elif carried is not None and name.removeprefix(FORCE) not in carried:
            faults.add(
                f"natural coordinates cannot take the input '{name}': its points have no such coordinate.",
                where=machine.name,
                expected="an added angle or distance of that name",
                hint="Add it to the coordinates of the model, or observe the machine in formulation tree.",
            )
    faults.raise_if_any(ModelError)
    return replace(machine, loads=(*machine.loads, *(Drive(n, n.removeprefix(FORCE)) for n in wanted)))


def _on_tree(tree: Tree, names: Sequence[str]) -> tuple[str, ...]:
    """The channels that act on a tree: forces of actuated coordinates, motions of prescribed ones, signals, wrenches, loads."""
    found = [f"{FORCE}{c}" for c in tree.actuated_coordinates if c not in tree.prescribed]
    own = {state.name for state in tree.states}
    found += [f"signal.{name}" for name in tree.signals if name not in own]
    found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in tree.prescribed]
    found += [name for load in tree.loads for name in channels(load)]
    for body in tree.bodies:
        six = [f"{WRENCH}{body.name}.{row}" for row in WRENCH_ROWS]
        found += six if all(name in names for name in six) else []
    return tuple(name for name in dict.fromkeys(found) if name in names)


def _on_points(machine: Machine, names: Sequence[str]) -> tuple[str, ...]:
    """Those that act on a machine in natural coordinates, which have no wrenches and no signals."""
    wrenches = [f"{WRENCH}{link.name}.{row}" for link in machine.links for row in WRENCH_ROWS]
    refused = [name for name in wrenches if name in names]
    if refused:
        raise ModelError(
            Fault(
                "natural coordinates take no wrench in a body's frame, and the log has one.",
                where=machine.name,
                found=", ".join(refused),
                hint="Observe with_formulation('tree'), or list the inputs that are used: inputs=….",
            )
        )
    found = [*motor_names(machine)]
    found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in machine.prescribed]
    found += [name for load in machine.loads for name in channels(load)]
    if machine.dimension == 2:  # as a tree calls them
        found += [f"{load.name}.z" for load in machine.loads if isinstance(load, Torque) and load.name not in names]
    return tuple(name for name in dict.fromkeys(found) if name in names)


def _warn_of_unused(names: Sequence[str], where: str) -> None:
    if names:
        warn(
            DataWarning,
            Fault(
                "these channels of the log act on nothing of the machine, and are not used.",
                where=where,
                expected="force.C of a coordinate with a motor, all six components of a wrench on a body, loads by their names",
                found=", ".join(names),
                hint="Rename them, give the machine a motor or load there, or list the inputs that are used: inputs=….",
            ),
        )
