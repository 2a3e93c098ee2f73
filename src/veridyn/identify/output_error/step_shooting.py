"""Simulated outputs of runs of any machine by its compiled step, with exact sensitivities: with loops, free bases, prescribed coordinates.

:mod:`veridyn.identify.output_error.shooting` simulates runs of open machines on a fixed base, all at once. Here the implicit trapezoidal
step of :mod:`veridyn.mechanics.tree.steps.step_kernel` leads from sample to sample over independent coordinates z. With F the derivative of
its state s = (z, ż, states of elements) with respect to the state before and to parameters and constants χ,

    S₊ = F_s S + [F_χ | 0],    ∂ŷ/∂(χ, d) = ∂ŷ/∂z S_z

S are the derivatives with respect to χ and to the change d of the initial state, which is counted from the measured one. ŷ are
coordinates and, of a free base, its position and the turn in its own axes, whose residual is the rotation vector of R̂ᵀ R.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, SimulationError
from veridyn.identify.output_error.log_runs import Runs
from veridyn.identify.output_error.shooting import Hold
from veridyn.mechanics.tree.steps.model import TreeInstant, TreeModel, tree_model
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
        found = np.empty((len(runs), runs.samples, len(self.outputs)))
        for r in range(len(runs)):
            for k, at in self._steps(runs, r, state[r], values, False):
                if k % self.substeps == 0:
                    found[r, k // self.substeps] = self._residual(runs, r, k // self.substeps, at)
        return found

    def columns(self, runs: Runs, state: Array, values: Array, spread: Array) -> tuple[Array, Array]:
        """Residuals (R, K, m), and the derivatives of the outputs (R, K, m, p + c + size).

        By p parameters, whose effect on all is `spread`, by the c constants, and by the change of the initial state.
        """
        f, size, p, c = self.model.f, self.size, spread.shape[1], len(self.constants)
        chi = np.zeros((len(self.varying) + c, p + c))  # of what varies, by base parameters and constants
        chi[: len(self.varying), :p] = spread[list(self.varying)]
        chi[len(self.varying) :, p:] = np.eye(c)
        before = [*range(2 * f), *range(2 * f + len(chi), len(chi) + size)]  # columns of F: the state before a step
        residuals = np.empty((len(runs), runs.samples, len(self.outputs)))
        slopes = np.empty((*residuals.shape, p + c + size))
        for r in range(len(runs)):
            S = np.zeros((size, p + c + size))
            S[:, p + c :] = np.eye(size)
            if self.model.free:
                S[3:6, p + c + 3 : p + c + 6] = right_jacobian(state[r, 3:6])
            for k, at in self._steps(runs, r, state[r], values, True):
                if k:
                    S = at.F[:, before] @ S
                    S[:, : p + c] += at.F[:, 2 * f : 2 * f + len(chi)] @ chi
                if k % self.substeps == 0:
                    sample = k // self.substeps
                    residuals[r, sample] = self._residual(runs, r, sample, at)
                    slopes[r, sample] = self._chosen((at.R @ S[:f]).T).T
        return residuals, slopes

    def _steps(
        self, runs: Runs, r: int, state: Array, values: Array, derivative: bool
    ) -> Iterator[tuple[int, TreeInstant]]:
        """The instants of run r, numbered: the initial one, then one after each step."""
        model, f, m = self.model, self.model.f, self.substeps
        u = np.concatenate([values[list(self.varying)], self.constant_values, state[2 * f :]])
        inputs, held = self._inputs(runs, r)
        x = np.concatenate([runs.base[r, 0, :7], runs.q[r, 0]])
        v = np.concatenate([runs.base[r, 0, 7:], runs.qd[r, 0]])
        loads, led = self._loads(inputs[0], held[0]), led_between(held, runs.step, m)
        try:
            at = model.moved(x, v, state[: 2 * f], u, loads)
        except DataError as error:  # a trial start that the machine cannot reach
            raise SimulationError(error.faults) from error
        yield 0, at
        h = runs.step / m
        for k in range((runs.samples - 1) * m):
            sample, share = k // m, ((k % m) + 0.5) / m  # forces act by their mean over a step
            acting = (
                inputs[sample] if self.hold == "zero" else (1.0 - share) * inputs[sample] + share * inputs[sample + 1]
            )
            at = model.step(at.q, at.qd, at.u, h, self._loads(acting, led[k]), derivative)
            yield k + 1, at

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

    def _loads(self, acting: Array, held: Array) -> tuple[Array, Array]:
        n = self.model.tree.n
        return np.concatenate([np.zeros(self.model.nv - n), acting[:n]]), np.concatenate([acting[n:], held])

    def _residual(self, runs: Runs, r: int, k: int, at: TreeInstant) -> Array:
        base = runs.base[r, k]
        if not self.model.free:
            return self._chosen(runs.q[r, k] - at.q)
        turn = rotation_vector(matrix_of(at.q[3:7]).T @ matrix_of(base[3:7]))
        return self._chosen(np.concatenate([base[:3] - at.q[:3], turn, runs.q[r, k] - at.q[7:]]))

    def _chosen(self, every: Array) -> Array:
        """The outputs among all coordinates (…, nv), the base's in front."""
        names = (*(BASE_NAMES if self.model.free else ()), *self.model.tree.coordinates)
        return every[..., [names.index(name) for name in self.outputs]]


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
        machine, varying=[*names, *constants], wrenches=wrenches, friction_speed=friction_speed, parameters=values
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
