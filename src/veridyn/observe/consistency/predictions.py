"""Does a filter know how far it is off where no reading holds it? Readings that it was not given, against what it predicts for them.

    z² = ν̄² / (h P hᵀ + π r/2n)        ν̄: median of n innovations in a row of an output that was muted;  ideal mean: 1

Innovations of readings that are used say little about a state that they hold: a position that is wrong by a quarter of a sensor's deviation
leaves NIS at 1.06, whatever the filter states for it. Two ways of looking say more. Over a horizon: every reading is muted for 1, 10 and
100 samples. Through a muted sensor: one sensor is muted for a window of the log while the others go on. Each window starts from what the
run knew before it, so that checks cost as many steps as their windows have samples, however long the log. Errors of a window hang together,
so that each counts as one sample.

They need not be asked where the innovations z = ν/√s are white: a filter whose innovations are as large as stated, and remember nothing,
predicts over any horizon as well as it states (T. Kailath, IEEE TAC 13, 1968, 646-655). Sums over b samples say so for all memories:

    B = mean of (Σ_b z)²/b = 1        for b = 1, 10, 100 and an eighth of the log; what it exceeds 1 by is the power that is not stated

Where an output's innovations do remember, its sensor is muted, and horizons are foreseen by the slopes of the run itself before any window
is run. With b_{k+h} = H_{k+h} and b_i = b_{i+1} F_{i+1}, what readings i between would have told is taken back:

    ν'_{k+h} = ν_{k+h} + Σ b_i K_i ν_i,        s'_{k+h} = s_{k+h} + Σ b_i (P⁻_i − P⁺_i) b_iᵀ        k < i < k + h
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri  # scipy.stats takes a second to import

from veridyn.arrays import Array
from veridyn.errors import VeridynError
from veridyn.mechanics.compiled import kept
from veridyn.observe.filters.filter import Filter, Passing
from veridyn.observe.filters.methods import extended
from veridyn.observe.filters.run import in_order, run, run_steps
from veridyn.observe.measurements import Measurements, Status
from veridyn.observe.result import Belief, Estimates
from veridyn.observe.system import System

HORIZONS = (1, 10, 100)  # samples without any reading
HORIZON_WINDOWS = 20  # at most, of a log, in which all sensors are muted
WINDOWS = 4  # of a log, in which one sensor is muted
LEAST_SAMPLES = 8 * HORIZONS[-1]  # of a log: with fewer there are too few windows
MUTED_SAMPLES = 4000  # at most, in windows of all sensors together, where each has as many as a horizon
AVERAGED_SHARE = (
    0.1  # of a window over which innovations of a muted sensor are averaged: its noise goes, the error stays
)
ADDED = (1, *HORIZONS[1:])  # samples over which innovations are added
UNSTATED_POWER = 2.0  # of B: half of what makes predictions a finding
CHANCE = 1e-3  # that a consistent filter exceeds B, so that its predictions are asked for nothing
MEDIAN_VARIANCE = np.pi / 2.0  # of a median of normal numbers, over that of their mean
MUTED = Status.WITHHELD


@dataclass(frozen=True, eq=False)
class FilterRun:
    """What a run of a filter was made of, so that it can be repeated without some readings."""

    method: Filter
    system: System
    readings: Measurements
    start: Belief

    def repeated(self) -> Estimates:
        """The run, once more."""
        return run(self.method, self.system, self.readings, self.start)

    def without(self, step: Passing, outputs: list[int], window: slice, before: Estimates) -> Estimates:
        """A window of the run with all readings of `outputs` compared and not used, from what the run `before` knew when it begins.

        Its first row is the sample before, whose readings are known already and whose inputs act. `step`: steps of its filter.
        """
        k = window.start - 1
        part = self.readings.between(k, window.stop)
        muted, known = np.zeros(part.values.shape, dtype=np.bool_), np.zeros(part.values.shape, dtype=np.bool_)
        muted[1:, outputs], known[0] = True, True
        part = part.flagged(muted, MUTED).flagged(known, Status.MISSING)
        step.forget()
        begin = Belief(before.x[k], before.P[k], float(before.t[k]))
        return run_steps(step, self.method, self.system, part, begin, goes_on=True)


@dataclass(frozen=True)
class PredictionCheck:
    """Readings that were not given to the filter: z² of an output on the average over `windows` windows.

    `muted`: the sensor, or "" where all were muted, for `samples` samples.
    """

    muted: str
    samples: int
    output: str
    z2: float
    windows: int

    def largest(self, false_alarms: float, shared: bool = False) -> float:
        """The z² that chance exceeds in this share of all checks; `shared`: one error of parameters makes one sample of all windows."""
        windows = 1 if shared else self.windows
        return float(chdtri(windows, false_alarms) / windows)


def prediction_checks(
    how: FilterRun, estimates: Estimates, sensors: dict[str, list[int]], remembering: Sequence[int] | None = None
) -> tuple[PredictionCheck, ...]:
    """Checks over horizons and through muted sensors; `sensors` gives the outputs of each by their places. None of a short log.

    `remembering`: outputs whose innovations give reason to ask (:func:`remembering_outputs`). Sensors of others are not muted, and horizons
    are not run where they are foreseen to be no finding.
    """
    if estimates.replayed or len(estimates) < LEAST_SAMPLES or (remembering is not None and not len(remembering)):
        return ()
    readings = in_order(how.method, how.readings.select(estimates.outputs))
    useless = np.isin(estimates.status, (Status.OUTLIER, Status.FROZEN))  # for comparison too
    readings = replace(readings, flags=np.where(useless, Status.MISSING, readings.flags).astype(np.int8))
    how = replace(how, method=extended(how.method), readings=readings)
    step = Passing(how.method, how.system)
    ahead = remembering is None or foreseen_over_horizons(estimates, remembering) > UNSTATED_POWER
    found = _over_horizons(how, step, estimates) if ahead else []
    count = len(estimates)
    each = max(HORIZONS[-1], MUTED_SAMPLES // (WINDOWS * max(len(sensors), 1)))
    size = min(count // (2 * WINDOWS), each)
    for name, outputs in sensors.items() if len(sensors) > 1 else ():
        if remembering is None or not set(outputs).isdisjoint(remembering):
            found += _without_sensor(how, step, estimates, name, outputs, size)
    return tuple(found)


def remembering_outputs(e: Estimates) -> tuple[int, ...]:
    """The outputs whose innovations, over some number of samples, have more power than the filter states: whose predictions may be farther
    off than stated."""
    found = []
    for j in range(len(e.outputs)):
        used = e.status[:, j] == Status.USED
        z = e.innovations[used, j] / np.sqrt(e.innovation_variances[used, j])
        for size in (*ADDED, len(z) // (2 * WINDOWS)):
            blocks = len(z) // size if size else 0
            if blocks < 2:
                continue
            power = float(np.mean(z[: blocks * size].reshape(blocks, size).sum(axis=1) ** 2) / size)
            if power > max(UNSTATED_POWER, float(chdtri(blocks, CHANCE)) / blocks):
                found.append(j)
                break
    return tuple(found)


@kept
def take_back(
    known: NDArray[np.int64],
    horizon: int,
    F: Array,
    K: Array,
    innovations: Array,
    P_predicted: Array,
    P: Array,
    b: Array,
    error: Array,
    variance: Array,
) -> None:
    """Errors and variances (windows, outputs) of predictions over a horizon from those of single steps; `b` (windows, outputs, n) is H."""
    windows, outputs, n = b.shape
    m, row = innovations.shape[1], np.empty(n)
    for w in range(windows):
        for j in range(outputs):
            for i in range(known[w] + horizon - 1, known[w], -1):
                row[:] = 0.0
                for a in range(n):
                    factor = b[w, j, a]
                    if factor != 0.0:
                        for c in range(n):
                            row[c] += factor * F[i + 1, a, c]
                for a in range(n):
                    b[w, j, a] = row[a]
                    if row[a] != 0.0:
                        for k in range(m):
                            if np.isfinite(innovations[i, k]):
                                error[w, j] += row[a] * K[i, a, k] * innovations[i, k]
                        for c in range(n):
                            variance[w, j] += row[a] * (P_predicted[i, a, c] - P[i, a, c]) * row[c]


def foreseen_over_horizons(e: Estimates, outputs: Sequence[int]) -> float:
    """The largest mean z² of one of these outputs over some horizon, by the slopes along the run."""
    known = np.array([window.start - 1 for window in _horizon_windows(len(e))], dtype=np.int64)
    worst, chosen = 0.0, list(outputs)
    for horizon in HORIZONS:
        at = known + horizon
        b, error, variance = (a[at][:, chosen] for a in (e.H, e.innovations, e.innovation_variances))
        take_back(known, horizon, e.F, e.K, e.innovations, e.P_predicted, e.P, b, error, variance)
        z2 = error**2 / variance
        there = np.isfinite(z2)
        if (counts := there.sum(axis=0)).any():
            worst = max(worst, float(np.max(np.where(there, z2, 0.0).sum(axis=0) / np.maximum(counts, 1))))
    return worst


def _spread(count: int, size: int, windows: int) -> list[slice]:
    """Windows of a log, evenly spread from after its beginning to its end."""
    begins = np.linspace(count, size, windows, endpoint=False).astype(int)[::-1] - size
    return [slice(int(k), int(k) + size) for k in begins if k > 0]


def _horizon_windows(count: int) -> list[slice]:
    longest = HORIZONS[-1]
    return _spread(count, longest, min(HORIZON_WINDOWS, count // (2 * longest)))


def _over_horizons(how: FilterRun, step: Passing, estimates: Estimates) -> list[PredictionCheck]:
    every = list(range(len(estimates.outputs)))
    windows = [
        e
        for window in _horizon_windows(len(estimates))
        if (e := _attempt(how, step, every, window, estimates)) is not None
    ]
    found = []
    for horizon in HORIZONS:
        for j, name in enumerate(estimates.outputs):
            z2 = np.array([w.innovations[horizon, j] ** 2 / w.innovation_variances[horizon, j] for w in windows])
            z2 = z2[np.isfinite(z2)]
            if len(z2) > 1:
                found.append(PredictionCheck("", horizon, name, float(z2.mean()), len(z2)))
    return found


def _without_sensor(
    how: FilterRun, step: Passing, estimates: Estimates, sensor: str, outputs: list[int], size: int
) -> list[PredictionCheck]:
    windows = [
        e
        for window in _spread(len(estimates), size, WINDOWS)
        if (e := _attempt(how, step, outputs, window, estimates)) is not None
    ]
    found = []
    for j in outputs:
        z2 = np.array([z for w in windows if np.isfinite(z := _averaged(w, j))])
        if len(z2) > 1:
            found.append(PredictionCheck(sensor, size, estimates.outputs[j], float(z2.mean()), len(z2)))
    return found


def _averaged(e: Estimates, j: int) -> float:
    """z² of the median innovation of output j at the end of a window."""
    there = np.flatnonzero(np.isfinite(e.innovations[:, j]))
    rows = there[-max(1, round(AVERAGED_SHARE * len(there))) :]
    if not len(rows):
        return float("nan")
    own = np.einsum("ki,kij,kj->k", e.H[rows, j], e.P_predicted[rows], e.H[rows, j])
    noise = np.maximum(e.innovation_variances[rows, j] - own, 0.0)
    spread = noise.mean() / len(rows) * (MEDIAN_VARIANCE if len(rows) > 2 else 1.0)
    return float(np.median(e.innovations[rows, j]) ** 2 / (own.mean() + spread))


def _attempt(how: FilterRun, step: Passing, outputs: list[int], window: slice, before: Estimates) -> Estimates | None:
    """A window, or None where the run does not reach its end: without a sensor a state may run away."""
    try:
        return how.without(step, outputs, window, before)
    except VeridynError:
        return None


def check_figures(checks: tuple[PredictionCheck, ...]) -> dict[str, float]:
    """The worst z² over each horizon and through muted sensors, as figures of a result."""
    found: dict[str, float] = {}
    for check in checks:
        name = "nis_muted" if check.muted else f"nis_horizon_{check.samples}"
        found[name] = max(found.get(name, 0.0), check.z2)
    return found


def check_lines(checks: tuple[PredictionCheck, ...]) -> tuple[str, ...]:
    """Lines for a summary: the worst output over each horizon, and of each muted sensor."""
    ahead = {h: max((c.z2 for c in checks if not c.muted and c.samples == h), default=None) for h in HORIZONS}
    found = [(h, z2) for h, z2 in ahead.items() if z2 is not None]
    lines = []
    if found:
        horizons, sizes = ", ".join(str(h) for h, _ in found), ", ".join(f"{z2:.3g}" for _, z2 in found)
        lines.append(f"predicted over {horizons} samples without readings: z^2 {sizes} of the worst output")
    for sensor in dict.fromkeys(c.muted for c in checks if c.muted):
        worst = max((c for c in checks if c.muted == sensor), key=lambda c: c.z2)
        lines.append(f"predicted over {worst.samples} samples without sensor '{sensor}': z^2 {worst.z2:.3g}")
    return tuple(lines)


def wrong_predictions(
    checks: tuple[PredictionCheck, ...], false_alarms: float, usable: float, considers: bool = False
) -> tuple[tuple[PredictionCheck, str], ...]:
    """What is farther off than the filter states, beyond chance and beyond what its bands survive, each with a sentence: the worst output
    of each sensor, and of the shortest horizon. `considers`: parameters are considered, whose one error all windows share."""
    each = false_alarms / max(len(checks), 1)
    wrong = [c for c in checks if c.z2 > max(c.largest(each, considers), usable)]
    found = []
    for sensor in dict.fromkeys(c.muted for c in wrong if c.muted):
        worst = max((c for c in wrong if c.muted == sensor), key=lambda c: c.z2)
        text = (
            f"predicted for {worst.samples} samples without sensor '{sensor}', '{worst.output}' is farther off than stated: mean squared "
            f"deviation {worst.z2:.3g}, and chance explains {worst.largest(each, considers):.3g}. Its bands are too narrow."
        )
        found.append((worst, text))
    ahead = [c for c in wrong if not c.muted]
    if ahead:
        near = min(ahead, key=lambda c: (c.samples, -c.z2))
        ahead_by = "1 sample" if near.samples == 1 else f"{near.samples} samples"
        text = (
            f"predicted for {ahead_by} without readings, '{near.output}' is farther off than stated: mean squared deviation {near.z2:.3g}, "
            f"and chance explains {near.largest(each, considers):.3g}."
        )
        found.append((near, text))
    return tuple(found)
