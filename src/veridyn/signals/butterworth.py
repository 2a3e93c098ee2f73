"""Zero-phase Butterworth filters: y(ω) = |H(ω)|² x(ω), with H one pass of the filter and no phase at all.

The signal passes forwards, then backwards, so the order doubles and the gain at the cutoff is 1/2 (−6 dB): `cutoff`
and `order` are those of one pass, as with Matlab's *filtfilt*. With ``cutoff_is="double"`` the pass is widened so that
the two together have −3 dB at `cutoff`.

The filter is linear and acts on each column alone. Filtering the columns of a regressor and the measurement with one
and the same filter therefore keeps y = W χ true, a Coulomb column sign(q̇) included; filtering the signals and then
forming sign(q̇) and products does not. :func:`zero_phase_blocks` does it to a matrix too large to hold.

Ends: the signal is continued by its odd reflection (a point mirror at the first and at the last sample) over
3·(order + 1) samples, and each pass starts in the steady state of its first value. The first and last
:func:`overlap` samples know of that continuation; leave them out where it matters.
Reference: Venture et al. 2006, IEEE T-ITS 7(3), section IV.C.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault, Faults
from veridyn.signals.cascade import both_ways, one_way
from veridyn.signals.samples import as_rate, as_samples
from veridyn.signals.sections import butterworth_sections, squared_gain, steady_state

Array = NDArray[np.float64]

LONGEST_MEMORY = 20_000_000  # samples; a memory longer than this is a mistyped cutoff, not a filter


@dataclass(frozen=True)
class Butterworth:
    """Settings of a Butterworth filter: `cutoff` in Hz (two of them for "band"), `order` of one pass (1 to 12).

    `order` is that of each flank, so a band filter has twice as many poles.
    """

    cutoff: float | tuple[float, float]
    order: int = 4
    kind: Literal["low", "high", "band"] = "low"
    cutoff_is: Literal["single", "double"] = "single"

    def __post_init__(self) -> None:
        faults = Faults()
        where = "Butterworth filter"
        edges = np.atleast_1d(np.asarray(self.cutoff, dtype=np.float64))
        if self.kind not in ("low", "high", "band"):
            faults.add("its kind is unknown.", where=where, expected="'low', 'high' or 'band'", found=f"'{self.kind}'")
        elif len(edges) != (2 if self.kind == "band" else 1):
            faults.add(
                f"a '{self.kind}' filter has another number of cutoffs.",
                where=where,
                expected="two, low and high" if self.kind == "band" else "one",
                found=f"{self.cutoff}",
            )
        if not np.all(np.isfinite(edges) & (edges > 0.0)) or np.any(np.diff(edges) <= 0.0):
            faults.add(
                "its cutoff is not usable.", where=where, expected="Hz, positive and rising", found=f"{self.cutoff}"
            )
        if not (isinstance(self.order, int) and 1 <= self.order <= 12):
            faults.add(
                "its order is not usable.", where=where, expected="a whole number, 1 to 12", found=f"{self.order}"
            )
        if self.cutoff_is not in ("single", "double"):
            faults.add(
                "what its cutoff means is unknown.",
                where=where,
                expected="cutoff_is 'single' (−3 dB of one pass) or 'double' (−3 dB of both)",
                found=f"'{self.cutoff_is}'",
            )
        faults.raise_if_any(DataError)

    @property
    def padding(self) -> int:
        """Samples by which either end is continued: three times the number of taps of one pass."""
        return 3 * (self.order * (2 if self.kind == "band" else 1) + 1)

    def sos(self, rate: float) -> Array:
        """One pass as second-order sections (S, 6) at `rate` Hz; a DataError where a cutoff is not below Nyquist."""
        nyquist = as_rate(rate, "Butterworth filter") / 2.0
        edges = np.atleast_1d(np.asarray(self.cutoff, dtype=np.float64))
        if edges[-1] >= nyquist:
            raise DataError(
                Fault(
                    f"its cutoff is not below half the sampling rate of {rate:g} Hz.",
                    "Butterworth filter",
                    f"less than {nyquist:g} Hz",
                    f"{edges[-1]:g} Hz",
                    "Lower the cutoff or filter before the signal is decimated.",
                )
            )
        if self.cutoff_is == "double":
            edges = self._widened(edges, rate)
        return butterworth_sections(self.order, tuple(edges.tolist()), self.kind, float(rate)).copy()

    def gain(self, frequency: ArrayLike, rate: float) -> Array:
        """|H|² of both passes at `frequency` (Hz, any shape)."""
        f = np.asarray(frequency, dtype=np.float64)
        return squared_gain(self.sos(rate), f.ravel(), rate).reshape(f.shape)

    def white_gain(self, rate: float) -> float:
        """g with std(filtered) = g std(x) for white x at `rate` Hz: g² = mean of |H|⁴ over all frequencies.

        g² rate is also the rate (Hz) at which the filtered noise, decimated, is white again.
        """
        return math.sqrt(float((_power_gain(self, float(rate))).mean()))

    def summary(self) -> str:
        """One line for a report: what was filtered, how, and what the cutoff means."""
        edges = " to ".join(f"{e:g}" for e in np.atleast_1d(self.cutoff))
        level = "−3 dB of one pass, −6 dB of both" if self.cutoff_is == "single" else "−3 dB of both passes"
        return f"Butterworth {self.kind}-pass, {edges} Hz ({level}), order {self.order} forwards and backwards"

    def _widened(self, edges: Array, rate: float) -> Array:
        """Edges of one pass such that two passes have −3 dB at `edges`; on the tangent axis of the bilinear map."""
        # Two passes: 1/(1 + Ω^2n) = 1/√2 at the prototype's frequency Ω = (√2 − 1)^(1/2n) < 1.
        omega = (math.sqrt(2.0) - 1.0) ** (0.5 / self.order)
        tangent = np.tan(np.pi * edges / rate)
        if self.kind == "low":
            tangent = tangent / omega
        elif self.kind == "high":
            tangent = tangent * omega
        else:  # the band's width grows by 1/Ω about the same geometric centre
            width, centre = (tangent[1] - tangent[0]) / omega, tangent[0] * tangent[1]
            upper = (width + math.sqrt(width**2 + 4.0 * centre)) / 2.0
            tangent = np.array([centre / upper, upper])
        return np.arctan(tangent) * rate / np.pi


@cache
def _power_gain(filtering: Butterworth, rate: float) -> Array:
    """|H|⁴ of both passes at frequencies in the middles of equal steps up to half the rate, some hundred of them below the lowest edge."""
    steps = math.ceil(100.0 * rate / float(np.min(filtering.cutoff)))
    return filtering.gain((np.arange(steps) + 0.5) * rate / (2.0 * steps), rate) ** 2


@checked
def zero_phase(x: ArrayLike, rate: float, butterworth: Butterworth, where: str = "signal") -> Array:
    """`x` of shape (N, ...) filtered forwards and backwards along axis 0; same shape.

    Needs more than `butterworth.padding` samples, all finite; otherwise a DataError.
    """
    samples = as_samples(x, least=butterworth.padding + 1, where=where)
    columns = samples.reshape(len(samples), -1)
    return both_ways(butterworth.sos(rate), columns, butterworth.padding).reshape(samples.shape)


def overlap(butterworth: Butterworth, rate: float, tolerance: float = 1e-12) -> int:
    """The memory of the filter: samples further away than this change the result by less than `tolerance`.

    Precisely: the least n with Σ_{|k|>n} |r_k| ≤ tolerance, r the impulse response of both passes; the change is
    relative to the largest sample.
    """
    if not 1e-15 <= tolerance < 1.0:
        raise DataError(Fault("the tolerance is not usable.", "overlap", "1e-15 ≤ tolerance < 1", f"{tolerance:g}"))
    sos = butterworth.sos(rate)
    radius = max(float(np.abs(np.roots(s[3:])).max()) for s in sos)
    # Poles of a Butterworth are distinct, so every response decays as radius^n; 1e-6 covers its constant.
    length = math.ceil(math.log(tolerance * 1e-6) / math.log(radius)) if radius < 1.0 else LONGEST_MEMORY + 1
    if length > LONGEST_MEMORY:
        raise DataError(
            Fault(
                f"its memory is too long: {butterworth.cutoff} Hz at {rate:g} samples per second.",
                "Butterworth filter",
                hint="Decimate first, or use a higher cutoff.",
            )
        )
    impulse = np.zeros((length, 1))
    impulse[0] = 1.0
    once = one_way(sos, impulse, np.zeros((len(sos), 2, 1)))
    both = one_way(sos, once[::-1], np.zeros((len(sos), 2, 1)))[::-1, 0]  # r_k for k = 0, 1, …; it is even in k
    beyond = 2.0 * np.cumsum(np.abs(both[::-1]))[::-1]  # Σ over |j| ≥ k
    return int(np.count_nonzero(beyond > tolerance))


def zero_phase_blocks(
    blocks: Iterable[ArrayLike],
    rate: float,
    butterworth: Butterworth,
    tolerance: float = 1e-12,
    where: str = "signal",
) -> Iterator[Array]:
    """Filter a signal that arrives in consecutive blocks (n_i, ...): yields blocks of the same lengths n_i.

    Their concatenation equals :func:`zero_phase` of the whole, ends included, to `tolerance` of the largest value.
    The forward pass carries its state and is exact; the backward pass starts :func:`overlap` samples later than what
    it gives out, by when its unknown start is forgotten. Held at a time: twice the overlap and two blocks.
    """
    sos, edge, reach = butterworth.sos(rate), butterworth.padding, overlap(butterworth, rate, tolerance)
    waiting: deque[int] = deque()  # lengths of the blocks that came in and have not gone out
    forward: list[Array] = []  # their samples after the forward pass
    head: list[Array] = []  # raw samples, until there are enough to continue the signal before its start
    tail = state = None
    seen = held = 0
    for raw in blocks:
        block = as_samples(raw, least=0, where=where, first=seen)
        waiting.append(len(block))
        seen += len(block)
        if len(block) == 0:
            continue
        if state is None:
            head.append(block)
            if seen <= edge:
                continue
            block = np.concatenate(head)
            before = 2.0 * block[0] - block[edge:0:-1]
            state = _steady(sos, before[0])
            _passed(sos, before, state)
        passed = _passed(sos, block, state)
        forward.append(passed)
        held += len(passed)
        tail = np.concatenate([block[:0] if tail is None else tail, block])[-(edge + 1) :]
        if held - reach >= max(waiting[0], reach):
            ahead = np.concatenate(forward)
            done = _backward(sos, ahead)
            out = 0
            while waiting and out + waiting[0] <= held - reach:
                size = waiting.popleft()
                yield done[out : out + size].copy()
                out += size
            forward, held = [ahead[out:].copy()], held - out
    if state is None or tail is None:
        as_samples(np.zeros(seen), least=edge + 1, where=where)  # says how many are needed
        return
    after = _passed(sos, 2.0 * tail[-1] - tail[-2 : -(edge + 2) : -1], state)
    done = _backward(sos, np.concatenate([*forward, after]))
    out = 0
    for size in waiting:
        yield done[out : out + size].copy()
        out += size


def _steady(sos: Array, value: Array) -> Array:
    """The sections' state (S, 2, ...) after `value` has been constant for ever."""
    zi = steady_state(sos)
    return zi.reshape(zi.shape + (1,) * np.ndim(value)) * value


def _backward(sos: Array, x: Array) -> Array:
    return _passed(sos, x[::-1], _steady(sos, x[-1]))[::-1]


def _passed(sos: Array, x: Array, state: Array) -> Array:
    """x (N, ...) after one pass; its `state` (S, 2, ...) goes on from there."""
    columns = state.reshape(len(sos), 2, -1)
    y = one_way(sos, x.reshape(len(x), -1), columns).reshape(x.shape)
    state[:] = columns.reshape(state.shape)
    return y
