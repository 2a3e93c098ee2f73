"""From a tree, its sensors and what is not known of it to the system a filter runs on: everything checked, faults by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, Faults, ModelError, did_you_mean
from veridyn.mechanics.tree.model import FRICTION_SPEED, TreeModel, tree_model
from veridyn.mechanics.tree.tree import Tree
from veridyn.mechanics.tree_readout import tree_readout
from veridyn.model.load import Drive, channels
from veridyn.model.sensor import Sensor
from veridyn.observe.bounds import Estimated, ParameterBounds, Parameters, read_parameters
from veridyn.observe.machine import ErrorModel
from veridyn.observe.process_noise import ProcessNoise, Size
from veridyn.observe.setup import common_fields, refuse_unobservable
from veridyn.observe.stepping import LONGEST_STEP_S, mode_step
from veridyn.observe.tree import TreeSystem

Array = NDArray[np.float64]


def tree_system(
    tree: Tree,
    process_noise: ProcessNoise,
    *,
    error_model: ErrorModel = "exact",
    unknown: tuple[str, ...] | None = None,
    parameters: Parameters = (),
    independents: tuple[str, ...] = (),
    sensors: Sequence[Sensor] | None = None,
    inputs: tuple[str, ...] = (),
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    step: float | None = None,
    friction_speed: float = FRICTION_SPEED,
    consider: bool = True,
) -> tuple[TreeSystem, Array, Array]:
    """The system, and the configuration and velocity it starts from.

    Parameters
    ----------
    tree
        The machine, open or with loops, on a fixed base or a free one, with sensors.
    unknown
        Forces that are estimated: coordinates, base.x … base.yaw, or components of loads; None for one on every independent coordinate.
    parameters
        Parameters of the tree, and constants inside the laws of its elements ("fst_q1.speed"), that are estimated with the state: names, or
        name → (sigma, walk, lower, upper) or :class:`~veridyn.observe.bounds.Estimated`, which counts before `process_noise`.
    inputs
        What acts and is measured: force.C, signal.S, wrench.B.fx … mz, or components of loads. All six components of a wrench.
    start, rates
        Coordinates and rates by name; what is not given is at home (zero for an open tree), and at rest.
    step
        The longest step of the integration (s); None for that of :func:`~veridyn.observe.stepping.mode_step`.
    friction_speed
        Below it (rad/s, m/s) dry friction is rounded off, because a jump has no tangent.
    consider
        Let the uncertainty of the tree's parameters, where a fit has given it one, widen that of the states.
    """
    table = tree_readout(tree, sensors)
    refuse_unobservable(tree.name, table, LONGEST_STEP_S if step is None else step)
    names, estimated = read_parameters(parameters)
    loads = {name: load for load in tree.loads for name in channels(load)}
    forces: tuple[str, ...] | None = None
    pushed: tuple[str, ...] = ()
    if unknown is not None:
        forces = tuple(
            load.coordinate if isinstance(load := loads.get(name), Drive) else name
            for name in unknown
            if not (name in loads and not isinstance(loads[name], Drive))
        )
        pushed = tuple(name for name in unknown if name in loads and not isinstance(loads[name], Drive))
    bodies = tuple(dict.fromkeys(name.split(".")[1] for name in inputs if name.startswith("wrench.")))
    _check_wrenches(tree, bodies)
    uncertainty = tree.uncertainty.without(names) if consider and tree.uncertainty is not None else None
    model = tree_model(
        tree,
        independents=independents,
        unknown=forces,
        varying=(*pushed, *names, *(() if uncertainty is None else uncertainty.names)),
        wrenches=bodies,
        friction_speed=friction_speed,
    )
    model.loads(dict.fromkeys(inputs, 0.0))  # a name that is no input is refused here
    if estimated:
        described = {"parameter": process_noise.parameter, "start_parameter": process_noise.start_parameter}
        walk = _sized(described["parameter"], (*pushed, *names), {n: e.walk for n, e in estimated.items()})
        sigma = _sized(described["start_parameter"], (*pushed, *names), {n: e.sigma for n, e in estimated.items()})
        process_noise = replace(process_noise, parameter=walk, start_parameter=sigma)
    fields = common_fields(model, table, process_noise, error_model, inputs, step or LONGEST_STEP_S, uncertainty)
    q, qd = model.start_of(start, rates)
    system = TreeSystem(tree_model=model, bounds=_bounds(model, estimated), **fields)
    if step is None:
        system = replace(system, longest=mode_step(system, q, qd))
    return system, q, qd


def _sized(given: Size, names: Sequence[str], own: Mapping[str, float]) -> dict[str, float]:
    """A number for each name: its own, else what is given for it or for all."""
    rest = given if isinstance(given, Mapping) else dict.fromkeys(names, float(given))
    return {**{n: float(v) for n, v in rest.items()}, **own}


def _bounds(model: TreeModel, estimated: Mapping[str, Estimated]) -> ParameterBounds | None:
    """The bounds of those that have some; refused where the machine's own value is beyond, or a constant's law has no meaning there."""
    held = {n: e for n, e in estimated.items() if np.isfinite([e.lower, e.upper]).any()}
    laws = {c.name: c for c in model.tree.constants}
    faults = Faults()
    values = dict(zip(model.varying, model.start_values.tolist(), strict=True))
    for name, how in held.items():
        where = f"parameters, '{name}'"
        if not how.lower <= values[name] <= how.upper:
            expected = f"between {how.lower:g} and {how.upper:g}"
            faults.add(
                "the machine's own value is beyond its bounds.",
                where=where,
                expected=expected,
                found=f"{values[name]:g}",
            )
        law = laws.get(name)
        if law is not None and not (law.low <= how.lower and how.upper <= law.high):
            expected = f"bounds within {law.low:g} and {law.high:g}"
            faults.add(
                "its law has no meaning there.", where=where, expected=expected, found=f"{how.lower:g}, {how.upper:g}"
            )
    faults.raise_if_any(ModelError, model.name)
    if not held:
        return None
    places = np.array([len(model.unknown) + model.varying.index(name) for name in held], dtype=np.int64)
    return ParameterBounds(
        names=tuple(held),
        places=model.nq + model.nv + places,
        changes=2 * model.f + places,
        lower=np.array([e.lower for e in held.values()]),
        upper=np.array([e.upper for e in held.values()]),
    )


def _check_wrenches(tree: Tree, bodies: Sequence[str]) -> None:
    names = [b.name for b in tree.bodies]
    for body in bodies:
        if body not in names:
            raise DataError(
                Fault(f"a wrench acts on '{body}', which is no body.", tree.name, hint=did_you_mean(body, names))
            )
