"""A machine as a tree of bodies: data only. What it does is computed by the functions of :mod:`veridyn.mechanics`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import CapabilityError, ModelError, did_you_mean, part_at
from veridyn.mechanics.tree.check import check_tree
from veridyn.mechanics.tree.structure import KNOW_LOOPS, OPEN_ONLY, Rows, TreeStructure, check_loops
from veridyn.model.check import check_motion, check_prescribed
from veridyn.model.elements.element import Element
from veridyn.model.graph import GRAVITY, Body, Loop
from veridyn.model.load import Load, Transmission, check_loads
from veridyn.model.motion import Motion
from veridyn.model.parameter_set import parameter_set, replaced
from veridyn.model.parameters import ParameterSet
from veridyn.model.place import GROUND, Assembly
from veridyn.model.sensor import Sensor, check_sensors
from veridyn.spatial.inertia import INERTIAL

__all__ = ["GRAVITY", "Rows", "Tree"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tree(TreeStructure):
    """A tree of bodies with what acts on it and measures it; made by :meth:`build`, changed by making another.

    Its fields, and what follows from them, are those of :class:`~veridyn.mechanics.tree.structure.TreeStructure`.
    """

    @classmethod
    def build(
        cls,
        bodies: Iterable[Body],
        *,
        name: str = "tree",
        base: Literal["fixed", "free"] = "fixed",
        gravity: ArrayLike = GRAVITY,
        inertia: Mapping[str, ArrayLike] | None = None,
        elements: Iterable[Element] = (),
        transmission: Transmission | None = None,
        loops: Iterable[Loop] = (),
        assembly: Assembly | None = None,
        sensors: Iterable[Sensor] = (),
        loads: Iterable[Load] = (),
        prescribed: Iterable[str] = (),
    ) -> Tree:
        """Check the description whole, put the bodies in order, and make the parameter set.

        `inertia`: body name → ten numbers XX XY XZ YY YZ ZZ MX MY MZ M; a real body that is not named has unknown inertia (NaN).
        """
        given, parts = tuple(bodies), tuple(elements)
        inertias = {k: np.asarray(v, dtype=np.float64) for k, v in (inertia or {}).items()}
        g = np.array(gravity, dtype=np.float64)
        cuts, home = tuple(loops), assembly or Assembly()
        faults = check_tree(given, parts, inertias, base, g)
        faults = faults or check_loops(given, cuts, home, base)
        measured, acting = tuple(sensors), tuple(loads)
        names, kinds = [b.name for b in given], {b.coordinate_name: b.joint for b in given if b.coordinate_name}
        faults = [*faults, *check_sensors(measured, names, kinds), *check_loads(acting, names, [*kinds])]
        if faults:
            raise ModelError(faults, name)
        ordered = _antecedents_first(given)
        parameters = _parameters(ordered, parts, inertias, g)
        tree = cls(
            name=name,
            bodies=ordered,
            base=base,
            gravity=g,
            elements=parts,
            parameters=parameters,
            transmission=transmission,
            loops=cuts,
            assembly=home,
            sensors=measured,
            loads=acting,
        )
        if transmission is not None:
            unknown = [j for j in transmission.joints if j not in tree.coordinates]
            if unknown:
                raise ModelError(
                    f"the transmission drives '{unknown[0]}', which is no coordinate.",
                    where=part_at("transmission"),
                    hint=did_you_mean(unknown[0], tree.coordinates),
                    source=name,
                )
        return tree.with_prescribed(prescribed)

    def with_prescribed(self, names: Iterable[str]) -> Tree:
        """The same machine with these coordinates prescribed, and no others."""
        chosen = (names,) if isinstance(names, str) else tuple(names)
        faults = check_prescribed(chosen, self.coordinates, self.actuated_coordinates)
        if faults:
            raise ModelError(faults, self.name)
        return self if chosen == self.prescribed else replace(self, prescribed=chosen)

    def with_parameters(self, values: ParameterSet | Mapping[str, float] | ArrayLike) -> Tree:
        """The same machine with other parameters; what was known of their uncertainty does not go with it."""
        new = values if isinstance(values, ParameterSet) else self.parameters.replacing(values)
        return replace(self, parameters=new, uncertainty=None)

    def with_elements(self, elements: Iterable[Element]) -> Tree:
        """The same machine with these elements besides its own; values, states and typical sizes of the others stay."""
        parts = (*self.elements, *elements)
        faults = check_tree(self.bodies, parts, {}, self.base, self.gravity)
        if faults:
            raise ModelError(faults, self.name)
        own = self.parameters
        # NaN where unknown; only sizes are taken from it
        inertia = {b.name: np.array([own[b.parameter(symbol)] for symbol in INERTIAL]) for b in self.bodies if b.real}
        made = _parameters(self.bodies, parts, inertia, self.gravity)
        return replace(self, elements=parts, parameters=own.extended(made))

    def without_elements(self, names: Iterable[str]) -> Tree:
        """The same machine without these elements, by the names of their parameters."""
        gone = {names} if isinstance(names, str) else set(names)
        for name in gone - {e.parameter_name for e in self.elements}:
            known = [e.parameter_name for e in self.elements]
            raise ModelError(f"there is no element '{name}'.", where=self.name, hint=did_you_mean(name, known))
        elements = tuple(e for e in self.elements if e.parameter_name not in gone)
        left = None if self.uncertainty is None else self.uncertainty.without(tuple(gone))
        return replace(self, elements=elements, parameters=self.parameters.without(gone), uncertainty=left)

    def with_constants(self, values: Mapping[str, float]) -> Tree:
        """The same machine with other constants of its elements, by name ("fst_q1.speed")."""
        return replace(self, elements=replaced(self.elements, self.constants, values, self.name))

    def check_open(self, what: str) -> None:
        """Refuse closed loops where only open trees are known; `what`: one of :data:`OPEN_ONLY`."""
        if self.loops:
            asked = f"{what.removeprefix('a ').removeprefix('an ')} of a machine with closed loops"
            found = f"{len(self.loops)} closed loop{'s' if len(self.loops) > 1 else ''}"
            raise CapabilityError("tree", asked, OPEN_ONLY[what], KNOW_LOOPS, where=self.name, found=found)

    def check_unprescribed(self, what: str) -> None:
        """Refuse prescribed coordinates where they are not known."""
        if self.prescribed:
            raise ModelError(
                f"{what} does not know prescribed coordinates.",
                where=self.name,
                found=", ".join(self.prescribed),
                hint="Forward dynamics, integrate and identification by inverse dynamics know them; with_prescribed(()) releases them.",
            )

    def check_motion(self, motion: Motion) -> None:
        """Refuse a motion that is not one of this machine."""
        check_motion(self, motion)


def _parameters(
    bodies: Sequence[Body], elements: Sequence[Element], inertia: Mapping[str, Array], gravity: Array
) -> ParameterSet:
    inertias = [(b.label or b.name, inertia.get(b.name)) for b in bodies if b.real]
    kinds = {b.coordinate_name: b.joint for b in bodies}
    return parameter_set(
        inertias, elements, kinds, (float(np.linalg.norm(b.placement.position)) for b in bodies), gravity
    )


def _antecedents_first(bodies: Sequence[Body]) -> tuple[Body, ...]:
    """The order of the file, except where a body is listed before its antecedent."""
    placed: dict[str, Body] = {}
    waiting = list(bodies)
    while waiting:
        for b in waiting:
            if b.antecedent in (None, GROUND) or b.antecedent in placed:
                placed[b.name] = b
                waiting.remove(b)
                break
    return tuple(placed.values())
