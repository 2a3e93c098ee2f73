"""What can be done with a machine in its formulation: verbs, estimators and filters, and the reason where one of them cannot.

    row = vd.capabilities(machine);  print(row.summary());  row["identify", "wls"].works

The table for all formulations is `docs/capabilities.md`, printed by ``veridyn capabilities``; tests run every cell on a machine
of its kind: it works, or raises the :class:`~veridyn.errors.CapabilityError` that the cell lists.

:func:`warm` compiles ahead, once into the cache on disk, what identifying, predicting and simulating a machine need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import get_args

import numpy as np

from veridyn.arguments import checked
from veridyn.errors import Limit, ModelError
from veridyn.identify.car_fit import NO_FORCES
from veridyn.identify.estimate import ESTIMATORS, NO_CAR
from veridyn.identify.estimators.innovations import NO_REGRESSOR, Innovations
from veridyn.identify.estimators.likelihood import Likelihood
from veridyn.identify.excitation.plant import HELD_BASE
from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import ONLY_CARS
from veridyn.mechanics.formulated import formulated
from veridyn.mechanics.formulation import Ability
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.loops.closure import closed_home, closed_motion
from veridyn.mechanics.tree.of_machine import bodies_of
from veridyn.mechanics.tree.structure import KNOW_LOOPS, OPEN_ONLY
from veridyn.model.graph import FORMULATIONS, NO_JOINTS
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.observe.car.observation import METHODS as CAR_FILTERS
from veridyn.observe.car.observation import NO_ERROR_MODEL
from veridyn.observe.filters.methods import FILTERS, Smoother
from veridyn.progress import Progress, silent
from veridyn.spatial.rotations import MDH

COMPARED = ("forces", "simulation", "prediction")
DYNAMICS = (
    "motion",
    "inverse_dynamics",
    "forward_dynamics",
    "regressor",
    "base_parameters",
    "design_excitation",
    "c_source",
)
METHODS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(DYNAMICS, ("",)),
        "simulate": ("",),
        "identify": (*ESTIMATORS, Innovations.name),
        "validate": COMPARED,
        "observe": tuple(FILTERS),
        "Observer": tuple(word for word, kind in FILTERS.items() if kind is not Smoother),
        "observe, parameters estimated": ("ekf",),
    }
)
BY_TREE = "by its tree"
PARTS: tuple[Ability, ...] = tuple(a for a in get_args(Ability) if a not in ("simulate", "observe", "regressor"))
PARTS_HEAD = """
## What a machine may have where it is simulated and observed

What is asked of a formulation beside the verbs: parts of a machine, inputs, and what a filter does with parameters. The columns are a
tree, a machine in natural coordinates, and one in natural coordinates that has tyres or prescribed coordinates. In a filter dry friction
is always rounded off (`friction_speed`); `signals` are those that a gain multiplies; a law of a body's motion is drag.
"""
HEAD = """\
# What each formulation can do

A machine is described once. Its formulation says in which coordinates it is computed: joint coordinates of a tree (cut open where it has
loops), natural coordinates of points and vectors, or those of a car of a few numbers. This table is printed by `veridyn capabilities`;
`veridyn capabilities MODEL` and `vd.capabilities(machine)` give the row of one machine. Every cell is run by a test: it works, or raises
the `CapabilityError` whose reason stands below: one that begins with “not built” is of this version, every other one of physics or
mathematics. Studies of kind simulate, identify and observe can do what the verbs of these names can.

Coordinates, sensors, inputs and states have the same names in every formulation, with one exception. In natural coordinates a machine
without tyres and prescribed coordinates is observed over coordinates of its points where these do not have its joint coordinates: those
of a free base, and angles and distances that a description by points does not add. Its states have the names of points and vectors then
(`A.x`), because the sets of coordinates that take over from each other as a body turns are made of them; `with_formulation('tree')` has
the states `base.x` to `base.yaw` and the joint coordinates.
"""
WARMING_SAMPLES = 64  # one block: what counts is that the code is made


@dataclass(frozen=True)
class Capability:
    """One cell of the table: `how` is "" or says in which way; `limit` is None where it works."""

    verb: str
    method: str
    how: str = ""
    limit: Limit | None = None

    @property
    def works(self) -> bool:
        return self.limit is None

    @property
    def text(self) -> str:
        """The cell in words."""
        return (self.how or "yes") if self.limit is None else f"no: {self.limit.reason}"


@dataclass(frozen=True)
class CapabilityRow(Mapping[tuple[str, str], Capability]):
    """What can be done with one machine: (verb, method) → :class:`Capability`."""

    name: str
    formulation: str
    cells: Mapping[tuple[str, str], Capability]

    def __getitem__(self, key: tuple[str, str]) -> Capability:
        return self.cells[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def summary(self) -> str:
        """A line for each verb and method, with the reason and what to use where it cannot be done."""
        lines = [f"{self.name}, formulation {self.formulation}"]
        for (verb, method), cell in self.cells.items():
            instead = "" if cell.limit is None else f". {cell.limit.instead}"
            lines.append(f"  {f'{verb} {method}'.strip():<36}{cell.text}{instead}")
        return "\n".join(lines)


@checked
def capabilities(machine: Machine) -> CapabilityRow:
    """What can be done with a machine in its formulation, without doing it.

    Parameters
    ----------
    machine : Machine

    Returns
    -------
    CapabilityRow
        (verb, method) → a cell that says whether it works, and why not and what to use instead.

    Examples
    --------
    >>> import veridyn as vd
    >>> row = vd.capabilities(vd.load_model("veridyn:linkage.yaml"))
    >>> row["identify", "wls"].works, row["c_source", ""].text
    (True, 'no: not built: it is made of the recursion over an open tree, and loops are closed by iterations')
    """
    cells = [_cell(machine, verb, method) for verb, methods in METHODS.items() for method in methods]
    return CapabilityRow(machine.name, machine.formulation, {(c.verb, c.method): c for c in cells})


def _cell(machine: Machine, verb: str, method: str) -> Capability:
    if machine.formulation == "single_track":
        return Capability(verb, method, limit=_of_car(verb, method))
    if method == Innovations.name:
        return Capability(verb, method, limit=NO_CAR)
    if verb == "validate" and method == "prediction":
        return Capability(verb, method, limit=ONLY_CARS)
    if verb in ("simulate", "observe", "Observer"):
        return Capability(verb, method)
    if verb == "observe, parameters estimated":
        return Capability(verb, method, limit=formulated(machine).capabilities["estimated parameters"])
    limit = _of_tree(machine, verb, method)
    return Capability(verb, method, BY_TREE if machine.formulation == "natural" and limit is None else "", limit)


def _of_tree(machine: Machine, verb: str, method: str) -> Limit | None:
    """Why the tree of a machine has not what a verb needs, where there is a tree at all."""
    try:
        bodies_of(machine)
    except ModelError as error:
        return Limit(error.faults[0].what.rstrip("."), error.faults[0].hint)
    if verb == "c_source" and machine.closed:
        return Limit(OPEN_ONLY["C code"], KNOW_LOOPS)
    if machine.base == "free" and (verb == "design_excitation" or method == Likelihood.name):
        return HELD_BASE
    return None


def _of_car(verb: str, method: str) -> Limit | None:
    """Why a car of a few numbers has not what a verb needs."""
    if verb == "identify":
        return None if method == Innovations.name else NO_REGRESSOR
    if verb in DYNAMICS:
        return NO_JOINTS
    if verb == "validate":
        return None if method == "prediction" else NO_FORCES
    return None if verb == "simulate" or FILTERS[method] in CAR_FILTERS else NO_ERROR_MODEL


def table(rows: Mapping[str, CapabilityRow]) -> str:
    """Rows by the headings of their columns, as one Markdown table, a second one of what machines may have, and the reasons below each."""
    reasons: dict[Limit, int] = {}
    lines = [f"| verb | method | {' | '.join(rows)} |", "|---|---|" + "---|" * len(rows)]
    for verb, methods in METHODS.items():
        for method in methods:
            shown = []
            for row in rows.values():
                cell = row[verb, method]
                if cell.limit is None:
                    shown.append(cell.how or "yes")
                else:
                    shown.append(f"no ({reasons.setdefault(cell.limit, len(reasons) + 1)})")
            lines.append(f"| `{verb}` | {f'`{method}`' if method else ''} | {' | '.join(shown)} |")
    return "\n".join([HEAD, *lines, "", *_notes(reasons), *_parts()])


def _parts() -> list[str]:
    """The lines of the second table."""
    machines, reasons = part_machines(), dict[Limit, int]()
    lines = [PARTS_HEAD, f"| a machine with | {' | '.join(machines)} |", "|---|" + "---|" * len(machines)]
    for part in PARTS:
        limits = [formulated(machine).capabilities[part] for machine in machines.values()]
        shown = ["yes" if x is None else f"no ({reasons.setdefault(x, len(reasons) + 1)})" for x in limits]
        lines.append(f"| {part} | {' | '.join(shown)} |")
    return [*lines, "", *_notes(reasons)]


def _notes(reasons: Mapping[Limit, int]) -> list[str]:
    return [
        f"{number}. {limit.reason[0].upper()}{limit.reason[1:]}. {limit.instead}" for limit, number in reasons.items()
    ]


def shown_machines() -> dict[str, Machine]:
    """A machine of each kind, by the heading of its column; formulations in the order of :data:`~veridyn.model.graph.FORMULATIONS`."""
    from veridyn.files.machine.load import load_model
    from veridyn.model.graph import Body
    from veridyn.model.single_track import car_machine

    box = [0.2, 0.0, 0.0, 0.2, 0.0, 0.1, 0.3, 0.0, 0.0, 2.0]
    bodies = [Body("hull", None, "fixed"), Body("arm", "hull")]
    found = {
        "tree": load_model("veridyn:arm.yaml"),
        "tree, loops": load_model("veridyn:linkage.yaml"),
        "tree, free base": Machine.of_bodies(bodies, name="free", base="free", inertia={"hull": box, "arm": box}),
        "natural": load_model("veridyn:crane.yaml").with_formulation("natural"),
        "single_track": car_machine("car", {"mass": 1500.0, "front": 1.2, "rear": 1.4}),
    }
    assert {machine.formulation for machine in found.values()} == set(FORMULATIONS)
    return found


def part_machines() -> dict[str, Machine]:
    """A machine of each kind that differs in what it may have, by the heading of its column."""
    from veridyn.model.graph import Body

    ten = [0.2, 0.0, 0.0, 0.2, 0.0, 0.1, 0.3, 0.0, 0.0, 2.0]
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.4))]
    small = Machine.of_bodies(bodies, name="small", inertia={"1": ten, "2": ten})
    return {
        "tree": small,
        "natural": small.with_formulation("natural"),
        "natural, tyres or prescribed": replace(small, prescribed=("q2",)).with_formulation("natural"),
    }


def warm(machine: Machine, progress: Progress = silent) -> None:
    """Compile the equations of a machine: its rows for identification, the regressor, inverse dynamics and, of open ones, forward dynamics.

    Values of parameters do not enter the code. Elements do: a study that adds some to its model has code of its own.
    """
    values = np.where(np.isfinite(machine.parameters.values), machine.parameters.values, machine.parameters.typical)
    known = machine.with_parameters(values)
    m = some_motion(machine)
    steps = [
        ("equations of the rows", lambda: observation(machine, m, settings=IdentifySettings(engine="compiled"))),
        ("regressor", lambda: regressor(machine, m, engine="compiled")),
        ("inverse dynamics", lambda: inverse_dynamics(known, m, engine="compiled")),
    ]
    if not machine.closed and machine.base == "fixed":
        steps.append(("forward dynamics", lambda: forward_dynamics(known, m, engine="compiled")))
    for k, (name, make) in enumerate(steps):
        progress(f"compiling: {name}", float(k), float(len(steps)))
        make()
    progress("compiling", float(len(steps)), float(len(steps)))


def some_motion(machine: Machine) -> Motion:
    """A few samples that a machine can take: near where it is assembled, where it has loops, and anywhere otherwise."""
    t, rng = 0.01 * np.arange(float(WARMING_SAMPLES)), np.random.default_rng(0)
    wave = 1e-3 * np.sin(3.0 * t)[:, None]
    if machine.closed:
        own = list(machine.independent)
        x = closed_home(machine)[own] + wave
        rates = 3e-3 * np.cos(3.0 * t)[:, None] + 0.0 * x, -9.0 * wave + 0.0 * x
        m = closed_motion(machine, t, x, *rates, at=[machine.coordinates[k] for k in own])
        return Motion(t, m.q, m.qd, m.qdd, forces=_some_forces(machine, rng), signals=_some_signals(machine))
    q, qd, qdd = rng.normal(size=(3, WARMING_SAMPLES, machine.n))
    base = None if machine.base == "fixed" else BaseMotion(*rng.normal(size=(4, WARMING_SAMPLES, 3)))
    return Motion(t, q, qd, qdd, base, forces=_some_forces(machine, rng), signals=_some_signals(machine))


def _some_forces(machine: Machine, rng: np.random.Generator) -> np.ndarray:
    return np.where(machine.actuated, rng.normal(size=(WARMING_SAMPLES, machine.n)), 0.0)


def _some_signals(machine: Machine) -> dict[str, np.ndarray]:
    return {signal: np.ones(WARMING_SAMPLES) for e in machine.elements for signal in e.signals}
