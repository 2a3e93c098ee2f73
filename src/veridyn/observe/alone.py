"""What the encoders say by themselves: each coordinate followed from its own readings, by a filter that knows no machine.

    x⃛ = w,  E[w(t) w(s)] = density δ(t − s),    y = x + v          the density (unit²/s⁵) under which the readings are most likely

The density is that of an acceleration which walks as the coordinate's own does: an unknown force whose walk makes as much of it follows the
readings whatever the model says. A search for less noise begins there, and not where a model that is wrong has lost track already. And it
is a measure: a filter with a model must predict the readings better than one without.

A reading beyond the gate counts little, as in the filters, and costs as much as one on the gate: outliers say nothing about the motion. A
filter that has lost track pays that price at every reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.mechanics.compiled import kept
from veridyn.observe.filters.robust_gate import FALSE_ALARMS
from veridyn.observe.filters.update import LOG_2PI, threshold
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import USED, Measurements
from veridyn.observe.result import Estimates

DECADES = np.arange(
    -12.0, 4.0
)  # of the density, times Δt⁵ over the variance of a reading: from a straight line to noise alone
SETTLING = 10  # readings that tell where a coordinate begins, and are not counted
ROBUST_PASSES = 20  # of a fit to the first readings
WIDE = 1e6  # times the variance of what single readings say of a rate and of an acceleration: that at the start
TWICE_THE_VARIANCE = float(np.log(2.0))  # of −2 log p: predictions with as much cost so much
GATE = threshold(1.0 - FALSE_ALARMS)


def reading_cost(squares: Array) -> Array:
    """What normalised squares of innovations z² cost, twice: z² up to the gate γ, and γ beyond."""
    return np.minimum(squares, GATE)


@kept
def follow(t: Array, y: Array, r: Array, density: float, gate: float, squares: Array, variances: Array) -> None:
    """Innovations squared over their variances, and these, (N,) each, of readings y with variances r of a coordinate whose acceleration
    walks."""
    step = t[1] - t[0]
    x, v, a = y[0], 0.0, 0.0
    xx, xv, xa, vv, va, aa = r[0], 0.0, 0.0, WIDE * r[0] / step**2, 0.0, WIDE * r[0] / step**4
    squares[0], variances[0] = 0.0, r[0]
    for k in range(1, len(t)):
        h = t[k] - t[k - 1]
        half = 0.5 * h * h
        x, v = x + h * v + half * a, v + h * a
        tx, tv = xx + h * xv + half * xa, xv + h * vv + half * va  # F P, row by row
        ta, sv, sa = xa + h * va + half * aa, vv + h * va, va + h * aa
        xx = tx + h * tv + half * ta + density * h**5 / 20.0
        xv, xa = tv + h * ta + density * h**4 / 8.0, ta + density * h**3 / 6.0
        vv, va, aa = sv + h * sa + density * h**3 / 3.0, sa + density * h * h / 2.0, aa + density * h
        nu, s = y[k] - x, xx + r[k]
        squares[k], variances[k] = nu * nu / s, s
        wide = max(s, nu * nu / gate)
        gx, gv, ga = xx / wide, xv / wide, xa / wide
        x, v, a = x + gx * nu, v + gv * nu, a + ga * nu
        vv, va, aa = vv - gv * xv, va - gv * xa, aa - ga * xa
        xa, xv, xx = xa - gx * xa, xv - gx * xv, xx - gx * xx


@dataclass(frozen=True, eq=False)
class AloneCoordinate:
    """The coordinate at `place` of the independent ones by its output `column`: the most likely `density`, and what each of its readings
    (at `rows` of the log) costs, −2 log p. `begins` (2, 2): its rate and acceleration at the first reading, and their deviations."""

    place: int
    column: int
    density: float
    rows: NDArray[np.intp]
    costs: Array
    begins: Array


def coordinates_alone(system: MachineSystem, readings: Measurements) -> tuple[AloneCoordinate, ...]:
    """The independent coordinates that have a sensor of their own with enough readings; `readings` are those of the system's outputs."""
    table, names, found = system.table, system.model.names, dict[int, AloneCoordinate]()
    for j in np.argsort(table.variances).tolist():
        sensor = table.sensors[table.owner[j]]
        if sensor.kind != "coordinate" or sensor.on not in names or names.index(sensor.on) in found:
            continue
        rows = np.flatnonzero(readings.flags[:, j] == USED)
        if len(rows) <= 2 * SETTLING:
            continue
        t, y, own = readings.t[rows], readings.values[rows, j], np.full(len(rows), np.nan)
        if readings.sigma is not None:
            own = readings.sigma[rows, j] ** 2
        r = np.where(np.isnan(own), table.variances[j], own)
        y = np.unwrap(y) if system.wraps[j] else y
        density, costs = _most_likely(t, y, r)
        place = names.index(sensor.on)
        found[place] = AloneCoordinate(
            place, j, density, rows[SETTLING:], costs[SETTLING:], _beginning(t, y, float(np.median(r)))
        )
    return tuple(found[k] for k in sorted(found))


def _most_likely(t: Array, y: Array, r: Array) -> tuple[float, Array]:
    unit = float(np.median(r)) / float(np.median(np.diff(t))) ** 5
    best, density, costs = np.inf, unit, np.zeros(len(t))
    squares, variances = np.empty(len(t)), np.empty(len(t))
    for one in unit * 10.0**DECADES:
        follow(t, y, r, float(one), GATE, squares, variances)
        each = reading_cost(squares) + np.log(variances) + LOG_2PI
        if (total := float(each[SETTLING:].sum())) < best:
            best, density, costs = total, float(one), each
    return density, costs


def _beginning(t: Array, y: Array, r: float) -> Array:
    """Rate and acceleration at the first reading, and their deviations, from a parabola through the first readings."""
    s = t[: 2 * SETTLING] - t[0]
    A = np.column_stack([np.ones_like(s), s, 0.5 * s**2])
    weights, found = np.ones(len(s)), np.zeros(3)
    for _ in range(ROBUST_PASSES):  # towards least absolute deviations, where readings are outliers
        root = np.sqrt(weights)
        found, _, _, _ = np.linalg.lstsq(root[:, None] * A, root * y[: 2 * SETTLING], rcond=None)
        weights = 1.0 / np.maximum(1.0, np.abs(y[: 2 * SETTLING] - A @ found) / (2.0 * np.sqrt(r)))
    sigma = np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * r)
    return np.asarray([found[1:], sigma[1:]], dtype=np.float64)


def reading_costs(alone: AloneCoordinate, run: Estimates) -> Array:
    """What the same readings cost in a run with a model, −2 log p; NaN where it had none."""
    nu, s = run.innovations[alone.rows, alone.column], run.innovation_variances[alone.rows, alone.column]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(reading_cost(nu**2 / s) + np.log(s) + LOG_2PI, dtype=np.float64)


@dataclass(frozen=True)
class LostTrack:
    """The readings of `output` are predicted worse with the model than without any, from `since` (s) on: by `excess` of −2 log p each."""

    output: str
    since: float
    excess: float

    def __str__(self) -> str:
        return (
            f"the model does not explain the motion from {self.since:.6g} s on: the readings of '{self.output}' are predicted worse than "
            f"by themselves, without any model (by {self.excess:.3g} of −2 log p each). Look at what acts on the machine, at its "
            "parameters and at where it starts, or give a process noise."
        )


def lost_tracks(alone: Sequence[AloneCoordinate], run: Estimates) -> tuple[LostTrack, ...]:
    """The coordinates that a run predicts with more than twice the variance of what their readings say by themselves, the worst first."""
    found = []
    for one in alone:
        more = reading_costs(one, run) - one.costs
        there = np.isfinite(more)
        if not there.any() or (excess := float(more[there].mean())) <= TWICE_THE_VARIANCE:
            continue
        total = np.cumsum(np.where(there, more, 0.0) - excess)
        since = float(run.t[one.rows[int(np.argmin(total))]])
        found.append(LostTrack(run.outputs[one.column], since, excess))
    return tuple(sorted(found, key=lambda one: -one.excess))
