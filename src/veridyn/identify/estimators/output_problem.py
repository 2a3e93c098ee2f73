"""One step of output error: residuals and sensitivities of runs, with their initial states eliminated run by run.

Each run has its own initial state and shares the parameters. The R factor of a run's [J₀ | J_χ | r] holds both: its upper rows say
which state goes with given parameters, its lower ones what is left for the parameters, whose factors of all runs merge into one small
triangle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import ModelError, SimulationError
from veridyn.identify.estimators.log_runs import Runs, chunks
from veridyn.identify.estimators.run_model import RunModel
from veridyn.identify.upper import triangle_of

Array = NDArray[np.float64]
Values = Callable[[Array], Array]  # base parameters → all parameters


@dataclass(frozen=True, eq=False)
class OutputProblem:
    """Runs with the simulation that is to reproduce them; x are the base parameters and, behind them, the constants of laws."""

    shooting: RunModel
    free: int  # components of the state that each run estimates
    groups: list[Runs]
    values_of: Values
    spread: Array

    def model(self, x: Array) -> tuple[RunModel, Array]:
        """The simulation with the constants of x, and all parameters of the tree."""
        p = self.spread.shape[1]
        return self.shooting.at(x[p:]), self.values_of(x[:p])

    def measured(self, runs: Runs) -> Array:
        return self.shooting.measured(runs)

    def residuals(self, x: Array, initial: list[Array]) -> list[Array] | None:
        """y − ŷ of each group, or None where the simulation fails."""
        try:
            shooting, values = self.model(x)
            return [shooting.residuals(runs, state, values) for runs, state in zip(self.groups, initial, strict=True)]
        except (SimulationError, ModelError):
            return None

    def columns(self, runs: Runs, state: Array, x: Array) -> tuple[Array, Array]:
        """Residuals (R, K, m) and sensitivities (R, K, m, len(x) + size of a state) of the outputs of some runs."""
        shooting, values = self.model(x)
        return shooting.columns(runs, state, values, self.spread)

    def factors(self, x: Array, initial: list[Array], sigma: Array) -> list[Array]:
        """For each group the triangles (R, q, q) of its runs: initial state, parameters and, last, the residual."""
        p, free = len(x), self.free
        found = []
        for runs, state in zip(self.groups, initial, strict=True):
            tops = []
            for part in chunks(runs, self.shooting.substeps * (p + self.shooting.size)):
                r, J = self.columns(runs[part], state[part], x)
                rows = np.concatenate([J[..., p : p + free], J[..., :p], r[..., None]], axis=-1) / sigma[:, None]
                tops.append(triangles(rows.reshape(len(r), -1, free + p + 1)))
            found.append(np.concatenate(tops))
        return found

    def reduced(self, factors: list[Array], damping: float = 0.0) -> tuple[Array, list[Array]]:
        """The triangle of the parameters and the residual, with initial states eliminated, and what these follow from."""
        free, heads = self.free, []
        size = factors[0].shape[-1] - free
        total = np.zeros((size, size))
        for T in factors:
            if damping and free:
                extra = np.zeros((len(T), free, T.shape[-1]))
                extra[:, range(free), range(free)] = math.sqrt(damping) * np.linalg.norm(T[:, :, :free], axis=1)
                T = triangles(np.concatenate([T, extra], axis=1))
            heads.append(T[:, :free])
            total = triangle_of(np.vstack([total, T[:, free:, free:].reshape(-1, size)]))
        return total, heads

    def reduced_at(self, x: Array, initial: list[Array], sigma: Array) -> tuple[Array, list[Array]]:
        """:meth:`reduced` of the :meth:`factors` at x."""
        return self.reduced(self.factors(x, initial, sigma))

    def stepped(self, factors: list[Array], initial: list[Array], damping: float) -> tuple[Array, list[Array]]:
        """The step of the parameters, and the initial states after it; each damped by so much of its column's length."""
        T, heads = self.reduced(factors, damping)
        p, free = len(T) - 1, self.free
        A, b = T[:p, :p], T[:p, -1]
        if damping:
            A = np.vstack([A, np.diag(math.sqrt(damping) * np.linalg.norm(A, axis=0))])
            b = np.concatenate([b, np.zeros(p)])
        sizes = np.linalg.norm(A, axis=0)
        sizes[sizes == 0.0] = 1.0
        step = np.asarray(np.linalg.lstsq(A / sizes, b, rcond=1e-13)[0], dtype=np.float64) / sizes
        moved = []
        for state, H in zip(initial, heads, strict=True):
            right = H[:, :, -1] - H[:, :, free:-1] @ step
            change = [np.linalg.lstsq(h[:, :free], c, rcond=1e-12)[0] for h, c in zip(H, right, strict=True)]
            moved.append(state + np.array(change) if free else state)
        return step, moved


def triangles(rows: Array) -> Array:
    """R factors of (R, m, q), square whatever m."""
    short = max(0, rows.shape[2] - rows.shape[1])
    return np.asarray(np.linalg.qr(np.pad(rows, ((0, 0), (0, short), (0, 0))), mode="r"))
