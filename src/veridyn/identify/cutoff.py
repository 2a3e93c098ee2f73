"""Which cut-off? Errors of the fit over the cut-off, on data seen and not seen, and the one that the data ask for.

A low cut-off takes motion away with the noise, a high one leaves noise in the accelerations. Errors of filtered forces fall with the
cut-off whatever it takes away, so they cannot decide. What decides is the error against the *unfiltered* measured forces on data
that the fit has not seen: the same numbers are predicted at every cut-off, the noise of the force sensors weighs on all alike, and
what differs is motion lost on one side and noise let in on the other. Its least is flat; the proposal is the widest band within
5 % of it, because lost motion biases parameters where a little more noise does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.errors import DataError, Fault
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.estimators.weighted import WLS
from veridyn.identify.fitting import fit_of
from veridyn.identify.observation import observation
from veridyn.identify.sampling import Sampling
from veridyn.identify.validate import validation_of
from veridyn.mechanics.engine import MIN_COMPILED_SAMPLES
from veridyn.model.accept import accepts_machine
from veridyn.model.motion import Motion
from veridyn.model.tree import Rows, Tree
from veridyn.progress import Progress, silent

BLOCKS = 10  # of equal length, into which each motion is cut
HELD_OUT = (2, 5, 8)  # of them are held out, the others fitted: both shares then hold all kinds of motion there are
CUTOFF_RANGE_HZ = (1.0, 50.0)  # Hz, cut-offs tried unless others are given, and never above a tenth of the rate
CUTOFFS_TRIED = 9
PASSES = 3  # over the samples at each cut-off: fitted, held out, and held out without the filter
EQUAL_ERROR_RATIO = 1.05  # times the least error is as good as the least (chosen)


@dataclass(frozen=True)
class CutoffTrial:
    """Errors in percent at one cut-off (Hz): on filtered forces that were fitted and held out, and on held-out forces as measured."""

    cutoff: float
    training_percent: float
    held_out_percent: float
    unfiltered_percent: float


@dataclass(frozen=True)
class Cutoff:
    """The trials in order of their cut-offs, and the `proposed` one."""

    trials: tuple[CutoffTrial, ...]

    @property
    def proposed(self) -> float:
        least = min(t.unfiltered_percent for t in self.trials)
        return max(t.cutoff for t in self.trials if t.unfiltered_percent <= EQUAL_ERROR_RATIO * least)

    @property
    def at_edge(self) -> bool:
        """Whether the least error lies at the first or last cut-off tried, so that a better one may lie beyond."""
        return self.proposed in (self.trials[0].cutoff, self.trials[-1].cutoff)

    def table(self) -> str:
        """The trials as CSV."""
        lines = ["cutoff_hz,training_percent,held_out_percent,unfiltered_percent"]
        lines += [
            f"{t.cutoff!r},{t.training_percent!r},{t.held_out_percent!r},{t.unfiltered_percent!r}" for t in self.trials
        ]
        return "\n".join(lines) + "\n"

    def summary(self) -> str:
        lines = [f"{'cut-off, Hz':>12}{'fitted %':>10}{'held out %':>12}{'unfiltered %':>14}"]
        lines += [
            f"{t.cutoff:12.4g}{t.training_percent:10.3f}{t.held_out_percent:12.3f}{t.unfiltered_percent:14.3f}"
            + ("  proposed" if t.cutoff == self.proposed else "")
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


@accepts_machine
def propose_cutoff(
    tree: Tree,
    motions: Callable[[float], Sequence[Motion]],
    sampling: Callable[[float], Sampling],
    tried: Sequence[float],
    rows: Rows = "all",
    progress: Progress = silent,
) -> Cutoff:
    """Choose the cut-off of a low-pass filter: fit seven of ten blocks of each motion at every cut-off and compare errors on the others.

    Parameters
    ----------
    tree : Tree or Machine
    motions : callable
        The motions, filtered at a cut-off (Hz); they are filtered whole, so that no filter starts or ends at a block.
    sampling : callable
        The :class:`~veridyn.identification.Sampling` at a cut-off (Hz).
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
    trials = []
    names = [tree.rows[r] for r in tree.select_rows(rows)]
    for k, cutoff in enumerate(tried):
        progress("trying cut-offs", float(k), float(len(tried)))
        how, every = sampling(cutoff), motions(cutoff)
        held_out = np.concatenate([np.isin(np.arange(len(m)) * BLOCKS // len(m), HELD_OUT) for m in every])
        seen = replace(how, drop={row: held_out | how.dropped(row, len(held_out)) for row in names})
        rest = replace(how, drop={row: ~held_out | how.dropped(row, len(held_out)) for row in names})
        plain = replace(rest, filter=None, filters={}, decimate=1)  # the same samples at every cut-off
        # Many passes over the same equations: a kernel pays for itself where a single pass would not compile one.
        engine = "compiled" if PASSES * len(tried) * len(held_out) >= MIN_COMPILED_SAMPLES else "auto"
        fit = fit_of(tree, solve(observation(tree, every, rows, seen, engine=engine)), WLS.title)
        held, raw = (
            validation_of(observation(tree, every, rows, other, engine=engine), fit.standard).relative_error
            for other in (rest, plain)
        )
        trials.append(CutoffTrial(float(cutoff), 100.0 * fit.relative_error, 100.0 * held, 100.0 * raw))
    progress("trying cut-offs", float(len(tried)), float(len(tried)))
    if not trials:
        raise DataError(Fault("there is no cut-off to try.", "signals.candidates"))
    return Cutoff(tuple(trials))
