"""Runs of a log and the simulation that is to reproduce them: residuals, sensitivities, and triangles that hold both.

Each run has its own initial state and shares the parameters. The R factor of a run's [J₀ | J_χ | r] holds both: its upper rows say
which state goes with given parameters, its lower ones what is left for the parameters, whose factors of all runs merge into one small
triangle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import ModelError, SimulationError
from veridyn.identify.output_error.log_runs import MAX_SENSITIVITIES, Runs, chunks
from veridyn.identify.output_error.shooting import RunModel
from veridyn.identify.regression.factor import triangle_of

Values = Callable[[Array], Array]  # base parameters → all parameters
Linearised = tuple[int, slice, Array, Array]  # group, part of its runs, residuals and sensitivities


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputProblem:
    """Runs with the simulation that is to reproduce them; x are the base parameters and, behind them, the constants of laws."""

    shooting: RunModel
    free: int  # components of the state that each run estimates
    groups: list[Runs]
    values_of: Values
    spread: Array
    # The last linearisation: the search ends where it was made last, and deviations are computed from it.
    _last: dict[bytes, list[Linearised]] = field(default_factory=dict, init=False, repr=False)

    def model(self, x: Array) -> tuple[RunModel, Array]:
        """The simulation with the constants of x, and all parameters of the tree."""
        p = self.spread.shape[1]
        return self.shooting.at(x[p:]), self.values_of(x[:p])

    def measured(self, runs: Runs) -> Array:
        return self.shooting.measured(runs)

    def residuals(self, x: Array, initial: list[Array]) -> list[Array] | None:
        """y − ŷ of each group, or None where the simulation fails."""
        try:
            return self.simulated(self.shooting, x, initial)
        except (SimulationError, ModelError):
            return None

    def simulated(self, shooting: RunModel, x: Array, initial: list[Array]) -> list[Array]:
        """y − ŷ of each group by a simulation such as that of the search."""
        p = self.spread.shape[1]
        own, values = shooting.at(x[p:]), self.values_of(x[:p])
        return [own.residuals(runs, state, values) for runs, state in zip(self.groups, initial, strict=True)]

    def columns(self, runs: Runs, state: Array, x: Array) -> tuple[Array, Array]:
        """Residuals (R, K, m) and sensitivities (R, K, m, len(x) + size of a state) of the outputs of some runs."""
        shooting, values = self.model(x)
        return shooting.columns(runs, state, values, self.spread)

    def linearised(self, x: Array, initial: list[Array]) -> Iterator[Linearised]:
        """Group, part of its runs, and their :meth:`columns`; kept until the next call where all of them fit into memory."""
        key = b"".join(a.tobytes() for a in (x, *initial))
        if key in self._last:
            yield from self._last[key]
            return
        self._last.clear()
        width, made = len(x) + self.shooting.size, []
        fits = sum(self.measured(runs).size for runs in self.groups) * width <= MAX_SENSITIVITIES
        for group, (runs, state) in enumerate(zip(self.groups, initial, strict=True)):
            for part in chunks(runs, self.shooting.substeps * width):
                found = (group, part, *self.columns(runs[part], state[part], x))
                if fits:
                    made.append(found)
                yield found
        if fits:
            self._last[key] = made

    def factors(
        self, x: Array, initial: list[Array], sigma: Array, residuals: list[Array] | None = None
    ) -> list[Array]:
        """For each group the triangles (R, q, q) of its runs: initial state, parameters and, last, the residual.

        `residuals`: in place of those at x, for what another simulation would change to first order.
        """
        p, free = len(x), self.free
        tops: list[list[Array]] = [[] for _ in self.groups]
        for group, part, own, J in self.linearised(x, initial):
            r = own if residuals is None else residuals[group][part]
            rows = np.concatenate([J[..., p : p + free], J[..., :p], r[..., None]], axis=-1) / sigma[:, None]
            tops[group].append(triangles(rows.reshape(len(r), -1, free + p + 1)))
        return [np.concatenate(found) for found in tops]

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


def triangles(rows: Array) -> Array:
    """R factors of (R, m, q), square whatever m."""
    short = max(0, rows.shape[2] - rows.shape[1])
    return np.asarray(np.linalg.qr(np.pad(rows, ((0, 0), (0, short), (0, 0))), mode="r"))
