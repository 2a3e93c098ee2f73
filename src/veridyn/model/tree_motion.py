"""Whether a motion is one of a tree: its coordinates, base, wrenches, signals and states of elements."""

from __future__ import annotations

from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.model.element_kinds import KINDS
from veridyn.model.motion import Motion
from veridyn.model.tree_structure import TreeStructure


def check_motion(tree: TreeStructure, motion: Motion) -> None:
    """Refuse a motion that is not one of this machine: every fault at once."""
    faults = Faults()
    if motion.n != tree.n:
        faults.add(
            "the motion has another number of coordinates.",
            where=tree.name,
            expected=f"{tree.n} ({', '.join(tree.coordinates)})",
            found=f"{motion.n}",
        )
    if tree.base == "free" and motion.base is None:
        faults.add(
            "the base is free, and the motion does not say how it moves.", where=tree.name, expected="motion.base"
        )
    if tree.base == "fixed" and motion.base is not None:
        faults.add(
            "the base is fixed, but the motion moves it.", where=tree.name, hint="Build the tree with base='free'."
        )
    for body in motion.wrenches:
        if body not in [b.name for b in tree.bodies]:
            faults.add(
                f"a wrench acts on '{body}', which is no body.",
                where=tree.name,
                hint=did_you_mean(body, [b.name for b in tree.bodies]),
            )
    needed = {e.signal: e.parameter_name for e in tree.elements if KINDS[e.kind].signal}
    for signal, element in needed.items():
        if signal not in motion.signals:
            faults.add(f"element '{element}' needs the signal '{signal}', which the motion has not.", where=tree.name)
    for state in tree.states:
        if state.name not in motion.signals:
            faults.add(
                f"the force of element '{state.element}' follows a state of its own, '{state.name}', which the motion has not.",
                where=tree.name,
                hint="Log the force it exerts, give it as a force or wrench, and leave the element out (without_elements); or let "
                "element_states compute the state from the motion; or simulate, which carries it.",
            )
    if tree.base == "free" and motion.base is not None and tree.wheels:
        for part in ("velocity", "position", "quaternion"):
            if getattr(motion.base, part) is None:
                faults.add(
                    f"tyre '{tree.wheels[0].parameter_name}' needs the {part} of the base.",
                    where=tree.name,
                    expected=f"motion.base.{part}",
                    hint="Or leave the tyres out (without_elements) and give the wrenches on the wheels.",
                )
    elif tree.base == "free" and motion.base is not None and motion.base.velocity is None:
        drags = [e.parameter_name for e in tree.elements if e.kind == "drag"]
        if drags:
            faults.add(
                f"drag '{drags[0]}' needs the velocity of the base.",
                where=tree.name,
                expected="motion.base.velocity",
            )
    faults.raise_if_any(DataError)
