"""From a tree, its sensors and what is not known of it to the system a filter runs on: everything checked, faults by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.mechanics.tree.model import FRICTION_SPEED, tree_model
from veridyn.mechanics.tree_readout import tree_readout
from veridyn.model.load import Drive, channels
from veridyn.model.sensor import Sensor
from veridyn.model.tree import Tree
from veridyn.observe.machine import ErrorModel
from veridyn.observe.setup import common_fields, refuse_unobservable
from veridyn.observe.tree import TreeSystem
from veridyn.observe.unsure import Unsure

Array = NDArray[np.float64]


def tree_system(
    tree: Tree,
    unsure: Unsure,
    *,
    error_model: ErrorModel = "exact",
    unknown: tuple[str, ...] | None = None,
    parameters: tuple[str, ...] = (),
    independents: tuple[str, ...] = (),
    sensors: Sequence[Sensor] | None = None,
    inputs: tuple[str, ...] = (),
    start: Mapping[str, float] | None = None,
    rates: Mapping[str, float] | None = None,
    step: float = 0.01,
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
        Parameters of the tree that are estimated with the state.
    inputs
        What acts and is measured: force.C, signal.S, wrench.B.fx … mz, or components of loads. All six components of a wrench.
    start, rates
        Coordinates and rates by name; what is not given is at home (zero for an open tree), and at rest.
    step
        The longest step of the integration (s).
    friction_speed
        Below it (rad/s, m/s) dry friction is rounded off, because a jump has no tangent.
    consider
        Let the uncertainty of the tree's parameters, where a fit has given it one, widen that of the states.
    """
    table = tree_readout(tree, sensors)
    refuse_unobservable(tree.name, table, step)
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
    uncertainty = tree.uncertainty.without(parameters) if consider and tree.uncertainty is not None else None
    model = tree_model(
        tree,
        independents=independents,
        unknown=forces,
        varying=(*pushed, *parameters, *(() if uncertainty is None else uncertainty.names)),
        wrenches=bodies,
        friction_speed=friction_speed,
    )
    model.loads(dict.fromkeys(inputs, 0.0))  # a name that is no input is refused here
    fields = common_fields(model, table, unsure, error_model, inputs, step, uncertainty)
    q, qd = model.start_of(start, rates)
    return TreeSystem(tree_model=model, **fields), q, qd


def _check_wrenches(tree: Tree, bodies: Sequence[str]) -> None:
    names = [b.name for b in tree.bodies]
    for body in bodies:
        if body not in names:
            raise DataError(
                Fault(f"a wrench acts on '{body}', which is no body.", tree.name, hint=did_you_mean(body, names))
            )


def inputs_in(tree: Tree, channels_there: Sequence[str]) -> tuple[str, ...]:
    """The channels of a log that act on a tree: forces of actuated coordinates, motions of prescribed ones, signals, wrenches, loads."""
    found = [f"force.{c}" for c in tree.actuated_coordinates if c not in tree.prescribed]
    found += [f"signal.{name}" for name in tree.signals]
    found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in tree.prescribed]
    found += [name for load in tree.loads for name in channels(load)]
    for body in tree.bodies:
        six = [f"wrench.{body.name}.{row}" for row in ("fx", "fy", "fz", "mx", "my", "mz")]
        found += six if all(name in channels_there for name in six) else []
    return tuple(name for name in dict.fromkeys(found) if name in channels_there)
