"""Is the integration's step short enough? What it leaves of the motion is a bias, and the filter's own gains say how much of it stays.

    b_k = (I − K H) (F b_{k−1} + e_k),    e_k: what half the step changes over the interval, times 4/3 for a rule of order 2

No covariance knows of it. In deviations, √(bᵀ P⁻¹ b/n), it never grows from step to step, because P_k exceeds what (I − K H) F makes of
P_{k−1}: where as many times the largest of the e_k as there are intervals is little, their sum is less. It is looked at where the mechanism
moves fastest. Where no step is given, the first choice follows from the machine's fastest oscillation; the bias along a log then says
whether it must be shorter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataWarning, Fault, warn
from veridyn.observe.filters.compiled_step import CompiledStep
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import MISSING
from veridyn.observe.result import Belief, Estimates

CHECKED_INTERVALS = 100  # intervals
BOUNDED_BY = 10  # of these, evenly spread, whose largest error bounds the bias
TOLERATED_BIAS_SIGMAS = 0.5  # deviations
LONGEST_STEP_S = 0.01  # s, where no step is given
MODE_SHARE = 0.05  # rad of the fastest oscillation in one step: the trapezoidal rule delays it by (ω h)²/12 = 2e-4
ROUNDED_VARIANCE = 1e-12  # of the largest, of states in their deviations: a smaller one is what rounding leaves of zero, of either sign
REFINEMENTS = 2  # times that a log is run again with a shorter step, where none is given


@dataclass(frozen=True)
class StepBias:
    """The largest bias that a step of `step` seconds makes, in deviations of the states (root mean square over them), and when."""

    deviations: float
    t: float
    step: float

    @property
    def better(self) -> float:
        """A step whose bias is a tenth of what is tolerated, to one digit."""
        wanted = self.step * np.sqrt(0.1 * TOLERATED_BIAS_SIGMAS / max(self.deviations, 1e-300))
        digit = 10.0 ** np.floor(np.log10(wanted))
        return float(np.floor(wanted / digit) * digit)


def mode_step(system: MachineSystem, q: Array, qd: Array) -> float:
    """A step (s) for a machine of which nothing else is known: 0.05 rad of its fastest oscillation at the start, at most 0.01 s.

    What decays without oscillation does not count, because the trapezoidal rule is stable there.
    """
    x = system.belief(q, qd).x
    f = system.f
    slopes = system.model.accelerated(system.instant(x, np.zeros(0)), system.set_of(x))[:, : 2 * f]
    if not np.isfinite(slopes).all():
        return LONGEST_STEP_S
    A = np.block([[np.zeros((f, f)), np.eye(f)], [slopes]])
    fastest = float(np.abs(np.linalg.eigvals(A).imag).max(initial=0.0))
    return LONGEST_STEP_S if fastest * LONGEST_STEP_S <= MODE_SHARE else MODE_SHARE / fastest


def bounded_step_bias(system: MachineSystem, estimates: Estimates, inputs: Array) -> StepBias:
    """A bound of :func:`step_bias` by the errors of a few intervals where that is tolerated; else the bias itself."""
    estimates.chained("the error of its steps")
    e, (first, count), step_of = estimates, _fastest(system, estimates), system.compiled_step(np.inf)
    largest, when, used = 0.0, float(e.t[0]), 0.0
    for k in np.unique(np.linspace(first, first + count - 1, BOUNDED_BY).astype(int)).tolist():
        left, step = _left(system, step_of, e, inputs, k)
        size = in_deviations(left, e.P_predicted[k])
        if size >= largest:
            largest, when = size, float(e.t[k])
        used = max(used, step)
    found = StepBias(count * largest, when, used)
    return found if found.deviations <= TOLERATED_BIAS_SIGMAS else step_bias(system, estimates, inputs)


def _fastest(system: MachineSystem, e: Estimates) -> tuple[int, int]:
    """The first interval of those where the coordinates move fastest, and how many there are."""
    speed = (np.abs(system.split(e.x)[1]) / system.model.sizes).max(axis=1)
    count = min(CHECKED_INTERVALS, len(e) - 1)
    return 1 + int(np.clip(np.argmax(speed) - count // 2, 0, len(e) - 1 - count)), count


def _left(system: MachineSystem, step: CompiledStep | None, e: Estimates, inputs: Array, k: int) -> tuple[Array, float]:
    """What the steps of the interval before sample k leave of the motion, as a change of the state there, and their length (s)."""
    dt = float(e.t[k] - e.t[k - 1])
    if dt <= 0.0:
        return np.zeros(len(e.states)), 0.0
    begin, count = Belief(e.x[k - 1], e.P[k - 1], 0.0), system.count(dt)
    end, finer = (_moved(system, step, begin, inputs[k - 1], dt, parts) for parts in (count, 2 * count))
    return system.between(end, e.x[k]) @ (4.0 / 3.0 * system.subtract(finer, end)), dt / count


def _moved(
    system: MachineSystem, step: CompiledStep | None, begin: Belief, inputs: Array, dt: float, parts: int
) -> Array:
    """The state after `dt` seconds in so many equal parts, by machine code where there is some for many steps."""
    x, part = begin.x, dt / parts
    if step is not None:
        none = np.full((parts, len(system.outputs)), np.nan)
        times = np.asarray(part * np.arange(1, parts + 1), dtype=np.float64)
        acting = np.array([_later(system, inputs, j * part) for j in range(1, parts + 1)])
        flags = np.full(none.shape, MISSING, dtype=np.int8)
        done, rows = step.march(begin, inputs, times, none, flags, acting, whole=False)
        if done == parts:
            return rows[parts - 1, : len(x)].copy()  # they are written over at the next call
    for j in range(parts):
        x = system.one_step(x, inputs, part, derivative=False, since=j * part).x
    return x


def _later(system: MachineSystem, inputs: Array, dt: float) -> Array:
    later = system.later(inputs, dt)
    return inputs if later is None else later


def step_bias(system: MachineSystem, estimates: Estimates, inputs: Array) -> StepBias:
    """The bias over the stretch of a run, one chain of steps, where the coordinates move fastest."""
    estimates.chained("the error of its steps")
    e, (first, count), step_of = estimates, _fastest(system, estimates), system.compiled_step(np.inf)
    bias, worst, when, used = np.zeros(len(e.states)), 0.0, float(e.t[0]), 0.0
    for k in range(first, first + count):
        if e.t[k] > e.t[k - 1]:
            left, step = _left(system, step_of, e, inputs, k)
            bias, used = e.F[k] @ bias + left, max(used, step)
        bias = bias - e.K[k] @ (e.H[k] @ bias)
        size = in_deviations(bias, e.P[k])
        if size > worst:
            worst, when = size, float(e.t[k])
    return StepBias(worst, when, used)


def in_deviations(bias: Array, P: Array) -> float:
    """The root mean square of a bias (n,) in deviations by P (n, n); directions without any uncertainty do not count."""
    sigma = np.sqrt(np.maximum(np.diag(P), 0.0))
    live = sigma > 0.0
    if not live.any():
        return 0.0
    variances, axes = np.linalg.eigh(P[np.ix_(live, live)] / np.outer(sigma[live], sigma[live]))
    along = axes.T @ (bias[live] / sigma[live])
    kept = variances > ROUNDED_VARIANCE * variances[-1]
    return float(np.sqrt(np.sum(along[kept] ** 2 / variances[kept]) / len(bias)))


def warn_of_long_steps(system: MachineSystem, found: StepBias) -> None:
    """Warn where the step biases the estimates by more than `TOLERATED_BIAS_SIGMAS` deviations."""
    if found.deviations > TOLERATED_BIAS_SIGMAS:
        warn(
            DataWarning,
            Fault(
                "the step of the integration is too long for this motion: it biases the estimates.",
                where=f"{system.name} near {found.t:.4g} s",
                expected=f"a bias below {TOLERATED_BIAS_SIGMAS:g} of their deviations",
                found=f"{found.deviations:.2g}, at a step of {found.step:.3g} s",
                hint=f"Try step={found.better:g}.",
            ),
        )
