"""States with deviations along a log, whatever machine they are of: what every observation has.

Does an observer forget its errors? The closed loop that the gain really makes, along the run.

    e_k = (I − K_k H_k) F_k e_{k−1}

For a constant gain its poles are the eigenvalues of F (I − K H). Along a trajectory eigenvalues decide nothing, so the
growth rates of the product of all steps are found by repeated QR factors: the largest is negative when every error dies
out. The matrix of paper 003, equation 65, is block triangular, its eigenvalues do not contain the gain, and its test is
passed by any gain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.lazy import above
from veridyn.observe.consistency.directions import DirectionCheck, direction_checks, direction_line
from veridyn.observe.consistency.health import Episode, episodes
from veridyn.observe.consistency.nis import Consistency, innovation_whiteness, nis
from veridyn.observe.consistency.tuning import Tuning
from veridyn.observe.filters.smoother import Smoothed
from veridyn.observe.result import Estimates
from veridyn.signals.spectrum import Whiteness


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """`rates` (n,) in 1/s: how fast errors grow (positive) or die out (negative), the slowest first.

    `radius` (N − 1,): the largest |eigenvalue| of each single step, for a plot.
    """

    rates: Array
    radius: Array

    @property
    def stable(self) -> bool:
        return bool(self.rates[0] < 0.0)

    @property
    def memory(self) -> float:
        """Seconds until the slowest error has fallen to 1/e; infinite where it does not fall."""
        return float(-1.0 / self.rates[0]) if self.stable else float("inf")

    def summary(self) -> str:
        if self.stable:
            return f"stable: errors fall to 1/e within {self.memory:.3g} s"
        return f"not stable: an error grows at {self.rates[0]:.3g} 1/s"


def poles(F: ArrayLike, K: ArrayLike, H: ArrayLike) -> NDArray[np.complex128]:
    """The eigenvalues of F (I − K H): those of the error of an observer with a constant gain."""
    F, K, H = (np.asarray(a, dtype=np.float64) for a in (F, K, H))
    return np.linalg.eigvals(F @ (np.eye(len(F)) - K @ H)).astype(np.complex128)


def closed_loop(estimates: Estimates, scales: ArrayLike | None = None, skip: int = 0) -> ClosedLoop:
    """Growth rates along the run from sample `skip` on. `scales` (n,): typical sizes of the states, so that units compare."""
    estimates.chained("closed-loop stability")
    n = len(estimates.states)
    if len(estimates) - skip < 2:
        raise DataError("one sample makes no step.", where=estimates.filter, expected="at least two samples")
    s = np.ones(n) if scales is None else np.asarray(scales, dtype=np.float64)
    keep = np.eye(n) - estimates.K[skip + 1 :] @ estimates.H[skip + 1 :]
    steps = (keep @ estimates.F[skip + 1 :]) * (s[None, None, :] / s[None, :, None])
    Q, growth = np.eye(n), np.zeros(n)
    for A in steps:
        Q, R = np.linalg.qr(A @ Q)
        growth += np.log(np.maximum(np.abs(R.diagonal()), np.finfo(np.float64).tiny))
    duration = float(estimates.t[-1] - estimates.t[skip])
    return ClosedLoop(np.sort(growth / duration)[::-1], np.abs(np.linalg.eigvals(steps)).max(axis=1))


class StateHistory(ABC):
    """The `track` of states and the `estimates` of the filter behind it (the same, but for a smoother).

    `system` has a `name`, the `table` of its sensors, the `bounds` of estimated parameters, and which states are `considered`.
    `usable_nis`: within it the bands are of use, however long the log.
    """

    filter: str
    system: Any
    estimates: Estimates
    track: Estimates | Smoothed
    tuning: Tuning | None
    usable_nis: ClassVar[tuple[float, float]] = (0.75, 1.25)  # a band of 95 % holds 92 to 98 % of the truth

    @property
    @abstractmethod
    def states(self) -> tuple[str, ...]: ...

    @property
    @abstractmethod
    def units(self) -> tuple[str, ...]:
        """Of the states."""

    @property
    @abstractmethod
    def reduced(self) -> Array:
        """The states (N, n)."""

    @property
    @abstractmethod
    def sigma(self) -> Array:
        """Their standard deviations (N, n)."""

    def __len__(self) -> int:
        return len(self.track)

    @property
    def t(self) -> Array:
        return self.track.t

    def state(self, name: str) -> Array:
        """The history (N,) of one state."""
        if name not in self.states:
            raise DataError(f"there is no state '{name}'.", where=self.filter, hint=did_you_mean(name, self.states))
        return self.reduced[:, self.states.index(name)]

    def episodes(self, least: int = 3) -> tuple[Episode, ...]:
        """What became of the sensors."""
        return episodes(self.estimates, least)

    def bounded(self) -> tuple[str, ...]:
        """Estimated parameters that stood at a bound, with how often: their estimate is the bound's there, and not the data's."""
        bounds = self.system.bounds
        held = {} if bounds is None else bounds.held(self.track.x)
        return tuple(
            f"parameter '{name}' stood at its bound {bound:g} at {times} of {len(self)} samples"
            for name, (bound, times) in held.items()
        )

    def nis(self, skip: int = 0) -> Consistency:
        return nis(self.estimates, skip=skip)

    def directions(self, skip: int = 0) -> tuple[DirectionCheck, ...]:
        """Innovations along the principal directions of outputs that are read together, the largest first; 1 is ideal in each."""
        return direction_checks(self.estimates, skip)

    def consistency_lines(self, skip: int = 0) -> tuple[str, ...]:
        """What the summary says of directions from sample `skip` on, and of readings that the filter was not given."""
        return direction_line(self.directions(skip))

    def whiteness(self, skip: int = 0) -> dict[str, Whiteness]:
        return innovation_whiteness(self.estimates, skip=skip)

    def stability(self, skip: int = 1) -> ClosedLoop:
        """Whether errors die out under the gains that were used."""
        return closed_loop(self.estimates, self.estimates.sigma[skip:].mean(axis=0), skip)

    def __repr__(self) -> str:
        name = f"{type(self).__name__}({self.filter} on {self.system.name!r}"
        return f"{name}, {len(self)} samples, {len(self.states)} states)"

    def _repr_html_(self) -> str:
        return above("veridyn.report.notebook", "show_observation")(self)._repr_html_()

    def plot(self, *names: str) -> Any:
        """States with their 95 % bands, all or those that are named, for a notebook; ``save(path)`` writes a page."""
        return above("veridyn.report.notebook", "plot_states")(self, *names)

    def to_frame(self) -> Any:
        """A pandas data frame over time: for each state a column with its name, and one ``name.sigma``."""
        return above("veridyn.report.notebook", "frame_of_states")(self)

    def summary(self) -> str:
        """States at the end, what became of the sensors, and the verdict on the innovations."""
        lines = [f"{self.filter} on {self.system.name}: {len(self)} samples, {self.t[0]:.6g} s to {self.t[-1]:.6g} s"]
        wide = max(24, 2 + max(map(len, self.states), default=0))
        for name, value, sigma in zip(self.states, self.reduced[-1], self.sigma[-1]):
            lines.append(f"  {name:<{wide}}{value:14.6g} ± {sigma:.3g}")
        if self.estimates.dof.sum():
            lines.append("  " + self.nis().summary())
        lines += [f"  innovations of '{name}' {w.summary()}" for name, w in self.whiteness().items()]
        lines += [f"  {line}" for line in self.consistency_lines()]
        lines += [f"  {e}" for e in self.episodes()]
        lines += [f"  {line}" for line in self.bounded()]
        lines += [
            f"  parameter '{name}' drifts, and this log does not determine it: it keeps its value, and its uncertainty enters the bands"
            for name in getattr(self.system, "frozen", ())
        ]
        if self.tuning is not None:
            lines.append(f"  noise chosen on this log: {self.tuning.summary()}")
        if (error := getattr(self, "model_error", None)) is not None:
            lines += [f"  {line}" for line in error.lines()]
        return "\n".join(lines)
