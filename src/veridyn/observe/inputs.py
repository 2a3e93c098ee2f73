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

from veridyn.errors import DataWarning, Fault, warn
from veridyn.mechanics.formulated import GivenMachine, formulated
from veridyn.model.load import channels


def inputs_in(machine: GivenMachine, names: Sequence[str], where: str) -> tuple[str, ...]:
    """The channels of a log that act on a machine, in one order; `names` are those of the log that is called `where`.

    Those that the machine has and its formulation cannot take are refused; those named as forces, wrenches or loads of the machine that
    nevertheless act on nothing are reported by a warning.
    """
    form = formulated(machine)
    found, known = form.inputs_in(names), {name for load in form.loads for name in channels(load)}
    _warn_of_unused([n for n in names if n not in found and (n in known or n.startswith(("force.", "wrench.")))], where)
    return found


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
