"""Simulated outputs of runs of any machine by its compiled step, with exact sensitivities: with loops, free bases, prescribed coordinates.

:mod:`veridyn.identify.output_error.shooting` simulates runs of open machines on a fixed base, all at once. Here the implicit trapezoidal
step of :mod:`veridyn.mechanics.tree.steps.step_kernel` leads from sample to sample over independent coordinates z, a whole run and its
derivatives in one call (:mod:`veridyn.mechanics.tree.steps.march`). They are those with respect to parameters and constants χ and to the
change d of the initial state, which is counted from the measured one. ŷ are coordinates and, of a free base, its position and the turn in
its own axes, whose residual is the rotation vector of R̂ᵀ R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, SimulationError
from veridyn.identify.output_error.log_runs import Hold, Runs
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.march import shoot
from veridyn.mechanics.tree.steps.model import TreeModel, tree_model
from veridyn.mechanics.tree.steps.states import BASE_NAMES
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.machine import Machine
from veridyn.spatial.rotations import matrix_of, right_jacobian, rotation_vector


@dataclass(frozen=True, eq=False, kw_only=True)
class StepShooting:
    """How runs of a machine are simulated one after the other; made by :func:`step_shooting`."""

    model: TreeModel
    outputs: tuple[str, ...]
    varying: tuple[int, ...]  # numbers of the parameters that vary
    hold: Hold
    substeps: int
    constants: tuple[str, ...]
    constant_values: Array

    def at(self, constants: Array) -> StepShooting:
        """The same with other values of :attr:`constants`; refused where a law has no meaning there."""
        if not self.constants:
            return self
        self.model.tree.with_constants(dict(zip(self.constants, constants.tolist(), strict=True)))
        return replace(self, constant_values=constants)

    def refined(self) -> StepShooting:
        """The same with half the step."""
        return replace(self, substeps=2 * self.substeps)

    @property
    def size(self) -> int:
        """The length of a change of the initial state (z, ż, states of elements)."""
        return 2 * self.model.f + len(self.model.inner)

    @property
    def kinked(self) -> bool:
        """Never: friction is rounded off."""
        return False

    @property
    def units(self) -> tuple[str, ...]:
        """Of the outputs: turns of the base are rotation vectors."""
        base = dict(zip(BASE_NAMES, ("m",) * 3 + ("rad",) * 3, strict=True))
        return tuple(base[name] if name in base else self.model.unit_of(name) for name in self.outputs)

    def initial(self, runs: Runs) -> Array:
        """(R, size): no change from the measured start; states of elements as along the measured motion."""
        return np.concatenate([np.zeros((len(runs), 2 * self.model.f)), runs.inner], axis=1)

    def measured(self, runs: Runs) -> Array:
        """(R, K, m) of the outputs; of an attitude the turn since the start of its run, which says how large it is."""
        turns = np.zeros((*runs.q.shape[:2], 0))
        if self.model.free:
            R = matrix_of(runs.base[..., 3:7])
            turns = rotation_vector(np.swapaxes(R[:, :1], -1, -2) @ R)
        return self._chosen(np.concatenate([runs.base[..., :3], turns, runs.q], axis=-1))

    def residuals(self, runs: Runs, state: Array, values: Array) -> Array:
        """y − ŷ (R, K, m) of runs from initial states (R, size) with all parameters `values`."""
        return np.array([self._residual(runs, r, self._run(runs, r, state[r], values)[0]) for r in range(len(runs))])

    def columns(self, runs: Runs, state: Array, values: Array, spread: Array) -> tuple[Array, Array]:
        """Residuals (R, K, m), and the derivatives of the outputs (R, K, m, p + c + size).

        By p parameters, whose effect on all is `spread`, by the c constants, and by the change of the initial state.
        """
        size, p, c = self.size, spread.shape[1], len(self.constants)
        chi = np.zeros((len(self.varying) + c, p + c))  # of what varies, by base parameters and constants
        chi[: len(self.varying), :p] = spread[list(self.varying)]
        chi[len(self.varying) :, p:] = np.eye(c)
        residuals = np.empty((len(runs), runs.samples, len(self.outputs)))
        slopes = np.empty((*residuals.shape, p + c + size))
        for r in range(len(runs)):
            S = np.zeros((size, p + c + size))
            S[:, p + c :] = np.eye(size)
            if self.model.free:
                S[3:6, p + c + 3 : p + c + 6] = right_jacobian(state[r, 3:6])
            q, slopes[r] = self._run(runs, r, state[r], values, chi, S)
            residuals[r] = self._residual(runs, r, q)
        return residuals, slopes

    def _run(
        self, runs: Runs, r: int, state: Array, values: Array, chi: Array | None = None, S: Array | None = None
    ) -> tuple[Array, Array]:
        """Configurations (K, nq) at the samples of run r, and with S the derivatives of the outputs (K, m, ·)."""
        model, f, m, n = self.model, self.model.f, self.substeps, self.model.tree.n
        u = np.concatenate([values[list(self.varying)], self.constant_values, state[2 * f :]])
        inputs, held = self._inputs(runs, r)
        x = np.concatenate([runs.base[r, 0, :7], runs.q[r, 0]])
        v = np.concatenate([runs.base[r, 0, 7:], runs.qd[r, 0]])
        first = np.concatenate([np.zeros(model.nv - n), inputs[0, :n]]), np.concatenate([inputs[0, n:], held[0]])
        try:
            start = model.moved(x, v, state[: 2 * f], u, first)
        except DataError as error:  # a trial start that the machine cannot reach
            raise SimulationError(error.faults) from error
        step = np.arange((runs.samples - 1) * m)
        sample, share = step // m, ((step % m) + 0.5)[:, None] / m  # forces act by their mean over a step
        acting = inputs[sample]
        if self.hold != "zero":
            acting = (1.0 - share) * acting + share * inputs[sample + 1]
        extra = np.concatenate([np.zeros((len(step), model.nv - n)), acting[:, :n]], axis=1)
        outside = np.concatenate([acting[:, n:], led_between(held, runs.step, m)], axis=1)
        return shoot(model, start, runs.step / m, m, (extra, outside), self._rows if chi is not None else (), chi, S)

    def _inputs(self, runs: Runs, r: int) -> tuple[Array, Array]:
        """Of run r: forces of coordinates and outside values (K, ·), and q, q̇, q̈ of prescribed coordinates (K, ·)."""
        model, K = self.model, runs.samples
        known = {f"wrench.{b}.{row}": x[r, :, i] for b, x in runs.wrenches.items() for i, row in enumerate(WRENCH_ROWS)}
        known |= {f"signal.{name}": x[r] for name, x in runs.signals.items()}
        still = model.loads()[1]
        outside = [
            known.get(name, np.full(K, value)) for name, value in zip(model.kernels.outside, still, strict=False)
        ]
        forces = runs.forces[r].copy()
        forces[:, list(model.tree.held)] = 0.0  # what moves a prescribed coordinate is found, not given
        held = [x[r][:, list(model.tree.held)] for x in (runs.q, runs.qd, runs.qdd)]
        return np.column_stack([forces, *outside]), np.concatenate(held, axis=1)

    def _residual(self, runs: Runs, r: int, q: Array) -> Array:
        """y − ŷ (K, m) of run r at configurations (K, nq)."""
        if not self.model.free:
            return self._chosen(runs.q[r] - q)
        base = runs.base[r]
        turn = rotation_vector(np.swapaxes(matrix_of(q[:, 3:7]), -1, -2) @ matrix_of(base[:, 3:7]))
        return self._chosen(np.concatenate([base[:, :3] - q[:, :3], turn, runs.q[r] - q[:, 7:]], axis=1))

    @property
    def _rows(self) -> list[int]:
        """The outputs' numbers among all velocities, the base's in front."""
        names = (*(BASE_NAMES if self.model.free else ()), *self.model.tree.coordinates)
        return [names.index(name) for name in self.outputs]

    def _chosen(self, every: Array) -> Array:
        """The outputs among all coordinates (…, nv), the base's in front."""
        return every[..., self._rows]


def led_between(held: Array, T: float, m: int) -> Array:
    """q, q̇, q̈ of prescribed coordinates at the start of each of m steps from sample to sample, from those at the samples (K, 3 p).

    q̇ is the cubic with the samples' q̇ and q̈, q its integral from each sample on, q̈ the mean over the step, so that q̇ ends where the next
    step starts. Noise of q enters no rate.
    """
    q, v, a = (x[:, None, :] for x in np.split(held, 3, axis=1))
    v0, a0, rise = v[:-1], T * a[:-1], v[1:] - v[:-1]
    second, third = 3.0 * rise - 2.0 * a0 - T * a[1:], a0 + T * a[1:] - 2.0 * rise
    s = np.arange(m + 1)[:, None] / m
    rate = v0 + s * (a0 + s * (second + s * third))
    place = q[:-1] + T * s * (v0 + s * (a0 / 2.0 + s * (second / 3.0 + s * third / 4.0)))
    mean = np.diff(rate, axis=1) * (m / T)
    return np.concatenate([place[:, :m], rate[:, :m], mean], axis=2).reshape((len(q) - 1) * m, held.shape[1])


def step_shooting(
    machine: Machine,
    *,
    outputs: Sequence[str] = (),
    varying: Sequence[int] = (),
    values: Array,
    wrenches: Sequence[str] = (),
    hold: Hold = "linear",
    friction_speed: float = 0.0,
    substeps: int = 1,
    constants: Sequence[str] = (),
) -> StepShooting:
    """Runs of a tree of which the parameters numbered `varying`, and `constants`, change from call to call; the others are `values`.

    `outputs`: coordinates that are compared, by default the independent ones; those that follow from them through loops may have been
    computed from them, and would count twice.
    """
    names = [machine.parameters.names[c] for c in varying]
    model = tree_model(
        tree_of(machine),
        varying=[*names, *constants],
        wrenches=wrenches,
        friction_speed=friction_speed,
        parameters=values,
    )
    known = {c.name: c.value for c in machine.constants}
    return StepShooting(
        model=model,
        outputs=tuple(outputs) or model.names,
        varying=tuple(varying),
        hold=hold,
        substeps=substeps,
        constants=tuple(constants),
        constant_values=np.array([known[name] for name in constants], dtype=np.float64),
    )
