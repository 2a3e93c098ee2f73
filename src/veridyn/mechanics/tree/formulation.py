"""A machine as a tree, as :mod:`veridyn.mechanics.formulation` asks for it: names, what acts, models for stepping, motions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast, get_args

from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.mechanics.formulation import WRENCH, Ability, Capabilities, MachineModel, RunSettings, wrench_bodies
from veridyn.mechanics.system.simulation import BaseState, Inputs, Method, Trajectory
from veridyn.mechanics.tree.readout import TreeReadout, tree_readout
from veridyn.mechanics.tree.steps.model import TreeModel, tree_model
from veridyn.mechanics.tree.tree import Tree
from veridyn.mechanics.tree.virtual import TreeQuantity
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.graph import placed_sensor
from veridyn.model.load import Drive, Force, Load, Torque, channels, drives_of
from veridyn.model.machine import Machine
from veridyn.model.parameters import Drift, Uncertainty
from veridyn.model.place import PointRef
from veridyn.model.sensor import Sensor
from veridyn.progress import Progress, silent

ALL: Capabilities = MappingProxyType(dict.fromkeys(get_args(Ability)))


@dataclass(frozen=True, eq=False)
class TreeForm:
    """A machine in joint coordinates, `tree` as they are computed."""

    tree: Tree
    machine: Machine

    @property
    def word(self) -> str:
        return "tree"

    @property
    def name(self) -> str:
        return self.tree.name

    @property
    def sensors(self) -> tuple[Sensor, ...]:
        """Its sensors, at places on bodies."""
        return self.tree.sensors

    @property
    def loads(self) -> tuple[Load, ...]:
        """Loads as the machine is described with them."""
        return self.machine.loads

    @property
    def drives(self) -> dict[str, str]:
        """The coordinate that each drive acts on."""
        return drives_of(self.tree.loads)

    @property
    def drifts(self) -> Mapping[str, Drift]:
        """The parameters that change while the machine is used."""
        return self.tree.parameters.drifts

    @property
    def uncertainty(self) -> Uncertainty | None:
        """The covariance of its parameters."""
        return self.tree.uncertainty

    @property
    def capabilities(self) -> Capabilities:
        return ALL

    @property
    def regressor(self) -> Callable[..., Any]:
        """:func:`veridyn.mechanics.tree.dynamics.inverse.regressor` of this tree: forces are linear in its parameters."""
        from veridyn.mechanics.tree.dynamics.inverse import regressor

        return lambda *args, **kwargs: regressor(self.tree, *args, **kwargs)

    def placed(self, sensors: Sequence[Sensor]) -> tuple[Sensor, ...]:
        """Sensors on bodies; on a planar machine they read x and y, and turn about z."""
        return tuple(placed_sensor(self.machine, s) for s in sensors)

    def inputs_in(self, names: Sequence[str]) -> tuple[str, ...]:
        """The channels that act: forces of actuated coordinates, motions of prescribed ones, signals, wrenches, loads.

        Components of loads across the plane of a planar machine move nothing, and are none.
        """
        tree = self.tree
        found = [f"force.{c}" for c in tree.actuated_coordinates if c not in tree.prescribed]
        own = {state.name for state in tree.states}
        found += [f"signal.{name}" for name in tree.signals if name not in own]
        found += [f"{symbol}.{name}" for symbol in ("q", "qd", "qdd") for name in tree.prescribed]
        found += [name for load in tree.loads for name in channels(load)]
        for body in tree.bodies:
            six = [f"{WRENCH}{body.name}.{row}" for row in WRENCH_ROWS]
            found += six if all(name in names for name in six) else []
        if self.machine.dimension == 2:
            found = [name for name in found if name not in self._across]
        return tuple(name for name in dict.fromkeys(found) if name in names)

    @property
    def _across(self) -> set[str]:
        """Components of loads across the plane of a planar machine."""
        forces = {f"{load.name}.z" for load in self.tree.loads if isinstance(load, Force)}
        return forces | {f"{load.name}.{a}" for load in self.tree.loads if isinstance(load, Torque) for a in "xy"}

    def readout(self, sensors: Sequence[Sensor]) -> TreeReadout:
        """What sensors on it read along a motion in joint coordinates."""
        return tree_readout(self.tree, sensors)

    def taking(self, inputs: Sequence[str]) -> TreeForm:
        """Itself: a tree takes all its inputs."""
        return self

    def prepared(self, settings: RunSettings) -> tuple[MachineModel, Array, Array]:
        """The tree over its independent coordinates, and the configuration and rates it starts from.

        Inputs: force.C, signal.S, wrench.B.fx … mz, or components of loads; all six components of a wrench.
        """
        tree, s = self.tree, settings
        loads = {name: load for load in tree.loads for name in channels(load)}
        forces: tuple[str, ...] | None = None
        pushed: tuple[str, ...] = ()
        if s.unknown is not None:
            forces = tuple(self.drives.get(n, n) for n in s.unknown if isinstance(loads.get(n), Drive | None))
            pushed = tuple(name for name in s.unknown if name in loads and not isinstance(loads[name], Drive))
        bodies = wrench_bodies(s.inputs, [b.name for b in tree.bodies], tree.name)
        uncertainty = tree.uncertainty.without(s.parameters) if s.consider and tree.uncertainty is not None else None
        made = tree_model(
            tree,
            independents=s.independents,
            unknown=forces,
            varying=(*pushed, *s.parameters, *(() if uncertainty is None else uncertainty.names)),
            wrenches=bodies,
            friction_speed=s.friction_speed,
        )
        model = replace(made, uncertainty=uncertainty, form=self)
        model.loads(dict.fromkeys(s.inputs, 0.0))  # a name that is no input is refused here
        q, qd = model.start_of(s.start, s.rates)
        return cast(MachineModel, model), q, qd  # some of its properties are kept once computed

    def quantity(self, model: TreeModel, name: str, kind: str, on: PointRef | tuple[str, str]) -> TreeQuantity:
        """A virtual sensor on the tree."""
        return TreeQuantity(model, name, kind, on)

    def integrated(
        self,
        t: Array,
        q: ArrayLike,
        qd: ArrayLike,
        inputs: Inputs | None,
        *,
        base: BaseState | None = None,
        method: Method | None = None,
        progress: Progress = silent,
    ) -> Trajectory:
        """:func:`veridyn.mechanics.system.integrate.integrate` of this tree."""
        from veridyn.mechanics.system.integrate import integrate  # which compiles; names need none of it

        return integrate(self.tree, t, q, qd, inputs, base=base, method=method, progress=progress)
