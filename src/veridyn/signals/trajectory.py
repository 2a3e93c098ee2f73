"""Reference motions with exact derivatives: Fourier series and periodic B-splines, tables, and how a periodic motion is entered.

    q(t) = q₀ + s(t) Σ_k [a_k sin(kωt) + b_k cos(kωt)],   k = 1 … H,  ω = 2π·frequency

s(t) = 1 without a start. With one it rises as 10τ³ − 15τ⁴ + 6τ⁵, τ = t/start, from 0 to 1, so that the motion begins at
q₀ with q̇ = q̈ = 0; the derivatives are those of the product, not approximations. Periodic motions let periods be averaged,
and hold no frequency above H·frequency, so a low-pass above it loses nothing of them.
Units: rad or m, s, Hz. Reference: Swevers et al. 1997, IEEE T-RA 13(5), with the amplitudes of q instead of q̇.

Splines are shaped where they need it, not harmonic by harmonic:   q(t) = Σ_m c_m N_d(K f t − m),   m = 0 … K − 1, cyclic

N_d is the cardinal B-spline of degree d on the knots 0 … d + 1, f the frequency in Hz and K the control points of one period. Weights are
positive and add up to one, so q never leaves the range of its control points; degree 4 and above has a steady jerk.
C. de Boor, "A Practical Guide to Splines", 1978, chapters IX and X.

A table with rates and accelerations is met by a polynomial of degree five on every interval, so that the motion goes through it to the
second derivative. Without, it is the interpolating spline of degree five, whose jerk has no jumps.

A periodic motion is entered along its own path, from rest, at full pace after `lead` seconds, or on a line from elsewhere:

    x(t) = p(τ(t)),   τ' = s(t/lead) with s = 10u³ − 15u⁴ + 6u⁵ from 0 to 1,   τ(lead) = offset

The path is that of the periodic motion, so whatever holds of its positions (ranges, workspace, distances) holds from the first moment; the
machine stands at p(offset − lead/2) before. Derivatives are exact: ẋ = ṗ τ', ẍ = p̈ τ'² + ṗ τ''.

The approach of a reference r that begins at rest:   x(t) = x₀ + (r(0) − x₀) s(t/T),   then r(t − T)

Speeds are at most 15/8 |r(0) − x₀|/T, accelerations 10/√3 |r(0) − x₀|/T².
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, PPoly, make_interp_spline

from veridyn.arguments import checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults

POINTS = 64  # grid points per period of the highest harmonic, or per start: a peak between two is missed by about 0.1 %
DEGREE = 5


@checked_record
@dataclass(frozen=True, eq=False)
class JointLimits:
    """What each of n coordinates may do: `low` < q < `high`, |q̇| < `speed`, |q̈| < `acceleration`, each (n,)."""

    low: Array
    high: Array
    speed: Array
    acceleration: Array

    def __post_init__(self) -> None:
        for name in ("low", "high", "speed", "acceleration"):
            object.__setattr__(self, name, np.atleast_1d(np.array(getattr(self, name), dtype=np.float64)))
        faults = Faults()
        where = "joint limits"
        shapes = {name: getattr(self, name).shape for name in ("low", "high", "speed", "acceleration")}
        if len(set(shapes.values())) > 1 or self.low.ndim != 1:
            found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            faults.add("they do not belong together.", where=where, expected="four arrays (n,)", found=found)
            faults.raise_if_any(DataError)
        for bad, what in (
            (~(self.low < self.high), "low must be below high."),
            (~(self.speed > 0.0), "a speed must be above zero."),
            (~(self.acceleration > 0.0), "an acceleration must be above zero."),
        ):
            if bad.any():
                faults.add(what, where=where, found=f"coordinate {int(np.argmax(bad)) + 1} does not obey")
        faults.raise_if_any(DataError)

    @property
    def n(self) -> int:
        return len(self.low)


@checked_record
@dataclass(frozen=True, eq=False)
class FourierTrajectory:
    """n coordinates about `centre` (n,), amplitudes `sine` and `cosine` (n, H), fundamental `frequency` in Hz, `start` in s."""

    centre: Array
    sine: Array
    cosine: Array
    frequency: float
    start: float = 0.0

    def __post_init__(self) -> None:
        for name in ("centre", "sine", "cosine"):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64))
        faults = Faults()
        where = "Fourier trajectory"
        n = self.centre.shape
        if len(n) != 1 or self.sine.ndim != 2 or self.sine.shape != self.cosine.shape or self.sine.shape[:1] != n:
            expected = "centre (n,), sine (n, H) and cosine (n, H)"
            found = f"{n}, {self.sine.shape} and {self.cosine.shape}"
            faults.add("its coefficients do not belong together.", where=where, expected=expected, found=found)
        elif not all(np.isfinite(x).all() for x in (self.centre, self.sine, self.cosine)):
            faults.add("some of its coefficients are not finite numbers.", where=where)
        if not 0.0 < self.frequency < np.inf:
            faults.add("its frequency is not usable.", where=where, expected="Hz above zero", found=f"{self.frequency}")
        if not 0.0 <= self.start < np.inf:
            faults.add("its start is not usable.", where=where, expected="seconds, 0 or more", found=f"{self.start}")
        faults.raise_if_any(DataError)

    @classmethod
    def random(
        cls,
        rng: np.random.Generator,
        limits: JointLimits,
        *,
        harmonics: int = 5,
        frequency: float = 0.1,
        start: float = 0.0,
        fill: float = 0.95,
    ) -> FourierTrajectory:
        """Random amplitudes about the middle of each range, scaled so that the tightest limit is used up to `fill`.

        Amplitudes are normal with a deviation of 1/k, so that every harmonic adds about as much speed. The limits hold on
        a grid of 64 points per period of the highest harmonic, or per start where that is shorter.
        """
        if harmonics < 1 or not 0.0 < fill < 1.0:
            expected = "at least one harmonic, and a fill between 0 and 1"
            raise DataError(
                "it cannot be drawn.", where="Fourier trajectory", expected=expected, found=f"{harmonics} and {fill:g}"
            )
        k = np.arange(1, harmonics + 1)
        drawn = rng.standard_normal((2, limits.n, harmonics)) / k
        shape = cls(np.zeros(limits.n), drawn[0], drawn[1], frequency, start)
        reach = np.stack([np.abs(x).max(axis=0) for x in shape.at(shape.grid())])  # (3, n) of q − q₀, q̇, q̈
        allowed = np.stack([(limits.high - limits.low) / 2.0, limits.speed, limits.acceleration])
        scale = fill * (allowed / reach).min(axis=0)[:, None]
        middle = (limits.low + limits.high) / 2.0
        return replace(shape, centre=middle, sine=scale * shape.sine, cosine=scale * shape.cosine)

    @property
    def n(self) -> int:
        return len(self.centre)

    @property
    def period(self) -> float:
        """Seconds after which the motion repeats itself, once the start is over."""
        return 1.0 / self.frequency

    @property
    def highest(self) -> float:
        """The highest frequency in it, in Hz, once the start is over."""
        return self.frequency * self.sine.shape[1]

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ at the times `t` of any shape, each of shape (…, n)."""
        times = np.asarray(t, dtype=np.float64)
        k, table = self._table
        angle = times[..., None] * k
        series = np.concatenate([np.sin(angle), np.cos(angle)], axis=-1) @ table
        n = self.n
        p, pd, pdd = series[..., :n], series[..., n : 2 * n], series[..., 2 * n :]
        return blended(times, self.start, self.centre, p, pd, pdd)

    def position(self, t: ArrayLike) -> Array:
        """q (…, n)."""
        return self.at(t)[0]

    def velocity(self, t: ArrayLike) -> Array:
        """q̇ (…, n)."""
        return self.at(t)[1]

    def acceleration(self, t: ArrayLike) -> Array:
        """q̈ (…, n)."""
        return self.at(t)[2]

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        """kω (H,), and the coefficients (2H, 3n) of sines and cosines in Σ, its first and its second derivative."""
        k = 2.0 * np.pi * self.frequency * np.arange(1, self.sine.shape[1] + 1)
        a, b = self.sine.T, self.cosine.T
        w = k[:, None]
        return k, np.block([[a, -w * b, -(w**2) * a], [b, w * a, -(w**2) * b]])

    def grid(self) -> Array:
        """The times at which limits are checked: the start and one whole period after it."""
        length = self.start + self.period
        shortest = min(self.start or np.inf, 1.0 / self.highest)
        return np.linspace(0.0, length, int(np.ceil(POINTS * length / shortest)) + 1)


def fourier_basis(phase: ArrayLike, harmonics: int) -> Array:
    """(3, …, 2H + 1): 1, sin(2πkφ)/k and cos(2πkφ)/k at phases φ (in periods), and their first and second derivatives by phase.

    The 1/k of equation (12) of paper 002 makes every harmonic move about as fast for the same coefficient.
    """
    k = np.arange(1, harmonics + 1)
    angle = 2.0 * np.pi * np.asarray(phase, dtype=np.float64)[..., None] * k
    s, c, w = np.sin(angle) / k, np.cos(angle) / k, 2.0 * np.pi * k
    one = np.ones((*angle.shape[:-1], 1))
    orders = ((one, s, c), (0.0 * one, w * c, -w * s), (0.0 * one, -(w**2) * s, -(w**2) * c))
    return np.stack([np.concatenate(order, axis=-1) for order in orders])


def blended(t: Array, start: float, centre: Array, p: Array, pd: Array, pdd: Array) -> tuple[Array, Array, Array]:
    """centre + s(t) p(t) and its derivatives; s = 1 without a start and after it."""
    if start == 0.0 or (t.ndim == 0 and t >= start):
        return centre + p, pd, pdd
    s, sd, sdd = (x[..., None] for x in _rise(t, start))
    return centre + s * p, sd * p + s * pd, sdd * p + 2.0 * sd * pd + s * pdd


def _rise(t: Array, length: float) -> tuple[Array, Array, Array]:
    """The polynomial that goes from 0 to 1 with two derivatives zero at both ends, and its two derivatives."""
    x = np.minimum(np.maximum(t / length, 0.0), 1.0)
    y = x * (1.0 - x)
    return (x**3 * (10.0 - 15.0 * x + 6.0 * x**2), 30.0 * y**2 / length, 60.0 * y * (1.0 - 2.0 * x) / length**2)


@checked_record
@dataclass(frozen=True, eq=False)
class SplineTrajectory:
    """n coordinates by control points `points` (K, n), fundamental `frequency` in Hz, blended in from rest over `start` seconds."""

    points: Array
    frequency: float
    degree: int = 5
    start: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", np.array(self.points, dtype=np.float64))
        faults, where = Faults(), "spline trajectory"
        if self.degree < 3:
            faults.add("its acceleration would jump.", where=where, expected="degree 3 or more", found=f"{self.degree}")
        if self.points.ndim != 2 or len(self.points) <= self.degree or not np.isfinite(self.points).all():
            what = "its control points are not usable."
            expected = f"more than {self.degree} rows of finite numbers"
            faults.add(what, where=where, expected=expected, found=f"shape {self.points.shape}")
        if not 0.0 < self.frequency < np.inf or not 0.0 <= self.start < np.inf:
            expected = "a frequency above zero in Hz, and a start of 0 s or more"
            found = f"{self.frequency} and {self.start}"
            faults.add("its times are not usable.", where=where, expected=expected, found=found)
        faults.raise_if_any(DataError)

    @property
    def n(self) -> int:
        return self.points.shape[1]

    @property
    def centre(self) -> Array:
        """The mean over a period, from which the motion starts."""
        return self.points.mean(axis=0)

    @property
    def period(self) -> float:
        """Seconds after which the motion repeats itself, once the start is over."""
        return 1.0 / self.frequency

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ at the times `t` of any shape, each of shape (…, n)."""
        times = np.asarray(t, dtype=np.float64)
        B = spline_basis(times * self.frequency, len(self.points), self.degree)
        f, centre = self.frequency, self.centre
        p, pd, pdd = B[0] @ self.points - centre, f * (B[1] @ self.points), f**2 * (B[2] @ self.points)
        return blended(times, self.start, centre, p, pd, pdd)

    def grid(self) -> Array:
        """The times at which limits are checked: the start and one whole period after it."""
        length = self.start + self.period
        shortest = min(self.start or np.inf, 4.0 * self.period / len(self.points))
        return np.linspace(0.0, length, int(np.ceil(POINTS * length / shortest)) + 1)


def spline_basis(phase: ArrayLike, points: int, degree: int) -> Array:
    """(3, …, K): the weights of the control points at phases (in periods), and their first and second derivatives by phase."""
    at = np.mod(np.asarray(phase, dtype=np.float64)[..., None] * points - np.arange(points), points)
    inside = at <= degree + 1.0
    return np.stack(
        [float(points) ** order * np.where(inside, piece(at), 0.0) for order, piece in enumerate(_pieces(degree))]
    )


@lru_cache(maxsize=16)
def _pieces(degree: int) -> tuple[BSpline, BSpline, BSpline]:
    whole = BSpline.basis_element(np.arange(degree + 2.0))
    return whole, whole.derivative(), whole.derivative(2)


@checked_record
@dataclass(frozen=True, eq=False)
class SampledTrajectory:
    """n coordinates: `q` (N, n) at the times `t` (N,); `qd` and `qdd` (N, n), both or neither. Outside its times it keeps its ends."""

    t: Array
    q: Array
    qd: Array | None = None
    qdd: Array | None = None

    def __post_init__(self) -> None:
        faults, where = Faults(), "table of positions"
        for name in ("t", "q", "qd", "qdd"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, np.array(value, dtype=np.float64))
        orders = {name: x for name in ("q", "qd", "qdd") if (x := getattr(self, name)) is not None}
        if self.t.ndim != 1 or any(x.ndim != 2 or x.shape != (len(self.t), self.q.shape[-1]) for x in orders.values()):
            found = ", ".join(f"{name} {x.shape}" for name, x in {"t": self.t, **orders}.items())
            expected = "t (N,), and (N, n) of each other"
            faults.add("its parts do not belong together.", where=where, expected=expected, found=found)
            faults.raise_if_any(DataError)
        for name, x in {"t": self.t, **orders}.items():
            if not np.isfinite(x).all():
                k = int(np.argmin(np.isfinite(x).reshape(len(x), -1).all(axis=1)))
                faults.add(f"{name} holds numbers that are not finite.", where=where, found=f"the first in row {k + 1}")
        if (self.qd is None) != (self.qdd is None):
            faults.add("rates and accelerations belong together.", where=where, expected="both or neither")
        least = 2 if self.qd is not None else DEGREE + 1
        if len(self.t) < least:
            faults.add("it is too short.", where=where, expected=f"at least {least} rows", found=f"{len(self.t)}")
        elif not faults and not (np.diff(self.t) > 0.0).all():
            k = int(np.argmax(np.diff(self.t) <= 0.0))
            found = f"{self.t[k]:.6g} s then {self.t[k + 1]:.6g} s in row {k + 2}"
            faults.add(
                "its clock stands still or runs backwards.", where=where, expected="increasing times", found=found
            )
        faults.raise_if_any(DataError)

    @property
    def n(self) -> int:
        return self.q.shape[1]

    @property
    def length(self) -> float:
        """Seconds from the first row to the last."""
        return float(self.t[-1] - self.t[0])

    def from_zero(self) -> SampledTrajectory:
        """The same motion on a clock that begins at zero."""
        return SampledTrajectory(self.t - self.t[0], self.q, self.qd, self.qdd)

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """q, q̇ and q̈ at the times `t` of any shape, each of shape (…, n)."""
        times = np.clip(np.asarray(t, dtype=np.float64), self.t[0], self.t[-1])
        q, qd, qdd = (piece(times) for piece in self._pieces)
        return q, qd, qdd

    @cached_property
    def _pieces(self) -> tuple[PPoly | BSpline, PPoly | BSpline, PPoly | BSpline]:
        whole = make_interp_spline(self.t, self.q, DEGREE) if self.qd is None or self.qdd is None else self._hermite()
        return whole, whole.derivative(1), whole.derivative(2)

    def _hermite(self) -> PPoly:
        """On each interval c₀ + c₁ x + … + c₅ x⁵ with the six values at its ends."""
        assert self.qd is not None and self.qdd is not None
        h = np.diff(self.t)[:, None]
        p, v, a = self.q[:-1], self.qd[:-1], self.qdd[:-1]
        dp = self.q[1:] - (p + v * h + 0.5 * a * h**2)
        dv = (self.qd[1:] - (v + a * h)) * h
        da = (self.qdd[1:] - a) * h**2
        c3, c4, c5 = 10.0 * dp - 4.0 * dv + 0.5 * da, -15.0 * dp + 7.0 * dv - da, 6.0 * dp - 3.0 * dv + 0.5 * da
        return PPoly(np.stack([c5 / h**5, c4 / h**4, c3 / h**3, 0.5 * a, v, p]), self.t)


class Periodic(Protocol):
    """A motion that repeats itself."""

    @property
    def period(self) -> float: ...

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]: ...


@dataclass(frozen=True, eq=False)
class RunUp:
    """`motion` entered from rest along its path; at `lead` seconds its own time is `offset`."""

    motion: Periodic
    lead: float
    offset: float = 0.0

    @property
    def period(self) -> float:
        return self.motion.period

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """x, ẋ and ẍ at the times `t` of any shape, each of shape (…, n)."""
        times = np.asarray(t, dtype=np.float64)
        if self.lead == 0.0:
            return self.motion.at(times + self.offset)
        u = np.clip(times / self.lead, 0.0, 1.0)
        pace = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        change = 30.0 * (u * (1.0 - u)) ** 2 / self.lead
        own = np.where(times >= self.lead, times - self.lead, self.lead * (u**4 * (2.5 - 3.0 * u + u**2) - 0.5))
        p, pd, pdd = self.motion.at(own + self.offset)
        pace, change = pace[..., None], change[..., None]
        return p, pd * pace, pdd * pace**2 + pd * change


@dataclass(frozen=True, eq=False)
class Approach:
    """`start` (n,) is left at rest, and `reference` begins after `seconds`."""

    reference: RunUp
    start: Array
    seconds: float

    @property
    def lead(self) -> float:
        """Seconds until the periodic motion is at full pace."""
        return self.seconds + self.reference.lead

    @property
    def period(self) -> float:
        return self.reference.period

    def at(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """x, ẋ and ẍ at the times `t` of any shape, each of shape (…, n)."""
        times = np.asarray(t, dtype=np.float64)
        x, xd, xdd = self.reference.at(np.maximum(times - self.seconds, 0.0))
        if self.seconds == 0.0:
            return x, xd, xdd
        u = np.clip(times / self.seconds, 0.0, 1.0)[..., None]
        way = self.reference.at(0.0)[0] - self.start
        before = (times < self.seconds)[..., None]
        s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
        rate = 30.0 * (u * (1.0 - u)) ** 2 / self.seconds
        change = 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / self.seconds**2
        return (
            np.where(before, self.start + s * way, x),
            np.where(before, rate * way, xd),
            np.where(before, change * way, xdd),
        )
