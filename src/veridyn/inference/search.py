"""One damped search, for every problem that hands it a cost and a local model: steps of Gauss and Newton, shorter where they do not help.

    x ← x + d,   (H + λ diag H) d = −g,        λ larger until the cost falls, and smaller again behind that (Marquardt, 1963)

A problem is a :class:`SearchPoint`: unknowns with their cost, the same problem elsewhere, and a :class:`LocalModel` around it
(:class:`~veridyn.inference.quadratic.Quadratic`, or one that eliminates unknowns of its own before it takes a step). Costs are sums of
squares in deviations, priors included, or −2 log p. Where weights follow from residuals, `renewed` gives the point those that it asks for.

A search ends for a reason: a step without damping would be short; the cost hardly falls any more; or the minimum is a kink, as dry friction
makes where it just stops a joint, or just does not: no step reduces the cost, although the local model of one of its sides would go on. A
search that ends for none of these is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Literal, Protocol, Self, TypeVar

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.progress import Progress, silent

EndReason = Literal["short step", "small decrease", "kink", "number of steps"]


class LocalModel(Protocol):
    """The cost near a point, as far as a search needs it."""

    def step(self, damping: float = 0.0) -> Array:
        """Towards its minimum, shorter with `damping`; bounds are kept."""
        ...

    def length(self, d: Array) -> float:
        """Of a step, in deviations of all unknowns together."""
        ...

    def remaining(self) -> float:
        """The length of the undamped step."""
        ...

    def shortest(self, tolerance: float) -> float:
        """The length of a step that is none."""
        ...


class SearchPoint(Protocol):
    """A problem at some of its unknowns."""

    @property
    def x(self) -> Array: ...

    @property
    def cost(self) -> float: ...

    @property
    def settled(self) -> bool:
        """Whether costs here can be compared with those before: its weights no longer change."""
        ...

    def at(self, x: Array) -> Self | None:
        """The same problem at other unknowns; None where these are not allowed, or cannot be simulated."""
        ...

    def renewed(self) -> Self:
        """The same unknowns, with the weights that their residuals ask for; itself where weights are given."""
        ...

    def model(self) -> LocalModel: ...


P = TypeVar("P", bound=SearchPoint)


@dataclass(frozen=True, kw_only=True)
class Damping:
    """λ at the start, `least` and `most`; what it is multiplied by where a step does not help, `first` being the least above zero, and
    divided by where one does. `patient`: only where the first trial of an iteration does."""

    start: float = 0.0
    least: float = 0.0
    first: float = 1e-3
    most: float = 1e8
    up: float = 10.0
    down: float = 10.0
    patient: bool = True

    def raised(self, level: float) -> float:
        return max(self.up * level, self.first)

    def lowered(self, level: float) -> float:
        if self.least > 0.0:
            return max(level / self.down, self.least)
        return 0.0 if level <= self.first else level / self.down


@dataclass(frozen=True, kw_only=True)
class StopRules:
    """When a search ends; lengths of steps are those of the local model, in deviations of all unknowns together.

    `iterations`: more are an error. `steps`: it ends after so many, wherever it is. `trials`: steps tried in all iterations. `tolerance`:
    an undamped step as short is none. `slack`: relative, by which a cost may grow through rounding.

    `decrease`, `decrease_share`: a fall of the cost by less is small, absolute and relative. The search then ends within `near` of the
    minimum of its local model, or behind a step within `near_step`, or after `patience` such falls in a row.

    `kink`: where no step reduces the cost, the longest undamped step of a minimum that is a kink. `kink_trial`: of the tolerance, below
    which steps are not tried for that.
    """

    iterations: int
    steps: int | None = None
    trials: int | None = None
    tolerance: float = 0.0
    slack: float = 0.0
    decrease: float = 0.0
    decrease_share: float = 0.0
    near: float = 0.0
    near_step: float = 0.0
    patience: int | None = None
    kink: float = 0.0
    kink_trial: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Minimum(Generic[P]):
    """Where a search ended and why. `model`: the last that was made, of the point or of the one before a small decrease.

    `beyond`: the length of the step that the local model would go on by, where a kink ends the search.
    """

    point: P
    model: LocalModel
    reason: EndReason
    beyond: float = 0.0
    iterations: int = 0

    @property
    def converged(self) -> bool:
        """Whether it ended by itself, not by the number of steps asked for."""
        return self.reason != "number of steps"


def search(
    start: P,
    stop: StopRules,
    damping: Damping,
    *,
    where: str,
    hint: str,
    left: Callable[[P], str] = lambda _: "",
    task: str = "search",
    progress: Progress = silent,
) -> Minimum[P]:
    """The minimum near a start; an :class:`IdentificationError` where it is not found.

    The error names `where`, the length of the step that is left with what `left` says of the last point, and `hint`, what to try.
    """
    point, level, next_step, small, trials, done = start, damping.start, np.inf, 0, 0, 0
    while done < stop.iterations and (stop.trials is None or trials < stop.trials):
        progress(task, float(done), float(stop.iterations))
        done += 1
        point = point.renewed()
        model = point.model()
        end = partial(Minimum[P], model=model, iterations=done)
        length, shortest = model.remaining(), model.shortest(stop.tolerance)
        next_step = length * (stop.tolerance / shortest if stop.tolerance > 0.0 else 1.0)
        if length <= shortest:
            return end(point=point, reason="short step")
        longest_kink = stop.kink if point.settled else 0.0
        new, level, tried = _trial(
            point,
            model,
            level,
            damping,
            slack=stop.slack,
            shortest=stop.kink_trial * shortest if longest_kink else 0.0,
            tell=lambda k, done=done: progress(task, done - 0.5**k, float(stop.iterations)),
        )
        trials += tried
        if new is None:
            if length <= longest_kink:
                return end(point=point, reason="kink", beyond=length)
            what = "the search ended where no step reduces its residual."
            raise _failure(what, where, next_step, stop.tolerance, left(point), hint)
        gain, before, point = point.cost - new.cost, point, new
        small = small + 1 if before.settled and gain < max(stop.decrease, stop.decrease_share * before.cost) else 0
        if small and (length <= stop.near or model.length(point.x - before.x) <= stop.near_step):
            return end(point=point, reason="small decrease")
        if small and small == stop.patience:
            kink = length <= longest_kink
            return end(point=point, reason="kink" if kink else "small decrease", beyond=length if kink else 0.0)
        if done == stop.steps:
            return end(point=point, reason="number of steps")
        if tried == 1 or not damping.patient:  # where longer steps have just failed they would fail again
            level = damping.lowered(level)
    what = f"the search did not converge in {done} iterations with {trials} trial steps."
    raise _failure(what, where, next_step, stop.tolerance, left(point), f"Allow more iterations. {hint}")


def _trial(
    point: P,
    model: LocalModel,
    level: float,
    damping: Damping,
    *,
    slack: float,
    shortest: float,
    tell: Callable[[int], None],
) -> tuple[P | None, float, int]:
    """The first point behind a damped step whose cost is lower, its damping, and how many were tried; None where there is none."""
    tried = 0
    while level <= damping.most:
        d = model.step(level)
        if shortest and model.length(d) < shortest:
            break
        tried += 1
        tell(tried)
        new = point.at(point.x + d)
        if new is not None and new.cost < point.cost * (1.0 + slack):
            return new, level, tried
        level = damping.raised(level)
    return None, level, tried


def search_from_each(starts: Sequence[P], stop: StopRules, damping: Damping, *, where: str, hint: str) -> Minimum[P]:
    """The least of the minima near several starts; an error where none of them leads to one."""
    minima, failures = list[Minimum[P]](), list[IdentificationError]()
    for start in starts:
        try:
            minima.append(search(start, stop, damping, where=where, hint=hint))
        except IdentificationError as error:
            failures.append(error)
    if not minima:
        raise failures[0]
    return min(minima, key=lambda one: one.point.cost)


def _failure(what: str, where: str, step: float, tolerance: float, left: str, hint: str) -> IdentificationError:
    found = f"a next step of {step:.3g}" + (f", {left}" if left else "")
    return IdentificationError(
        what, where=where, expected=f"a step below {tolerance:g} standard deviations", found=found, hint=hint
    )
