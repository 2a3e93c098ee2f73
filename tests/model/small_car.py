"""A body on two steered wheels, as a tree."""

from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import drag, drive_gain, spring
from veridyn.model.graph import Body


def car() -> Tree:
    """A body on two steered wheels that share one angle, and a passive one; listed out of order."""
    return Tree.build(
        [
            Body("left", "steer_left", actuated=False, coordinate="roll"),
            Body("chassis", None, "fixed"),
            Body("steer_left", "chassis", coordinate="steer", real=False),
            Body("steer_right", "chassis", coordinate="steer", ratio=0.9, real=False),
            Body("right", "steer_right", "sliding", actuated=False),
        ],
        name="car",
        base="free",
        elements=[spring("steer"), drag("chassis.fx"), drive_gain("steer", "i")],
    )
