"""A machine as a tree with cut joints, which the recursion of Newton and Euler takes; a tree as a machine; and verbs that take either.

Each loop of the graph is cut open at one joint. A joint of several coordinates becomes a chain of turning and sliding ones with
bodies without mass between them. Every body keeps its own frame, so that inertial parameters, wrenches, loads and sensors mean the same in
the graph and in the tree: where the joint that carries a body does not sit in the origin of its frame, a body without mass moves in the
joint and the body itself is fixed to it.

The first argument of a verb may be given by position or as `machine`. A log is accepted wherever a motion is meant: it is prepared by
:func:`veridyn.motion` with default settings. Arguments of other kinds are refused by name (:mod:`veridyn.arguments`). The verbs of
this room convert a machine once, and take its tree as well; what they call takes trees only.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, Union, get_args, get_origin, overload

import numpy as np

from veridyn.arguments import ArgumentChecks, classes_in
from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.lazy import above
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.coordinates import PLANAR_BASE, Carrier
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Body, Loop, MachineGraph, placed_load, placed_sensor, unique
from veridyn.model.link import COURSES, Joint, chained, inverted, is_identity
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.place import GROUND, Attachment
from veridyn.spatial.inertia import INERTIAL, broken_law
from veridyn.spatial.rotations import MDH, Placement

NO_TREE = (
    "The machine has no tree, which parameters, regressors, inverse dynamics, identification and excitation need. It can be observed in "
    "natural coordinates, and simulated by a study file."
)
FORM = "tree"  # its name among the forms of a machine
Stage = tuple[Placement, Literal["turning", "sliding", "fixed"], str, float]


def tree_of(machine: Machine | Tree) -> Tree:
    """The tree with cut joints of a machine, made when it is first asked for and kept with the machine; a tree is its own.

    What joint coordinates cannot carry is refused by name.
    """
    if isinstance(machine, Tree):
        return machine
    kept = machine.forms.get(FORM)
    if not isinstance(kept, Tree):
        machine.need_joints("form as a tree")
        kept = machine.forms[FORM] = _made(machine)
    return kept


def bodies_of(machine: Machine) -> tuple[Body, ...]:
    """A machine as a table of bodies, antecedents first: its links, and a body without mass for each further coordinate of a joint.

    What joint coordinates cannot carry is refused by name.
    """
    return tree_of(machine).bodies


def _made(machine: Machine) -> Tree:
    """The tree of a machine, or that of another one with its shape with its values."""
    shape = machine.shapes.get(FORM)
    if isinstance(shape, Tree):
        return replace(shape, elements=machine.elements, parameters=machine.parameters, uncertainty=machine.uncertainty)
    try:
        return spanned_tree(machine)
    except ModelError as error:
        if machine.formulation != "natural":
            raise
        raise ModelError([replace(fault, hint=NO_TREE) for fault in error.faults], error.source) from error


def spanned_tree(machine: Machine) -> Tree:
    """The tree with cut joints of a machine.

    Racks, and coordinates that no joint has, are refused by name: they belong to natural coordinates.
    """
    if machine.without_tree:
        raise ModelError(machine.without_tree, machine.name)
    spanning, base = machine.described.spanning, machine.root
    taken = set(machine.by_name)
    bodies: list[Body] = []
    for link in machine.links:
        made = _bodies(machine, link.name, spanning.carriers[link.name], taken, link.name == base)
        taken |= {b.name for b in made}
        bodies += made
    tree = Tree.build(
        bodies,
        name=machine.name,
        base="free" if base else "fixed",
        gravity=machine.gravity,
        inertia={k.name: k.ten for k in machine.links if k.real and k.inertia is not None and machine.stated is None},
        elements=machine.elements,
        transmission=machine.transmission,
        loops=[_loop(machine, joint) for joint in spanning.cut if joint.kind != "floating"],
        assembly=machine.assembly,
        sensors=[placed_sensor(machine, sensor) for sensor in machine.sensors],
        loads=[placed_load(machine, load) for load in machine.loads],
        prescribed=machine.prescribed,
    )
    tree = tree if machine.stated is None else tree.with_parameters(machine.stated)
    return tree if machine.uncertainty is None else replace(tree, uncertainty=machine.uncertainty)


def _bodies(graph: MachineGraph, name: str, carrier: Carrier, taken: set[str], free: bool) -> list[Body]:
    """The chain of bodies that ends in one body of the machine."""
    link, joint = graph.by_name[name], carrier.joint
    near, far = graph.ends(joint)
    before = GROUND
    if free:
        place = near.placement if is_identity(far.placement) else MDH()
        return [Body(name, None, "fixed", place, real=link.real, label=link.label)]
    steps = list(_steps(graph, joint))
    if carrier.reversed:
        near, far = far, near
        steps = _turned_round(steps)
    before = near.body
    at: MDH | Placement = near.placement
    out: list[Body] = []
    motors = dict(zip(joint.coordinate_names, joint.motors, strict=True))
    for k, (turned, kind, coordinate, ratio) in enumerate(steps[:-1]):
        last = k == len(steps) - 2 and is_identity(steps[-1][0]) and is_identity(far.placement)
        word = name if last else unique(joint.name if len(steps) == 2 else coordinate, taken, "joint")
        place = chained(at, turned)
        real, label = (link.real, link.label) if last else (False, "")
        out.append(
            Body(
                word,
                before,
                kind,
                place,
                actuated=motors[coordinate],
                real=real,
                coordinate="" if Body(word, joint=kind).coordinate_name == coordinate else coordinate,
                ratio=ratio,
                label=label,
            )
        )
        taken.add(word)
        before, at = word, Placement()
        if last:
            return out
    place = chained(chained(at, steps[-1][0]), inverted(far.placement))
    fixed = Body(
        name,
        before,
        "fixed",
        place,
        actuated=bool(joint.actuated) or joint.kind != "fixed",
        real=link.real,
        label=link.label,
    )
    return [*out, fixed]


def _steps(graph: MachineGraph, joint: Joint) -> list[Stage]:
    """Rotation before, motion, coordinate and ratio of each step, and the rotation behind the last one."""
    course, names = joint.course, joint.coordinate_names
    if joint.kind == "floating" and graph.dimension == 2:
        course, names = COURSES[PLANAR_BASE], (*names[:2], names[3])
    stages: list[Stage] = [
        (Placement(step.turned), step.motion, name, joint.ratio) for step, name in zip(course.steps, names, strict=True)
    ]
    return [*stages, (Placement(course.last), "fixed", "", 1.0)]


def _turned_round(steps: list[Stage]) -> list[Stage]:
    """The steps of the inverse motion: from the other end, each backwards."""
    rotations = [inverted(at) for at, *_ in steps][::-1]
    moves = steps[-2::-1]
    turned: list[Stage] = [
        (at, kind, coordinate, -ratio) for at, (_, kind, coordinate, ratio) in zip(rotations, moves, strict=False)
    ]
    return [*turned, (rotations[-1], "fixed", "", 1.0)]


def _loop(graph: MachineGraph, joint: Joint) -> Loop:
    first, second = (
        Attachment(e.body, Placement(e.placement.rotation, e.placement.position)) for e in graph.ends(joint)
    )
    return Loop(joint.name, joint.kind, first, second, joint.length)


def machine_of_tree(tree: Tree) -> Machine:
    """The same machine as a graph: ``tree_of(machine_of_tree(tree))`` has the bodies, coordinates, rows, loops and parameters of `tree`.

    Inertias that no physical body has, as a fit may give them, are kept: the values of the parameters are those of `tree`.
    """
    values = tree.parameters
    own = Tree.build(tree.bodies, base=tree.base, gravity=tree.gravity, elements=tree.elements).parameters
    if (own.names, own.units) != (values.names, values.units):
        raise ModelError(
            "its parameters or their units are not those of its bodies and elements.",
            where=tree.name,
            hint="Make it with Tree.build and change its parameters with with_parameters.",
        )
    tens = {b.name: np.array([values[b.parameter(s)] for s in INERTIAL]) for b in tree.bodies if b.real}
    machine = Machine.of_bodies(
        tree.bodies,
        name=tree.name,
        base=tree.base,
        gravity=tree.gravity,
        inertia={name: ten for name, ten in tens.items() if _usable(ten)},
        elements=tree.elements,
        transmission=tree.transmission,
        loops=tree.loops,
        assembly=tree.assembly,
        sensors=tree.sensors,
        loads=tree.loads,
        prescribed=tree.prescribed,
    ).with_parameters(values)
    return machine if tree.uncertainty is None else machine.with_uncertainty(tree.uncertainty)


def _usable(ten: Array) -> bool:
    """Whether these are numbers of a physical body, some of them perhaps unknown."""
    if np.isnan(ten).all() or np.isinf(ten).any():
        return False
    return bool(np.isnan(ten).any()) or not broken_law(ten)


P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M", bound=Machine | Tree)
Given = tuple[Any, ...]
LOG = {"Experiment"}
NOWHERE = 1 << 30  # the place of an argument that is given by name only


def first_argument(verb: Callable[..., Any]) -> Callable[[Given, dict[str, Any]], tuple[Any, Given, dict[str, Any]]]:
    """For calls of `verb`: what (args, kwargs) give as its first argument, by position or by name, and the rest of them.

    A call without it is refused as Python refuses it, in the words of the verb's own signature.
    """
    own = next(iter(inspect.signature(verb).parameters))
    names = (own, "machine")

    def taken(args: Given, kwargs: dict[str, Any]) -> tuple[Any, Given, dict[str, Any]]:
        if args and not any(name in kwargs for name in names):
            return args[0], args[1:], kwargs
        named = [name for name in names if name in kwargs]
        if args or len(set(named)) != 1:
            problem = "multiple values for argument" if named else "missing 1 required positional argument:"
            raise TypeError(f"{verb.__name__}() {'got' if named else 'is'} {problem} '{own}'")
        rest = {name: value for name, value in kwargs.items() if name != named[0]}
        return kwargs[named[0]], (), rest

    return taken


class MachineChecks(ArgumentChecks):
    """What a verb takes whose first argument is a machine: logs for motions as well."""

    def __init__(self, verb: Callable[..., Any]) -> None:
        super().__init__(verb)
        self.split = first_argument(verb)

    def annotations(self) -> dict[str, Any]:
        found = super().annotations()
        return {name: hint if "Experiment" in classes_in(hint) else _with_logs(hint) for name, hint in found.items()}

    @functools.cached_property
    def motions(self) -> dict[str, int]:
        """Arguments that are motions, for which the verb itself takes no log, with their places behind the first argument."""
        own = super().annotations()
        found = [name for name, hint in self.hints.items() if classes_in(hint) - classes_in(own[name]) == LOG]
        return {name: self.names.index(name) - 1 if name in self.names else NOWHERE for name in found}

    def taken(self, args: Given, kwargs: dict[str, Any]) -> tuple[Any, Given, dict[str, Any]]:
        """The machine, and the other arguments with motions made of logs."""
        machine, rest, named = self.split(args, kwargs)
        self.check((machine, *rest), named)
        for name, place in self.motions.items():
            if place < len(rest) and not isinstance(rest[place], Motion):
                rest = (*rest[:place], with_motions(machine, rest[place]), *rest[place + 1 :])
            if name in named:
                named = named | {name: with_motions(machine, named[name])}
        return machine, rest, named


def _with_logs(hint: Any) -> Any:
    """An annotation with Experiment beside every Motion that stands in it alone, in a sequence or under a name."""
    if hint is Motion:
        return Motion | Experiment
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_with_logs(part) for part in args)]  # noqa: UP007
    if isinstance(origin, type) and issubclass(origin, Sequence | Mapping):
        kind: Any = origin
        return kind[tuple(_with_logs(part) for part in args)]
    return hint


def with_motions(machine: Tree | Machine, given: Any) -> Any:
    """`given` with every log in it, alone, in a list or under a name, made a motion by :func:`veridyn.motion` with default settings."""
    if isinstance(given, Motion):
        return given
    if isinstance(given, Experiment):
        return above("veridyn.identify.logged", "motion")(machine, given)
    if isinstance(given, list | tuple) and any(isinstance(part, Experiment) for part in given):
        return [with_motions(machine, part) for part in given]
    if isinstance(given, Mapping):
        return {name: with_motions(machine, part) for name, part in given.items()}
    return given


def takes_machine(verb: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """`verb`, whose first argument is a machine, with logs accepted for motions, and every argument checked by its annotation."""
    door = MachineChecks(verb)

    @functools.wraps(verb)
    def taken(*args: Any, **kwargs: Any) -> R:
        machine, rest, named = door.taken(args, kwargs)
        return verb(machine, *rest, **named)

    taken.door = door  # pyright: ignore[reportAttributeAccessIssue]
    return taken


class Change(Protocol[P]):
    """A change of a machine, and in the same way of its tree."""

    @overload
    def __call__(self, machine: Machine, /, *args: P.args, **kwargs: P.kwargs) -> Machine: ...
    @overload
    def __call__(self, machine: Tree, /, *args: P.args, **kwargs: P.kwargs) -> Tree: ...


def changes_machine(verb: Callable[Concatenate[Machine | Tree, P], Tree]) -> Change[P]:
    """`verb`, which makes another tree, makes a machine of a machine."""

    @functools.wraps(verb)
    def changed(machine: Machine | Tree, /, *args: P.args, **kwargs: P.kwargs) -> Machine | Tree:
        made = verb(machine, *args, **kwargs)
        if not isinstance(machine, Machine):
            return made
        changed = machine_of_tree(made)
        return changed.with_controllers(c for c in machine.controllers if c.on in changed.actuated_coordinates)

    return takes_machine(changed)  # pyright: ignore[reportReturnType]
