"""An observer of a machine as a tracker: states and virtual sensors with bands, innovations, and what its sensors do.

The page draws it as points and lines, one pose at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any, cast

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ModelError, VeridynError
from veridyn.live.tracker import (
    LONGEST_GAP_S,
    Layout,
    Row,
    Sample,
    Shown,
    StampCheck,
    Tracked,
    Trouble,
    refused_stamp,
)
from veridyn.mechanics.formulated import GivenMachine
from veridyn.mechanics.tree.of_machine import machine_of_tree
from veridyn.model.machine import Machine
from veridyn.observe.filters.methods import Smoother
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Status
from veridyn.observe.observation import Virtual, quantity_of, state_units
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.streaming.observer import Observer, ObserverStep
from veridyn.spatial.rotations import matrix_of
from veridyn.studies.run.observer import PreparedObserver
from veridyn.view.scene import Layer, mechanism_layer, tree_layer

LONGEST_STEPS = 10_000  # of the integration between two samples
DRAW_ON = 5  # seed of what the machines that come with veridyn are simulated with
ROW_S = 0.01  # s of the machine between rows: faster samples are observed, and shown in fewer rows


@dataclass(frozen=True, eq=False)
class Picture:
    """How a machine is drawn: `layer` makes points of configurations (N, nq); `moving`: whether the eye goes with it."""

    layer: Callable[[Array], Layer]
    segments: tuple[tuple[int, int], ...]
    up: str = "z"
    trail: int | None = None
    moving: bool = False

    def points(self, q: Array) -> Array:
        """Points (p, 3) in m at a configuration (nq,)."""
        return self.layer(q[None]).points[0]


def picture_of(layer: Callable[[Array], Layer], q: Array, up: str = "z", moving: bool = False) -> Picture:
    """A picture whose lines are those of the machine at `q` (nq,) and beside it: one without length there may get one later."""
    near = np.stack([q, q + 0.05, q - 0.03])
    made = layer(near)
    trail = made.trails[0] if made.trails else made.points.shape[1] - 1
    return Picture(layer, tuple(made.segments), up, trail, moving)


def machine_picture(system: MachineSystem, x: Array) -> Picture | None:
    """The picture of an observed machine from its state `x`; None where its formulation cannot be drawn."""
    q, model = system.split(x)[0], cast(Any, system.model)
    if system.formulation == "tree":
        return tree_picture(machine_of_tree(model.tree), q)
    if system.formulation == "natural":
        natural = model.system
        flat = natural.mechanism.dimension == 2
        return picture_of(lambda many: mechanism_layer("", natural, many), q, "y" if flat else "z")
    return None


def tree_picture(machine: Machine, q: Array) -> Picture:
    """The picture of a machine in joint coordinates; of a free base the configuration begins with place and attitude."""
    if machine.base != "free":
        return picture_of(lambda many: tree_layer(machine, many, ""), q)

    def layer(many: Array) -> Layer:
        unit = many[:, 3:7] / np.linalg.norm(many[:, 3:7], axis=1, keepdims=True)
        return tree_layer(machine, many[:, 7:], "", position=many[:, :3], rotation=matrix_of(unit))

    return picture_of(layer, q, moving=True)


class MachineTracker:
    """Runs the observer of a study sample by sample. `picture` in place of lines between joints; `notes` for the page."""

    def __init__(self, prepared: PreparedObserver, picture: Picture | None = None, notes: tuple[str, ...] = ()) -> None:
        if isinstance(prepared.setup.method, Smoother):
            what, hint = "a smoother needs the whole log, and here samples come one by one.", "Use filter: {name: ekf}."
            raise ModelError(what, where="live, filter", expected="another filter", found="smoother", hint=hint)
        self._prepared, self._notes = prepared, notes
        self._off: set[str] = set()
        self._picture = picture
        self.restart()
        if picture is None:
            self._picture = machine_picture(self.system, self._observer.belief.x)
        self._quantities = [quantity_of(self.system, v) for v in prepared.virtual]
        self.layout = self._layout()
        self._warm_up()

    @property
    def system(self) -> MachineSystem:
        return self._observer.bodies

    def restart(self) -> None:
        setup = self._prepared.setup
        method = setup.method if setup.method.late == "rewind" else replace(setup.method, late="drop")
        self._observer = Observer(self._prepared.machine, method, setup.settings)
        longest = min(LONGEST_GAP_S, LONGEST_STEPS * (setup.settings.step or 0.01))
        self._check = StampCheck(longest, ordered=method.late != "rewind")
        self._acting: dict[str, float] = {}
        self._shown = -np.inf
        self._nis, self._dof = 0.0, 0

    def _warm_up(self) -> None:
        """Compile what a step needs before the first sample is there, with steps that are forgotten again."""
        acting = dict.fromkeys(self.system.inputs, 0.0)
        for t in (0.0, 1e-3):
            self.take(Sample(t, {}, 0.0, acting))
        self.restart()

    def switch(self, sensor: str, on: bool) -> None:
        outputs = (self.layout.sensors or {})[sensor]
        self._off = self._off - set(outputs) if on else self._off | set(outputs)

    def take(self, sample: Sample) -> Tracked:
        """The estimates after a sample; readings that cannot be used are named, and the observer goes on without them."""
        refused = refused_stamp(self._check, sample.t, self.restart, ", and so does the observer.")
        if refused is not None:
            return refused
        known = {n: v for n, v in sample.values.items() if n in self.system.outputs and n not in self._off}
        alarms = []
        inputs, missing = self._inputs(sample)
        if missing:
            what = f"at {sample.t:.6g} s what acts is not known ({', '.join(missing)}): the sample is not used."
            return Tracked(alarms=(Trouble("inputs", what),))
        try:
            step = self._observer.step(sample.t, known, inputs, sample.sigma or None)
        except (VeridynError, np.linalg.LinAlgError) as error:
            return Tracked(alarms=(Trouble("refused", f"{sample.t:.6g} s: {str(error).splitlines()[0]}"),))
        x = step.belief.x
        if not np.isfinite(x).all():
            self.restart()
            text = f"the estimate is no longer finite at {sample.t:.6g} s; the observer begins again from its start."
            return Tracked(alarms=(Trouble("diverged", text),))
        alarms += [Trouble(message, message) for message in step.messages]
        self._nis, self._dof = self._nis + step.nis, self._dof + step.dof
        if sample.t - self._shown < ROW_S * (1.0 - 1e-6):
            return Tracked(alarms=tuple(alarms))
        row = self._row(sample, step)
        self._shown, self._nis, self._dof = sample.t, 0.0, 0
        return Tracked(row, self.system.split(x)[0], tuple(alarms))

    def points(self, pose: Array) -> Array | None:
        return None if self._picture is None else self._picture.points(pose)

    def _inputs(self, sample: Sample) -> tuple[Array | None, list[str]]:
        """What acts from this sample on, None where nothing changed, and the names of what was never given."""
        names = self.system.inputs
        if not names:
            return None, []
        new = {n: v for n, v in sample.inputs.items() if isfinite(v)}
        first = not self._acting
        self._acting |= new
        missing = [n for n in names if n not in self._acting]
        if missing or not (new or first):
            return None, missing
        return np.array([self._acting[n] for n in names]), []

    def _row(self, sample: Sample, step: ObserverStep) -> Row:
        system, belief = self.system, step.belief
        values, sigma = list(step.values.values()), list(step.sigma.values())
        if self._quantities:
            acting = np.array([self._acting[n] for n in system.inputs])
            at = system.instant(belief.x, acting)
            for quantity in self._quantities:
                y, G = quantity.at(belief.x, at, acting)
                values += y.tolist()
                sigma += np.sqrt(np.maximum(((G @ belief.P) * G).sum(axis=1), 0.0)).tolist()
        nothing = (nan, nan)
        heard = [step.innovations.get(name, nothing) for name in system.outputs]
        codes = [int(Status.MISSING) if n in self._off else int(s) for n, s in step.status.items()]
        return Row(
            sample.t,
            values,
            sigma,
            sample.arrived,
            [nu for nu, _ in heard],
            [s for _, s in heard],
            codes,
            self._nis / self._dof if self._dof else nan,
        )

    def _layout(self) -> Layout:
        system, picture = self.system, self._picture
        shown = [Shown(n, u, "states") for n, u in zip(system.states, state_units(system), strict=True)]
        for q in self._quantities:
            shown += [Shown(n, u, "virtual sensors") for n, u in zip(q.components, q.units, strict=True)]
        sensors: dict[str, tuple[str, ...]] = {}
        for name, k in zip(system.table.names, system.table.owner, strict=True):
            sensor = system.table.sensors[k].name
            sensors[sensor] = (*sensors.get(sensor, ()), name)
        return Layout(
            system.name,
            "observer",
            tuple(shown),
            tuple(zip(system.table.names, system.table.units, strict=True)),
            sensors,
            () if picture is None else picture.segments,
            "z" if picture is None else picture.up,
            picture is not None and picture.moving,
            None if picture is None else picture.trail,
            (f"filter: {self._prepared.setup.method.name}", *self._notes),
        )


def prepared_observer(machine: GivenMachine, setup: ObserverSetup, wanted: Sequence[Virtual]) -> PreparedObserver:
    """An observer made ready without a study file."""
    return PreparedObserver(machine, setup, setup.system(machine)[0], tuple(wanted))
