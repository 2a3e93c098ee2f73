"""States with deviations along a log, whatever machine they are of: what every observation has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.lazy import above
from veridyn.observe.consistency import Consistency, innovation_whiteness, nis
from veridyn.observe.health import Episode, episodes
from veridyn.observe.result import Estimates
from veridyn.observe.smoother import Smoothed
from veridyn.observe.stability import ClosedLoop, closed_loop
from veridyn.observe.tuning import Tuning
from veridyn.signals.whiteness import Whiteness

Array = NDArray[np.float64]


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
            raise DataError(Fault(f"there is no state '{name}'.", self.filter, hint=did_you_mean(name, self.states)))
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
        return above("veridyn.report.frames", "frame_of_states")(self)

    def summary(self) -> str:
        """States at the end, what became of the sensors, and the verdict on the innovations."""
        lines = [f"{self.filter} on {self.system.name}: {len(self)} samples, {self.t[0]:.6g} s to {self.t[-1]:.6g} s"]
        wide = max(24, 2 + max(map(len, self.states), default=0))
        for name, value, sigma in zip(self.states, self.reduced[-1], self.sigma[-1]):
            lines.append(f"  {name:<{wide}}{value:14.6g} ± {sigma:.3g}")
        if self.estimates.dof.sum():
            lines.append("  " + self.nis().summary())
        lines += [f"  innovations of '{name}' {w.summary()}" for name, w in self.whiteness().items()]
        lines += [f"  {e}" for e in self.episodes()]
        lines += [f"  {line}" for line in self.bounded()]
        if self.tuning is not None:
            lines.append(f"  noise chosen on this log: {self.tuning.summary()}")
        return "\n".join(lines)
