"""Whether a motion is one of a machine: its coordinates, base, wrenches, signals and states of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.model.elements.element import Element
from veridyn.model.elements.own_law import LawInputs
from veridyn.model.load import Load, Transmission
from veridyn.model.motion import Motion
from veridyn.model.parameter_set import ElementState
from veridyn.model.parameters import ParameterSet
from veridyn.model.sensor import Sensor
from veridyn.spatial.algebra import ARRAYS


class MachineParts(Protocol):
    """A machine, or the form of it that a formulation computes with.

    `root`: the body of a free base, or ""; `closed`: whether joints form loops.
    Everything else is that of :class:`~veridyn.model.machine.Machine`.
    """

    @property
    def name(self) -> str: ...
    @property
    def coordinates(self) -> tuple[str, ...]: ...
    @property
    def coordinate_kinds(self) -> tuple[str, ...]: ...
    @property
    def actuated(self) -> tuple[bool, ...]: ...
    @property
    def n(self) -> int: ...
    @property
    def base(self) -> Literal["fixed", "free"]: ...
    @property
    def root(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    @property
    def body_names(self) -> tuple[str, ...]: ...
    @property
    def gravity(self) -> NDArray[np.float64]: ...
    @property
    def elements(self) -> Sequence[Element]: ...
    @property
    def loads(self) -> Sequence[Load]: ...
    @property
    def sensors(self) -> Sequence[Sensor]: ...
    @property
    def transmission(self) -> Transmission | None: ...
    @property
    def states(self) -> Sequence[ElementState]: ...
    @property
    def parameters(self) -> ParameterSet: ...


def check_motion(machine: MachineParts, motion: Motion) -> None:
    """Refuse a motion that is not one of this machine: every fault at once."""
    faults = Faults()
    if motion.n != machine.n:
        faults.add(
            "the motion has another number of coordinates.",
            where=machine.name,
            expected=f"{machine.n} ({', '.join(machine.coordinates)})",
            found=f"{motion.n}",
        )
    if machine.base == "free" and motion.base is None:
        faults.add(
            "the base is free, and the motion does not say how it moves.", where=machine.name, expected="motion.base"
        )
    if machine.base == "fixed" and motion.base is not None:
        faults.add(
            "the base is fixed, but the motion moves it.",
            where=machine.name,
            hint="Build the machine with base='free'.",
        )
    for body in motion.wrenches:
        if body not in machine.body_names:
            faults.add(
                f"a wrench acts on '{body}', which is no body.",
                where=machine.name,
                hint=did_you_mean(body, machine.body_names),
            )
    needed = {name: e.parameter_name for e in machine.elements for name in e.signals}
    for signal, element in needed.items():
        if signal not in motion.signals:
            faults.add(
                f"element '{element}' needs the signal '{signal}', which the motion has not.", where=machine.name
            )
    for state in machine.states:
        if state.name not in motion.signals:
            faults.add(
                f"the force of element '{state.element}' follows a state of its own, '{state.name}', which the motion has not.",
                where=machine.name,
                hint="Log the force it exerts, give it as a force or wrench, and leave the element out (without_elements); or let "
                "element_states compute the state from the motion; or simulate, which carries it.",
            )
    wheels = [e for e in machine.elements if e.wheel is not None]
    if machine.base == "free" and motion.base is not None and wheels:
        for part in ("velocity", "position", "quaternion"):
            if getattr(motion.base, part) is None:
                faults.add(
                    f"tyre '{wheels[0].parameter_name}' needs the {part} of the base.",
                    where=machine.name,
                    expected=f"motion.base.{part}",
                    hint="Or leave the tyres out (without_elements) and give the wrenches on the wheels.",
                )
    elif machine.base == "free" and motion.base is not None and motion.base.velocity is None:
        drags = [e.parameter_name for e in machine.elements if e.kind == "drag"]
        if drags:
            faults.add(
                f"drag '{drags[0]}' needs the velocity of the base.",
                where=machine.name,
                expected="motion.base.velocity",
            )
    faults.raise_if_any(DataError)
    _check_own_laws(machine, motion, faults)
    faults.raise_if_any(DataError)


def _check_own_laws(machine: MachineParts, motion: Motion, faults: Faults) -> None:
    """Laws of one's own that have no value somewhere on the motion: a logarithm of what is negative, a division by zero."""
    number = {name: k for k, name in enumerate(machine.coordinates)}
    for e in machine.elements:
        law = e.own_law
        if law is None or e.between is not None or law.everywhere:
            continue
        on = np.array([e.on.get(c, 0.0) for c in machine.coordinates])
        x = LawInputs(
            position=lambda on=on: motion.q @ on,
            rate=lambda on=on: motion.qd @ on,
            coordinate=lambda name: motion.q[:, number[name]],
            speed=lambda name: motion.qd[:, number[name]],
            signal=lambda name: motion.signals[name],
            algebra=ARRAYS,
        )
        with np.errstate(all="ignore"):
            bad = ~np.isfinite(np.broadcast_to(law.value(x), (len(motion),)))
        if bad.any():
            k = int(np.argmax(bad))
            faults.add(
                f"'{law.text}' is not a number on this motion.",
                where=f"{machine.name}, element '{e.parameter_name}'",
                found=f"{int(bad.sum())} of {len(motion)} samples, the first at {motion.t[k]:.6g} s",
                hint="Keep roots, logarithms and divisions away from where they have no value: sqrt(abs(x)), 1/max(x, 0.01).",
            )
