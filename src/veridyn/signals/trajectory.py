"""Reference motions with exact derivatives: finite Fourier series, periodic, optionally started from rest.

    q(t) = q₀ + s(t) Σ_k [a_k sin(kωt) + b_k cos(kωt)],   k = 1 … H,  ω = 2π·frequency

s(t) = 1 without a start. With one it rises as 10τ³ − 15τ⁴ + 6τ⁵, τ = t/start, from 0 to 1, so that the motion begins at
q₀ with q̇ = q̈ = 0; the derivatives are those of the product, not approximations. Periodic motions let periods be averaged,
and hold no frequency above H·frequency, so a low-pass above it loses nothing of them.
Units: rad or m, s, Hz. Reference: Swevers et al. 1997, IEEE T-RA 13(5), with the amplitudes of q instead of q̇.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault, Faults

Array = NDArray[np.float64]

POINTS = 64  # grid points per period of the highest harmonic, or per start: a peak between two is missed by about 0.1 %


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
            faults.add(
                "its coefficients do not belong together.",
                where=where,
                expected="centre (n,), sine (n, H) and cosine (n, H)",
                found=f"{n}, {self.sine.shape} and {self.cosine.shape}",
            )
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
            raise DataError(
                Fault(
                    "it cannot be drawn.",
                    "Fourier trajectory",
                    "at least one harmonic, and a fill between 0 and 1",
                    f"{harmonics} and {fill:g}",
                )
            )
        k = np.arange(1, harmonics + 1)
        drawn = rng.standard_normal((2, limits.n, harmonics)) / k
        shape = cls(np.zeros(limits.n), drawn[0], drawn[1], frequency, start)
        reach = np.stack([np.abs(x).max(axis=0) for x in shape.at(shape.grid())])  # (3, n) of q − q₀, q̇, q̈
        allowed = np.stack([(limits.high - limits.low) / 2.0, limits.speed, limits.acceleration])
        scale = fill * (allowed / reach).min(axis=0)[:, None]
        middle = (limits.low + limits.high) / 2.0
        return replace(shape, centre=middle, sine=scale * shape.sine, cosine=scale * shape.cosine)

    @classmethod
    def from_rates(cls, centre: ArrayLike, mu: ArrayLike, nu: ArrayLike, frequency: float) -> FourierTrajectory:
        """From the coefficients of paper 002: q̇ = Σ_k [μ_k cos(kωt) + ν_k sin(kωt)] (14), each (n, H), which (12) integrates."""
        cosine, sine = np.asarray(mu, dtype=np.float64), np.asarray(nu, dtype=np.float64)
        kw = 2.0 * np.pi * frequency * np.arange(1, cosine.shape[-1] + 1)
        return cls(np.asarray(centre, dtype=np.float64), cosine / kw, -sine / kw, frequency)

    def with_start(self, seconds: float) -> FourierTrajectory:
        """The same motion, blended in from rest at `centre` over so many seconds."""
        return replace(self, start=seconds)

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
    return (
        x**3 * (10.0 - 15.0 * x + 6.0 * x**2),
        30.0 * y**2 / length,
        60.0 * y * (1.0 - 2.0 * x) / length**2,
    )
