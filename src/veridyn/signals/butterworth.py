"""Zero-phase Butterworth filters: y(ω) = |H(ω)|² x(ω), with H one pass of the filter and no phase at all.

The signal passes forwards, then backwards, so the order doubles and the gain at the cutoff is 1/2 (−6 dB): `cutoff`
and `order` are those of one pass, as with Matlab's *filtfilt*. With ``cutoff_is="double"`` the pass is widened so that
the two together have −3 dB at `cutoff`.

The filter is linear and acts on each column alone. Filtering the columns of a regressor and the measurement with one
and the same filter therefore keeps y = W χ true, a Coulomb column sign(q̇) included; filtering the signals and then
forming sign(q̇) and products does not.

Ends: the signal is continued by its odd reflection (a point mirror at the first and at the last sample) over
3·(order + 1) samples, and each pass starts in the steady state of its first value. The first and last
:func:`overlap` samples know of that continuation; leave them out where it matters.

Sections are designed in closed form, because importing SciPy's designs takes longer than most logs take to filter: poles of the prototype
are −e^{jπm/2n}, m = −n + 1, −n + 3 … n − 1, scaled by 4 tan(πf/rate) and mapped by z = (4 + s)/(4 − s). A section is b₀ b₁ b₂ 1 a₁ a₂;
those with poles nearest to the unit circle come last, and the gain stands in the first, as in SciPy. As many columns as a register holds
pass together in vector code (:func:`biquad_program`), in a tenth of the time of SciPy's ``sosfiltfilt``. Reference: Venture et al. 2006,
IEEE T-ITS 7(3), section IV.C.

What every filter of this room takes is checked here once (:func:`as_samples`, :func:`as_rate`): finite numbers, time along axis 0, a
positive rate in Hz. So each filter refuses a bad signal in the same words.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked, checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults
from veridyn.symbolic.kernel import made_once, this_host
from veridyn.symbolic.lowering import spread

COEFFICIENTS = ("b0", "b1", "b2", "a1", "a2")  # of a section, in the order of its line of coefficients


def biquad_program(width: int, sections: int) -> str:
    """LLVM text of ``cascade(groups, samples, x, column, step, coefficients, state)``: `groups` times `width` columns are filtered.

    Each section is a direct form II transposed, in the order of operations of SciPy's ``sosfilt``:

        y = b₀ x + z₀,    z₀ ← b₁ x − a₁ y + z₁,    z₁ ← b₂ x − a₂ y

    Sample i of column k stands at x + k·column + i·step (doubles). A line of the coefficients is b₀, b₁, b₂, a₁, a₂ of a section;
    `state` (groups, sections, 2, width) holds z₀ and z₁, before and after.
    """
    V = f"<{width} x double>"
    lanes = range(width)
    lines = [
        "; veridyn: second-order sections",
        "define void @cascade(i64 %groups, i64 %n, ptr %x, i64 %column, i64 %step, ptr %c, ptr %z) {",
        "entry:",
        "  %any = icmp sgt i64 %n, 0",
        "  %some = icmp sgt i64 %groups, 0",
        "  %both = and i1 %any, %some",
        "  br i1 %both, label %start, label %done",
        "start:",
    ]
    for s in range(sections):
        for k, name in enumerate(COEFFICIENTS):
            lines += [
                f"  %{name}p{s} = getelementptr double, ptr %c, i64 {5 * s + k}",
                f"  %{name}d{s} = load double, ptr %{name}p{s}, align 8",
                spread(width, f"{name}{s}", f"%{name}d{s}"),
            ]
    lines += [
        f"  %wide = mul i64 %column, {width}",
        "  br label %group",
        "group:",
        "  %g = phi i64 [ 0, %start ], [ %gnext, %after ]",
        "  %first = mul i64 %g, %wide",
    ]
    for k in lanes:
        lines += [
            f"  %o{k} = mul i64 %column, {k}",
            f"  %at{k} = add i64 %first, %o{k}",
            f"  %p{k} = getelementptr double, ptr %x, i64 %at{k}",
        ]
    lines += [f"  %states = mul i64 %g, {2 * sections * width}"]
    for s in range(sections):
        for j in range(2):
            lines += [
                f"  %zo{s}{j} = add i64 %states, {(2 * s + j) * width}",
                f"  %zp{s}{j} = getelementptr double, ptr %z, i64 %zo{s}{j}",
                f"  %zs{s}{j} = load {V}, ptr %zp{s}{j}, align 8",
            ]
    lines += ["  br label %sample", "sample:", "  %i = phi i64 [ 0, %group ], [ %inext, %sample ]"]
    for s in range(sections):
        lines += [f"  %z{s}{j} = phi {V} [ %zs{s}{j}, %group ], [ %zn{s}{j}, %sample ]" for j in range(2)]
    lines += ["  %off = mul i64 %i, %step"]
    before = "poison"
    for k in lanes:
        lines += [
            f"  %a{k} = getelementptr double, ptr %p{k}, i64 %off",
            f"  %x{k} = load double, ptr %a{k}, align 8",
            f"  %v{k} = insertelement {V} {before}, double %x{k}, i32 {k}",
        ]
        before = f"%v{k}"
    value = before
    for s in range(sections):
        lines += [
            f"  %m{s} = fmul {V} %b0{s}, {value}",
            f"  %y{s} = fadd {V} %m{s}, %z{s}0",
            f"  %r{s} = fmul {V} %b1{s}, {value}",
            f"  %q{s} = fmul {V} %a1{s}, %y{s}",
            f"  %t{s} = fsub {V} %r{s}, %q{s}",
            f"  %zn{s}0 = fadd {V} %t{s}, %z{s}1",
            f"  %u{s} = fmul {V} %b2{s}, {value}",
            f"  %w{s} = fmul {V} %a2{s}, %y{s}",
            f"  %zn{s}1 = fsub {V} %u{s}, %w{s}",
        ]
        value = f"%y{s}"
    for k in lanes:
        lines += [f"  %e{k} = extractelement {V} {value}, i32 {k}", f"  store double %e{k}, ptr %a{k}, align 8"]
    lines += [
        "  %inext = add i64 %i, 1",
        "  %more = icmp slt i64 %inext, %n",
        "  br i1 %more, label %sample, label %after",
        "after:",
    ]
    lines += [f"  store {V} %zn{s}{j}, ptr %zp{s}{j}, align 8" for s in range(sections) for j in range(2)]
    lines += [
        "  %gnext = add i64 %g, 1",
        "  %gmore = icmp slt i64 %gnext, %groups",
        "  br i1 %gmore, label %group, label %done",
        "done:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


LONGEST_MEMORY = 20_000_000  # samples; a memory longer than this is a mistyped cutoff, not a filter
SET_BYTES = 4096  # columns that are a multiple of it apart fall on one set of the first cache
_SIGNATURE = ctypes.CFUNCTYPE(
    None, *[ctypes.c_int64] * 2, ctypes.c_void_p, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2
)


def as_samples(x: ArrayLike, *, least: int = 1, where: str = "signal") -> Array:
    """`x` as float64 of shape (N, ...), with N at least `least` and every number finite; otherwise a DataError."""
    samples = np.asarray(x, dtype=np.float64)
    if samples.ndim == 0:
        expected = "an array with time along its first axis"
        raise DataError("it is one number, not a signal.", where=where, expected=expected, found=f"{samples}")
    if len(samples) < least:
        hint = "Record longer, or choose a filter with a shorter memory."
        raise DataError(
            "it is too short.", where=where, expected=f"at least {least} samples", found=f"{len(samples)}", hint=hint
        )
    bad = ~np.isfinite(samples)
    if bad.any():
        place = [int(i) for i in np.argwhere(bad)[0]]
        column = f" in column {', '.join(map(str, place[1:]))}" if len(place) > 1 else ""
        found = f"{int(bad.sum())} others, the first at sample {place[0]}{column} ({samples[tuple(place)]})"
        hint = "veridyn.signals.quality.inspect lists them with their times; cut or repair those spans first."
        what = "it holds values that are not finite numbers."
        raise DataError(what, where=where, expected="finite numbers", found=found, hint=hint)
    return samples


def as_rate(rate: float, where: str = "signal") -> float:
    """`rate` as a positive finite number of samples per second; otherwise a DataError."""
    if not (math.isfinite(rate) and rate > 0.0):
        expected = "a positive number of samples per second"
        hint = "veridyn.signals.resample.uniform_rate finds the rate of a clock."
        raise DataError(
            "its sampling rate is not usable.", where=where, expected=expected, found=f"{rate!r}", hint=hint
        )
    return float(rate)


@checked_record
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
            what = f"a '{self.kind}' filter has another number of cutoffs."
            expected = "two, low and high" if self.kind == "band" else "one"
            faults.add(what, where=where, expected=expected, found=f"{self.cutoff}")
        if not np.all(np.isfinite(edges) & (edges > 0.0)) or np.any(np.diff(edges) <= 0.0):
            faults.add(
                "its cutoff is not usable.", where=where, expected="Hz, positive and rising", found=f"{self.cutoff}"
            )
        if not (isinstance(self.order, int) and 1 <= self.order <= 12):
            faults.add(
                "its order is not usable.", where=where, expected="a whole number, 1 to 12", found=f"{self.order}"
            )
        if self.cutoff_is not in ("single", "double"):
            expected = "cutoff_is 'single' (−3 dB of one pass) or 'double' (−3 dB of both)"
            faults.add("what its cutoff means is unknown.", where=where, expected=expected, found=f"'{self.cutoff_is}'")
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
            what = f"its cutoff is not below half the sampling rate of {rate:g} Hz."
            hint = "Lower the cutoff or filter before the signal is decimated."
            expected = f"less than {nyquist:g} Hz"
            raise DataError(what, where="Butterworth filter", expected=expected, found=f"{edges[-1]:g} Hz", hint=hint)
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
        raise DataError(
            "the tolerance is not usable.", where="overlap", expected="1e-15 ≤ tolerance < 1", found=f"{tolerance:g}"
        )
    sos = butterworth.sos(rate)
    radius = max(float(np.abs(np.roots(s[3:])).max()) for s in sos)
    # Poles of a Butterworth are distinct, so every response decays as radius^n; 1e-6 covers its constant.
    length = math.ceil(math.log(tolerance * 1e-6) / math.log(radius)) if radius < 1.0 else LONGEST_MEMORY + 1
    if length > LONGEST_MEMORY:
        what = f"its memory is too long: {butterworth.cutoff} Hz at {rate:g} samples per second."
        raise DataError(what, where="Butterworth filter", hint="Decimate first, or use a higher cutoff.")
    impulse = np.zeros((length, 1))
    impulse[0] = 1.0
    once = one_way(sos, impulse, np.zeros((len(sos), 2, 1)))
    both = one_way(sos, once[::-1], np.zeros((len(sos), 2, 1)))[::-1, 0]  # r_k for k = 0, 1, …; it is even in k
    beyond = 2.0 * np.cumsum(np.abs(both[::-1]))[::-1]  # Σ over |j| ≥ k
    return int(np.count_nonzero(beyond > tolerance))


@cache
def butterworth_sections(
    order: int, edges: tuple[float, ...], kind: Literal["low", "high", "band"], rate: float
) -> Array:
    """(S, 6) of one pass with −3 dB at `edges` (Hz) and `order` on each flank, at `rate` Hz; not to be written to."""
    if kind == "band":
        from scipy.signal import butter  # here: few filters are of this kind

        return np.asarray(butter(order, edges, "bandpass", fs=rate, output="sos"), dtype=np.float64)
    warped = 4.0 * math.tan(math.pi * edges[0] / rate)
    numbers = np.arange(-order + 1, order, 2)
    prototype = -np.exp(1j * np.pi * numbers[numbers >= 0] / (2.0 * order))  # one of each pair
    s = prototype * warped if kind == "low" else warped / prototype
    z = (4.0 + s) / (4.0 - s)
    sign = 1.0 if kind == "low" else -1.0  # its zeros lie at −sign, its gain is one at +sign
    lines = []
    for pole in sorted(z, key=abs):
        if abs(pole.imag) < 1e-14 * abs(pole):  # that of an odd order
            b, a = np.array([1.0, sign, 0.0]), np.array([1.0, -pole.real, 0.0])
        else:
            b, a = np.array([1.0, 2.0 * sign, 1.0]), np.array([1.0, -2.0 * pole.real, abs(pole) ** 2])
        lines.append(np.concatenate([b, a]))
    found = np.array(lines)
    powers = sign ** np.arange(3)
    found[0, :3] *= np.prod((found[:, 3:] @ powers) / (found[:, :3] @ powers))
    return found


def steady_state(sos: Array) -> Array:
    """(S, 2): z₀ and z₁ of each section after an input of one for ever."""
    state, x = np.empty((len(sos), 2)), 1.0
    for section, z in zip(sos, state, strict=True):
        b, a = section[:3], section[3:]
        y = x * b.sum() / a.sum()
        z[1] = b[2] * x - a[2] * y
        z[0] = b[1] * x - a[1] * y + z[1]
        x = y
    return state


def squared_gain(sos: Array, frequency: Array, rate: float) -> Array:
    """|H|² of one pass at `frequency` (F,), Hz."""
    back: NDArray[np.complex128] = np.exp(-2j * np.pi * frequency / rate)
    H = np.ones(back.shape, dtype=np.complex128)
    for b0, b1, b2, a0, a1, a2 in sos:
        H *= (b0 + back * (b1 + back * b2)) / (a0 + back * (a1 + back * a2))
    return H.real**2 + H.imag**2


def both_ways(sos: Array, x: Array, edge: int) -> Array:
    """x (N, C) after sections `sos` (S, 6) forwards and backwards; each end is continued by its odd reflection over `edge` < N samples.

    Either pass starts in the steady state of its first value. The result has its columns together in memory.
    """
    N, C = x.shape
    width = this_host().width
    groups = -(-C // width)
    length = N + 2 * edge
    stride = length + (8 if 8 * length % SET_BYTES == 0 else 0)
    table = np.empty((groups * width, stride))
    table[C:] = 0.0
    own = table[:C]
    own[:, edge : edge + N] = x.T
    own[:, :edge] = 2.0 * own[:, edge, None] - own[:, 2 * edge : edge : -1]
    last = edge + N - 1
    own[:, last + 1 : length] = 2.0 * own[:, last, None] - own[:, last - 1 : last - 1 - edge : -1]
    coefficients, steady = _coefficients(sos), steady_state(sos)
    run = _cascade(len(sos))
    for at, step in ((0, 1), (length - 1, -1)):
        first = table[:, at].reshape(groups, 1, 1, width)
        state = np.ascontiguousarray(steady[None, :, :, None] * first)
        start = table.ctypes.data + 8 * at
        run(groups, length, start, stride, step, coefficients.ctypes.data, state.ctypes.data)
    return own[:, edge : edge + N].T


def one_way(sos: Array, x: Array, state: Array) -> Array:
    """x (N, C) after one pass of sections `sos` (S, 6); `state` (S, 2, C), before and after, is written to."""
    N, C = x.shape
    width = this_host().width
    groups = -(-C // width)
    table = np.zeros((groups * width, N))
    table[:C] = x.T
    whole = np.zeros((len(sos), 2, groups * width))
    whole[:, :, :C] = state
    inner = np.ascontiguousarray(whole.reshape(len(sos), 2, groups, width).transpose(2, 0, 1, 3))
    coefficients = _coefficients(sos)
    run = _cascade(len(sos))
    run(groups, N, table.ctypes.data, N, 1, coefficients.ctypes.data, inner.ctypes.data)
    state[:] = inner.transpose(1, 2, 0, 3).reshape(whole.shape)[:, :, :C]
    return table[:C].T


def _coefficients(sos: Array) -> Array:
    return np.ascontiguousarray(sos[:, [0, 1, 2, 4, 5]] / sos[:, 3:4])


def _cascade(sections: int) -> Callable[..., None]:
    host = this_host()
    program = partial(biquad_program, host.width, sections)
    return made_once(f"cascade of {sections}", program, host, "cascade", _SIGNATURE)
