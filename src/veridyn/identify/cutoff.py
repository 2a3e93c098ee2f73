"""Which cut-off? Errors of the fit over the cut-off, on data seen and not seen, and the one that the data ask for.

A low cut-off takes motion away with the noise, a high one leaves noise in the accelerations. Errors of filtered forces fall with the
cut-off whatever it takes away, so they cannot decide. What decides is the error against the *unfiltered* measured forces on data
that the fit has not seen: the same samples are predicted at every cut-off, the noise of the force sensors weighs on all alike, and
what differs is motion lost on one side and noise let in on the other. Every row counts alike, whatever force it carries: its mean square
error is divided by the least that any cut-off reaches. The least error is flat, and it is uncertain: the difference of a cut-off from the
best one, taken over short spans of the held-out data, has a standard error. The proposal is the widest band whose error is within one
standard error of the least, because lost motion biases parameters where a little more noise does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from veridyn.arguments import as_array
from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.identify.estimator import WLS, fit_of
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.observation import observation
from veridyn.identify.regression.sampling import Sampling, with_dead_zones
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import predicted
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

R = TypeVar("R")

BLOCKS = 10  # of equal length, into which each motion is cut
HELD_OUT = (2, 5, 8)  # of them are held out, the others fitted: both shares then hold all kinds of motion there are
SPANS = 10  # into which a held-out block is cut, to see how much errors vary
CUTOFF_RANGE_HZ = (1.0, 50.0)  # Hz, cut-offs tried unless others are given, and never above a tenth of the rate
CUTOFFS_TRIED = 9
# Samples a second for each Hz of the widest band: fewer of a log are tried where it has more (chosen)
RATE_OF_TRIALS = 10.0
ROUNDING = 1e-6  # of a rate
EXACT_SHARE = 1e-9  # of the squared force: a smaller squared error is rounding


@dataclass(frozen=True)
class CutoffTrial:
    """Errors in percent at one cut-off (Hz): of the filtered forces that were fitted, and of held-out forces as measured.

    `excess_percent`: how far the held-out error of the rows, each over the least that any cut-off reaches, lies above that least;
    `noise_percent`: the standard error of its difference from that of the best cut-off.
    """

    cutoff: float
    training_percent: float
    unfiltered_percent: float
    excess_percent: float
    noise_percent: float


@dataclass(frozen=True)
class Cutoff:
    """The trials in order of their cut-offs, and the `proposed` one."""

    trials: tuple[CutoffTrial, ...]

    @property
    def best(self) -> CutoffTrial:
        """The trial with the least error on held-out data."""
        return min(self.trials, key=lambda t: t.excess_percent)

    @property
    def proposed(self) -> float:
        """The largest cut-off whose held-out error is within one standard error of the least."""
        return max(t.cutoff for t in self.trials if self.as_good_as_best(t))

    def as_good_as_best(self, trial: CutoffTrial) -> bool:
        """Whether chance explains that a trial does worse than the best one."""
        return trial.excess_percent - self.best.excess_percent <= trial.noise_percent

    def reason(self, trial: CutoffTrial) -> str:
        """Why a trial is proposed or not, in a few words."""
        if trial.cutoff == self.proposed:
            return "proposed: least error" if trial == self.best else "proposed: widest within the noise of the least"
        if trial == self.best:
            return "least error"
        if self.as_good_as_best(trial):
            return "within the noise of the least"
        return "loses motion" if trial.cutoff < self.best.cutoff else "lets noise in"

    def table(self) -> str:
        """The trials as CSV."""
        lines = ["cutoff_hz,training_percent,unfiltered_percent,excess_percent,noise_percent,reason"]
        lines += [
            f"{t.cutoff!r},{t.training_percent!r},{t.unfiltered_percent!r},{t.excess_percent!r},{t.noise_percent!r},{self.reason(t)}"
            for t in self.trials
        ]
        return "\n".join(lines) + "\n"

    def summary(self) -> str:
        """A table of the trials, each with the reason why it is proposed or not."""
        lines = [f"{'cut-off, Hz':>12}{'fitted %':>10}{'held out %':>12}{'above least %':>15}{'± %':>8}"]
        lines += [
            f"{t.cutoff:12.4g}{t.training_percent:10.3f}{t.unfiltered_percent:12.3f}{t.excess_percent:15.2f}"
            f"{t.noise_percent:8.2f}  {self.reason(t)}"
            for t in self.trials
        ]
        return "\n".join(lines)


def candidates(rate: float, given: Sequence[float] = ()) -> tuple[float, ...]:
    """Cut-offs to try: those given, or nine from 1 Hz to a tenth of the rate, evenly on a logarithmic scale."""
    if given:
        return tuple(sorted(given))
    high = min(CUTOFF_RANGE_HZ[1], 0.1 * rate)
    low = min(CUTOFF_RANGE_HZ[0], high / 8.0)
    return tuple(float(f"{f:.2g}") for f in np.geomspace(low, high, CUTOFFS_TRIED))


def _returned(made: Callable[[float], R], cutoff: float, name: str) -> R:
    """What a caller's function gives for a cut-off; refused where it gives nothing."""
    found = made(cutoff)
    if found is None:
        raise DataError("it returns nothing.", where=f"propose_cutoff, {name}", found=f"None at {cutoff:g} Hz")
    return found


@takes_machine
def propose_cutoff(
    machine: Machine,
    motions: Callable[[float], Sequence[Motion]],
    sampling: Callable[[float], Sampling],
    tried: Sequence[float],
    rows: Rows = "all",
    progress: Progress = silent,
) -> Cutoff:
    """Choose the cut-off of a low-pass filter: fit seven of ten blocks of each motion at every cut-off and compare errors on the others.

    Parameters
    ----------
    machine : Machine
    motions : callable
        The motions, filtered at a cut-off (Hz); they are filtered whole, so that no filter starts or ends at a block.
    sampling : callable
        The :class:`~veridyn.estimators.Sampling` at a cut-off (Hz).
    tried : sequence of float
        Cut-offs in Hz, in rising order; :func:`candidates` gives nine.
    rows : str or sequence of str
        The rows that are fitted, "all" by default.
    progress : callable, optional
        Called with a text, the work done and the whole work.

    Returns
    -------
    Cutoff
        Errors at each cut-off, and the `proposed` one.
    """
    names = [machine.rows[r] for r in machine.select_rows(rows)]
    spans: list[tuple[float, float]] | None = None
    training: list[float] = []
    errors: list[tuple[Array, Array, Array]] = []
    first, step = 0, None
    cutoffs = as_array(tried, "propose_cutoff, tried", (None,)).tolist()
    for k, cutoff in enumerate(cutoffs):
        progress("trying cut-offs", float(k), float(len(cutoffs)))
        every = _returned(motions, cutoff, "motions")
        if spans is None or len(spans) < len(every):  # the lowest cut-offs may leave nothing of a short piece
            spans, training, errors, first = [(float(m.t[0]), float(m.t[-1])) for m in every], [], [], k
        how = with_dead_zones(_returned(sampling, cutoff, "sampling"), machine, every, names)
        step = _step(every, how, max(cutoffs)) if step is None else step
        every, how = _thinned(every, how, step)
        # By time, because a wide filter loses less at the ends of a log: held-out samples are the same at every cut-off.
        number = [(SPANS * BLOCKS * (m.t - a) / (b - a)).astype(int) for m, (a, b) in zip(every, spans, strict=True)]
        held_out = np.isin(np.concatenate(number) // SPANS, HELD_OUT)
        seen = replace(how, drop={row: held_out | how.dropped(row, len(held_out)) for row in names})
        fit = fit_of(
            machine,
            solve(observation(machine, every, rows, IdentifySettings(sampling=seen), passes=len(tried))),
            WLS.title,
        )
        training.append(100.0 * fit.relative_error)
        errors.append(_squares(fit, every, number, how, names))
    progress("trying cut-offs", float(len(tried)), float(len(tried)))
    if not errors:
        raise DataError("there is no cut-off to try.", where="signals.candidates")
    return _compared(tried[first:], training, errors)


def _rate(motion: Motion) -> float:
    """Samples a second; none of a single sample."""
    return (len(motion) - 1) / float(motion.t[-1] - motion.t[0]) if len(motion) > 1 else 0.0


def _step(motions: Sequence[Motion], how: Sampling, widest: float) -> int:
    """Samples from one that is tried to the next: what decimation allows and leaves `RATE_OF_TRIALS` times the `widest` cut-off."""
    rate = min(_rate(m) for m in motions)
    most = rate * (1.0 + ROUNDING) / (RATE_OF_TRIALS * widest)
    return max((k for k in range(2, how.decimate + 1) if how.decimate % k == 0 and k <= most), default=1)


def _thinned(motions: Sequence[Motion], how: Sampling, step: int) -> tuple[Sequence[Motion], Sampling]:
    """Every `step`-th sample of motions, the same ones whenever a motion begins, and the sampling that makes equations of them."""
    if step == 1:
        return motions, how
    ends = np.cumsum([len(m) for m in motions])
    taken = [slice(-round(float(m.t[0]) * _rate(m)) % step, None, step) if len(m) > 1 else slice(None) for m in motions]
    drop = {
        row: np.concatenate(
            [part[own] for part, own in zip(np.split(how.dropped(row, int(ends[-1])), ends[:-1]), taken, strict=True)]
        )
        for row in how.drop
    }
    fewer = replace(how, decimate=how.decimate // step, trim=-(-how.trim // step), drop=drop)
    return [m[own] for m, own in zip(motions, taken, strict=True)], fewer


def _squares(
    fit: Fit, motions: Sequence[Motion], number: Sequence[NDArray[np.intp]], how: Sampling, names: Sequence[str]
) -> tuple[Array, Array, Array]:
    """Σ r², Σ y² and the count of samples of each held-out span and row, (spans, rows), of forces as they were measured."""
    found: list[list[tuple[Array, Array, Array]]] = []
    before = 0
    for m, span in zip(motions, number, strict=True):
        held = np.isin(span // SPANS, HELD_OUT)
        _, y, model = predicted(fit, m[held], names, how)
        numbers = np.flatnonzero(held)
        used = np.column_stack(
            [how.uses(fit.described, row, m.qd[held], numbers, len(m), before) for row in names]
        ) & np.isfinite(y - model)
        r, y = np.where(used, y - model, 0.0), np.where(used, y, 0.0)
        each = [span[held] == s for s in np.unique(span[held])]
        found.append([((r[s] ** 2).sum(axis=0), (y[s] ** 2).sum(axis=0), used[s].sum(axis=0)) for s in each])
        before += len(m)
    several = [part for parts in found for part in parts]
    return tuple(np.array([part[k] for part in several], dtype=np.float64) for k in range(3))  # pyright: ignore[reportReturnType]


def _compared(
    tried: Sequence[float], training: Sequence[float], errors: Sequence[tuple[Array, Array, Array]]
) -> Cutoff:
    """The trials beside the best one: every row over the least mean square that a cut-off reaches in it."""
    mean = np.array([e.sum(axis=0) / np.maximum(n.sum(axis=0), 1.0) for e, _, n in errors])  # (cut-offs, rows)
    size = np.array([y.sum(axis=0) / np.maximum(n.sum(axis=0), 1.0) for _, y, n in errors]).max(axis=0)
    least = np.maximum(mean.min(axis=0), EXACT_SHARE * size)
    carrying = least > 0.0  # a row that measures nothing and leaves nothing over says nothing
    worth = np.where(carrying, 1.0 / np.where(carrying, least, 1.0), 0.0) / max(int(carrying.sum()), 1)
    ratio = np.sqrt(np.maximum(mean @ worth, 1.0))
    best = int(np.argmin(ratio))
    trials = []
    for k, cutoff in enumerate(tried):
        e, y, n = errors[k]
        apart = _weighted(e, n, worth) - _weighted(errors[best][0], errors[best][2], worth)
        # √a − √b = (a − b)/(√a + √b), and the sum is far better known than the difference.
        noise = apart.std(ddof=1) / np.sqrt(len(apart)) / (ratio[k] + ratio[best]) if len(apart) > 1 else 0.0
        whole = np.sqrt(e.sum() / y.sum()) if y.sum() > 0.0 else np.nan
        trials.append(
            CutoffTrial(
                float(cutoff), training[k], float(100.0 * whole), float(100.0 * (ratio[k] - 1.0)), float(100.0 * noise)
            )
        )
    return Cutoff(tuple(trials))


def _weighted(squares: Array, count: Array, worth: Array) -> Array:
    """Of each span the mean square errors of its rows, weighted; rows that no sample of a span enters are left out of it."""
    return (squares / np.maximum(count, 1.0)) @ worth
