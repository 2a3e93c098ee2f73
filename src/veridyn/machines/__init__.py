"""The machines veridyn knows by name, one model file each, which is read once in a process: a machine never changes.

With closed loops: a four-bar linkage, a delta robot and an arm with a parallelogram. In natural coordinates: a closed mechanism in space
with three degrees of freedom, and a crane.
"""

from __future__ import annotations

from functools import cache

from veridyn.files.access import PREFIX, shipped
from veridyn.files.machine.load import parse_machine
from veridyn.model.machine import Machine


@cache
def described(file: str) -> Machine:
    """The machine of a model file that comes with veridyn, such as "arm.yaml"."""
    return parse_machine(shipped(PREFIX + file).read_text(encoding="utf-8"), source=file)


def linkage() -> Machine:
    """A planar four-bar linkage, driven at the crank: one degree of freedom."""
    return described("linkage.yaml")


def delta() -> Machine:
    """A delta robot with its twelve rods' joints: three degrees of freedom of 21 coordinates."""
    return described("delta.yaml")


def palletizer() -> Machine:
    """An arm whose forearm is driven from the shoulder through a parallelogram: three degrees of freedom."""
    return described("palletizer.yaml")


def spatial() -> Machine:
    """Two arms that hold a rod between them, as its file describes it: independent coordinates `shoulder`, `elbow` and `base_b`."""
    return described("spatial.yaml")


def crane() -> Machine:
    """A trolley and a swinging load: independent coordinates `x` and `swing`."""
    return described("crane.yaml")
