"""Simulated outputs of the runs of a log, and exact sensitivities of these: what a simulation offers, which one a machine needs, and that
of open machines.

Each run is simulated from its own initial state under the measured forces, or under a control law, by
:class:`~veridyn.mechanics.system.compiled_run.CompiledRun`: explicit steps of order four in machine code. Sensitivities by parameters,
constants and initial states are the derivatives of these steps, through friction that holds and lets go too
(:mod:`veridyn.mechanics.system.run_sensitivity`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.identify.output_error.log_runs import Hold, Runs
from veridyn.identify.result import ReplaySettings
from veridyn.mechanics.system.dry_friction import KINDS
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.settings import Rule

if TYPE_CHECKING:
    from veridyn.mechanics.system.compiled_run import CompiledRun, Simulated

Law = Callable[[float, Array, Array], ArrayLike]
LAW = Rule(lambda law: law is None or callable(law), "a control law (t, q, qd) -> forces, or None")


@dataclass(frozen=True, eq=False, kw_only=True)
class Shooting:
    """How runs of a tree are simulated."""

    machine: Machine
    law: Law | None = None
    hold: Hold = "linear"
    friction_speed: float = 0.0
    substeps: int = 1
    constants: tuple[str, ...] = ()  # inside the laws of elements, by which sensitivities are computed too
    chosen: tuple[str, ...] = ()  # coordinates that are compared; all of them where none is named
    compare: Literal["coordinates", "forces"] = "coordinates"  # forces: those of the control law
    _kept: dict[bytes, CompiledRun] = field(default_factory=dict, init=False, repr=False)  # by what is varied

    def at(self, constants: Array) -> Shooting:
        """The same with other values of :attr:`constants`; refused where a law has no meaning there."""
        if not self.constants:
            return self
        machine = self.machine.with_constants(dict(zip(self.constants, constants.tolist(), strict=True)))
        return self._with(machine=machine)

    def refined(self) -> Shooting:
        """The same with half the step."""
        return self._with(substeps=2 * self.substeps)

    def _with(self, **changes: object) -> Shooting:
        """The same with changes that leave its machine code as it is."""
        other = replace(self, **changes)
        other._kept.update(self._kept)
        return other

    @property
    def size(self) -> int:
        """The length of a state (q, q̇, z)."""
        return 2 * self.machine.n + len(self.machine.states)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The coordinates whose values or forces are compared."""
        return self.chosen or self.machine.coordinates

    @property
    def kinked(self) -> bool:
        """Whether dry friction holds."""
        return self.friction_speed == 0.0 and any(e.kind in KINDS and e.on for e in self.machine.elements)

    @property
    def units(self) -> tuple[str, ...]:
        """Of the outputs."""
        kinds = [self.machine.coordinate_kinds[k] == "turning" for k in self._places]
        turning, sliding = ("rad", "m") if self.compare == "coordinates" else ("N*m", "N")
        return tuple(turning if turns else sliding for turns in kinds)

    @cached_property
    def _places(self) -> list[int]:
        return [self.machine.coordinates.index(name) for name in self.outputs]

    def initial(self, runs: Runs) -> Array:
        """(R, size): the measured start of each run."""
        return runs.initial

    def measured(self, runs: Runs) -> Array:
        """(R, K, m): what was measured of the outputs."""
        return (runs.q if self.compare == "coordinates" else runs.forces)[..., self._places]

    def residuals(self, runs: Runs, state: Array, values: Array) -> Array:
        """y − ŷ (R, K, m) of runs from initial states (R, size) with all parameters `values`."""
        found, _ = self._run(runs, state, values, searched=True)
        return self.measured(runs) - self._simulated(found)

    def columns(self, runs: Runs, state: Array, values: Array, spread: Array) -> tuple[Array, Array]:
        """Residuals (R, K, m), and the derivatives of the outputs (R, K, m, p + c + size), as of :meth:`sensitivities`."""
        found, S = self._run(runs, state, values, spread, self._places, self.compare == "forces", searched=True)
        return self.measured(runs) - self._simulated(found), S

    def _simulated(self, found: Simulated) -> Array:
        return (found.q if self.compare == "coordinates" else found.forces)[..., self._places]

    def simulate(self, runs: Runs, initial: Array, values: Array) -> Simulated:
        """The runs from initial states (R, size) with all parameters `values`, at the samples."""
        return self._run(runs, initial, values)[0]

    def sensitivities(self, runs: Runs, initial: Array, values: Array, spread: Array) -> tuple[Simulated, Array, Array]:
        """The runs, S_q and S_v (R, K, n, p + c + size).

        By p parameters, whose effect on all is `spread`, by the c constants, and by the initial state.
        """
        n = self.machine.n
        found, S = self._run(runs, initial, values, spread, range(2 * n))
        return found, S[:, :, :n], S[:, :, n:]

    def _run(
        self,
        runs: Runs,
        initial: Array,
        values: Array,
        spread: Array | None = None,
        rows: Sequence[int] = (),
        law_forces: bool = False,
        searched: bool = False,
    ) -> tuple[Simulated, Array]:
        """`searched`: this is one of many runs, of which coordinates alone are wanted, or forces where these are compared."""
        key = bytes([searched]) + (b"" if spread is None else spread.tobytes())
        if key not in self._kept:
            own = {c.name: number for number, c in enumerate(self.machine.constants)}
            varied = None if spread is None else Varied(spread, tuple(own[name] for name in self.constants))
            from veridyn.mechanics.system.compiled_run import CompiledRun  # here: it brings a compiler along

            self._kept[key] = CompiledRun(
                self.machine, friction_speed=self.friction_speed, law=self.law, varied=varied, often=searched
            )
        run, alone = self._kept[key], searched and self.compare == "coordinates"
        return run.run(
            runs.step,
            initial,
            runs.forces,
            runs.signals,
            parameters=values,
            machine=self.machine,
            start=runs.start,
            hold=self.hold,
            substeps=self.substeps,
            rows=rows,
            law_forces=law_forces,
            into=run.room(len(runs), runs.samples, states_alone=True) if alone else None,
        )


class RunModel(Protocol):
    """How runs of a log are simulated: :class:`~veridyn.identify.output_error.shooting.Shooting` all runs of an open machine at once,
    :class:`~veridyn.identify.output_error.step_shooting.StepShooting` any machine, run by run."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the m outputs that are compared."""
        ...

    @property
    def units(self) -> tuple[str, ...]:
        """Of the outputs."""
        ...

    @property
    def size(self) -> int:
        """The length of an initial state."""
        ...

    @property
    def substeps(self) -> int:
        """Steps per sample."""
        ...

    @property
    def kinked(self) -> bool:
        """Whether outputs may have kinks as functions of the parameters: where friction just stops a joint, or just does not."""
        ...

    def at(self, constants: Array, /) -> RunModel:
        """The same with other constants of laws."""
        ...

    def refined(self) -> RunModel:
        """The same with half the step."""
        ...

    def initial(self, runs: Runs, /) -> Array:
        """(R, size): the start of each run as measured."""
        ...

    def measured(self, runs: Runs, /) -> Array:
        """(R, K, m) of the outputs."""
        ...

    def residuals(self, runs: Runs, state: Array, values: Array, /) -> Array:
        """(R, K, m): measured less simulated."""
        ...

    def columns(self, runs: Runs, state: Array, values: Array, spread: Array, /) -> tuple[Array, Array]:
        """The residuals, and (R, K, m, p + c + size) of the outputs by parameters, constants and initial state."""
        ...


def run_model(
    machine: Machine,
    motions: Sequence[Motion],
    values: Array,
    how: ReplaySettings,
    *,
    varying: Sequence[int] = (),
    compare: Literal["coordinates", "forces"] = "coordinates",
    constants: Sequence[str] = (),
) -> RunModel:
    """Runs of all motions at once where the machine is open, on a fixed base and free of wrenches; else run by run.

    `values` are all parameters, of which those numbered `varying` change from call to call.
    """
    bodies = sorted({body for motion in motions for body in motion.wrenches})
    check_outputs(machine, how.outputs)
    if machine.base == "fixed" and not machine.closed and not machine.prescribed and not bodies:
        return Shooting(
            machine=machine,
            law=how.law,
            hold=how.hold,
            friction_speed=how.friction_speed,
            substeps=how.substeps,
            constants=tuple(constants),
            chosen=how.outputs,
            compare=compare,
        )
    from veridyn.identify.output_error.step_shooting import step_shooting  # here: it brings a compiler along

    return step_shooting(
        machine,
        outputs=how.outputs,
        varying=varying,
        values=values,
        wrenches=bodies,
        hold=how.hold,
        friction_speed=how.friction_speed,
        substeps=how.substeps,
        constants=constants,
    )


def check_outputs(machine: Machine, outputs: Sequence[str]) -> None:
    """Refuse names that are no coordinate, are prescribed, or are named twice."""
    from veridyn.mechanics.tree.steps.states import BASE_NAMES

    known = [
        *(BASE_NAMES if machine.base == "free" else ()),
        *(c for c in machine.coordinates if c not in machine.prescribed),
    ]
    faults = Faults()
    for name in dict.fromkeys(outputs):
        if name in machine.prescribed:
            faults.add(f"'{name}' is prescribed, so it says nothing.", where="outputs", expected=", ".join(known))
        elif name not in known:
            faults.add(f"there is no coordinate '{name}'.", where="outputs", hint=did_you_mean(name, known))
        if list(outputs).count(name) > 1:
            faults.add(f"'{name}' is named twice.", where="outputs")
    faults.raise_if_any(DataError, machine.name)
