"""Roads: height and slope at any point, flat, inclined, with bumps and steps, or along measured or random lines.

    road = rough_road("C", rng, length=500.0, track=1.5) + Bump(at=100.0, length=3.0, rise=0.05)
    road.height(x, y), road.slope(x, y)                    # arrays; slope is (∂z/∂x, ∂z/∂y), the exact derivative
    road_at(road.packed, x, y)                             # (z, ∂z/∂x, ∂z/∂y) in compiled code

x runs forward, y to the left, z up; metres. Heights of a sum add. Every road is continuous with a continuous slope, also between the
samples of a profile: a height held between samples would shake a wheel with jumps that no road has.

Random roads have a roughness class of ISO 8608, for several wheel tracks:

    G_d(n) = G_d(n_0) (n/n_0)^−w,    n_0 = 0.1 cycles/m,    w = 2;    class A: G_d(n_0) = 16e-6 m³, each class after it four times more

n counts cycles per metre and G_d is one-sided: the variance of the height is its integral over the band. The road is a sum of
sinusoids of these amplitudes with random phases, one for each n = k/length of the band, so it begins again after `length`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import cos, floor, inf, nan, pi, sin
from typing import final

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, did_you_mean
from veridyn.mechanics.compiled import kept, lean

PLANE, BUMP, STEP, PROFILE = 0, 1, 2, 3  # kinds of record; each is (kind, length of the record, its numbers …)
EDGE = 0.1  # m, over which the side of a bump or a step falls to the road
HEADER = 8  # numbers of a profile's record before its samples
REFERENCE = 0.1  # cycles/m, n_0
BAND = (0.011, 2.83)  # cycles/m: wavelengths from 91 m to 0.35 m, those of the standard's tables
PER_WAVE = 16  # samples of the shortest wave: cubics between them then err by 6e-5 of its height and 5e-4 of its slope


class Road(ABC):
    """Something a wheel rolls on: a list of records for compiled code, and the doors to it over arrays."""

    @property
    @abstractmethod
    def packed(self) -> Array:
        """All of the road as one float array, for :func:`road_at`. Take it once, outside of loops."""

    def height(self, x: ArrayLike, y: ArrayLike = 0.0) -> Array:
        """z at the points (x, y), which broadcast, m."""
        return self._surface(x, y)[0]

    def slope(self, x: ArrayLike, y: ArrayLike = 0.0) -> tuple[Array, Array]:
        """∂z/∂x and ∂z/∂y at the points (x, y), which broadcast."""
        _, along, across = self._surface(x, y)
        return along, across

    def __add__(self, other: Road) -> Road:
        return Together((self, other))

    def _surface(self, x: ArrayLike, y: ArrayLike) -> Array:
        given = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
        flat = [np.ascontiguousarray(value).reshape(-1) for value in given]
        out = np.empty((3, flat[0].size))
        fill_surface(self.packed, flat[0], flat[1], out)
        return out.reshape(3, *given[0].shape)


@final
@dataclass(frozen=True)
class Flat(Road):
    """z = 0."""

    @property
    def packed(self) -> Array:
        return np.empty(0)


@final
@dataclass(frozen=True)
class Plane(Road):
    """z = grade·x + bank·y: uphill and up to the left."""

    grade: float = 0.0
    bank: float = 0.0

    @property
    def packed(self) -> Array:
        return _record(PLANE, self.grade, self.bank)


@final
@dataclass(frozen=True)
class Bump(Road):
    """z = ½ rise (1 − cos 2π(x − at)/length) for x from `at` to `at` + `length`; a hole where `rise` is negative.

    It lies between y = `right` and y = `left`, with sides that fall over 0.1 m outside of them; by default it spans the road.
    """

    at: float
    length: float
    rise: float
    left: float = inf
    right: float = -inf

    def __post_init__(self) -> None:
        _check("bump", self.length, "length", self.left, self.right)

    @property
    def packed(self) -> Array:
        return _record(BUMP, self.at, self.length, self.rise, self.left, self.right)


@final
@dataclass(frozen=True)
class Kerb(Road):
    """A kerb: from 0 to `rise` between x = `at` and `at` + `ramp`, as 3s² − 2s³, and level after; sides as a bump's."""

    at: float
    rise: float
    ramp: float = 0.1
    left: float = inf
    right: float = -inf

    def __post_init__(self) -> None:
        _check("step", self.ramp, "ramp", self.left, self.right)

    @property
    def packed(self) -> Array:
        return _record(STEP, self.at, self.ramp, self.rise, self.left, self.right)


@final
@dataclass(frozen=True, eq=False)
class Profile(Road):
    """Heights along parallel lines: `heights` and `slopes` (lines, N) every `spacing` metres of x from 0, repeated without end.

    Along a line a cubic takes heights and slopes at its samples; the lines are `track` apart, the last is the leftmost, and together
    they are centred on y = 0. Between two lines the surface goes over as 3s² − 2s³; beyond the outer ones it is level across. Before
    x = `start` there is no profile, and it grows to full height over `ramp`; the default start has it everywhere.
    """

    heights: Array
    slopes: Array
    spacing: float
    track: float
    start: float = -inf
    ramp: float = 0.0

    def __post_init__(self) -> None:
        faults = Faults()
        for name in ("heights", "slopes"):
            samples = np.array(getattr(self, name), dtype=np.float64)
            samples.setflags(write=False)
            object.__setattr__(self, name, samples)
            if samples.ndim != 2 or samples.shape[1] < 2 or not np.isfinite(samples).all():
                faults.add("they are not samples of a road.", where=name, expected="finite numbers (lines, N)")
        if self.heights.shape != self.slopes.shape:
            faults.add(
                "there is not one slope for each height.",
                where="slopes",
                expected=f"{self.heights.shape}",
                found=f"{self.slopes.shape}",
            )
        for name in ("spacing", "track"):
            if not 0.0 < getattr(self, name) < inf:
                faults.add("it is not a length.", where=name, expected="more than 0 m", found=f"{getattr(self, name)}")
        if self.start != -inf and not 0.0 < self.ramp < inf:
            faults.add(
                "a profile that starts needs a length to grow over.",
                where="ramp",
                expected="more than 0 m",
                found=f"{self.ramp}",
            )
        faults.raise_if_any(ModelError, "road profile")

    @property
    def length(self) -> float:
        """After how many metres it begins again."""
        return self.heights.shape[1] * self.spacing

    @property
    def packed(self) -> Array:
        lines, count = self.heights.shape
        samples = np.stack([self.heights, self.slopes], axis=2).transpose(1, 0, 2).reshape(-1)
        head = (lines, count, self.spacing, self.track, self.start, self.ramp)
        return np.concatenate([(PROFILE, HEADER + samples.size), head, samples]).astype(np.float64)


@final
@dataclass(frozen=True)
class Together(Road):
    """The sum of roads."""

    roads: tuple[Road, ...]

    @property
    def packed(self) -> Array:
        return np.concatenate([road.packed for road in self.roads]) if self.roads else np.empty(0)


@lean
def road_at(r: Array, x: float, y: float) -> tuple[float, float, float]:
    """z, ∂z/∂x and ∂z/∂y of the packed road `r` at one point; NaN where x or y is none."""
    if not (abs(x) < inf and abs(y) < inf):
        return nan, nan, nan
    z, zx, zy = 0.0, 0.0, 0.0
    i = 0 * r.size  # a plain 0 would be compiled once for itself and once for all other numbers
    while i < r.size:
        kind = int(r[i])
        if kind == PLANE:
            part = r[i + 2] * x + r[i + 3] * y, r[i + 2], r[i + 3]
        elif kind == PROFILE:
            part = _profile(r, i, x, y)
        else:
            part = _obstacle(r, i, x, y)
        z, zx, zy = z + part[0], zx + part[1], zy + part[2]
        i += int(r[i + 1])
    return z, zx, zy


@kept
def fill_surface(r: Array, x: Array, y: Array, out: Array) -> None:
    """Rows z, ∂z/∂x and ∂z/∂y of `out` (3, N) of the packed road at points x, y (N,)."""
    for i in range(x.size):
        out[0, i], out[1, i], out[2, i] = road_at(r, x[i], y[i])


@lean
def _ease(s: float) -> tuple[float, float]:
    """3s² − 2s³ and its derivative: from 0 to 1 with level ends, constant outside."""
    if s <= 0.0:
        return 0.0, 0.0
    if s >= 1.0:
        return 1.0, 0.0
    return s * s * (3.0 - 2.0 * s), 6.0 * s * (1.0 - s)


@lean
def _obstacle(r: Array, i: int, x: float, y: float) -> tuple[float, float, float]:
    """A bump or a step: its shape along x by the window of its sides."""
    s = (x - r[i + 2]) / r[i + 3]
    rise = r[i + 4]
    if s <= 0.0 or (s >= 1.0 and int(r[i]) == BUMP):
        return 0.0, 0.0, 0.0
    if int(r[i]) == BUMP:
        z, zx = 0.5 * rise * (1.0 - cos(2.0 * pi * s)), pi * rise * sin(2.0 * pi * s) / r[i + 3]
    else:
        share, rate = _ease(s)
        z, zx = rise * share, rise * rate / r[i + 3]
    left, falls = _ease((r[i + 5] + EDGE - y) / EDGE)
    right, grows = _ease((y - r[i + 6] + EDGE) / EDGE)
    return z * left * right, zx * left * right, z * (left * grows - falls * right) / EDGE


@lean
def _profile(r: Array, i: int, x: float, y: float) -> tuple[float, float, float]:
    """The line or two lines under y, each a cubic between its samples."""
    lines, count, spacing, track = int(r[i + 2]), int(r[i + 3]), r[i + 4], r[i + 5]
    share, growth = 1.0, 0.0
    if r[i + 6] > -inf:
        share, growth = _ease((x - r[i + 6]) / r[i + 7])
        growth /= r[i + 7]
        if share == 0.0:
            return 0.0, 0.0, 0.0
    at = x / spacing
    at -= floor(at / count) * count
    k = min(int(at), count - 1)
    u = at - k
    place = min(max(y / track + 0.5 * (lines - 1), 0.0), lines - 1.0)
    line = min(int(place), max(lines - 2, 0))
    here = i + HEADER + 2 * (k * lines + line)
    beyond = i + HEADER + 2 * ((k + 1 if k + 1 < count else 0) * lines + line)
    z, zx = _cubic(r, here, beyond, u, spacing)
    zy = 0.0
    if lines > 1:
        over, rate = _ease(place - line)
        other, other_x = _cubic(r, here + 2, beyond + 2, u, spacing)
        zy = (other - z) * rate / track
        z, zx = z + over * (other - z), zx + over * (other_x - zx)
    return share * z, share * zx + growth * z, share * zy


@lean
def _cubic(r: Array, here: int, beyond: int, u: float, h: float) -> tuple[float, float]:
    """Value and derivative at u in [0, 1] of the cubic with the heights and slopes at two samples h apart."""
    z0, s0, z1, s1 = r[here], r[here + 1] * h, r[beyond], r[beyond + 1] * h
    a, b = 2.0 * (z0 - z1) + s0 + s1, 3.0 * (z1 - z0) - 2.0 * s0 - s1
    return ((a * u + b) * u + s0) * u + z0, ((3.0 * a * u + 2.0 * b) * u + s0) / h


def _record(kind: int, *numbers: float) -> Array:
    return np.array([kind, 2 + len(numbers), *numbers], dtype=np.float64)


def _check(what: str, length: float, name: str, left: float, right: float) -> None:
    faults = Faults()
    if not 0.0 < length < inf:
        faults.add("it is not a length.", where=name, expected="more than 0 m", found=f"{length}")
    if not right < left:
        faults.add("they leave no width.", where="right, left", expected="right < left", found=f"{right:g}, {left:g}")
    faults.raise_if_any(ModelError, what)


CLASSES = {name: 16e-6 * 4.0**k for k, name in enumerate("ABCDEFGH")}  # m³, geometric means of G_d(n_0), ISO 8608


def roughness(n: ArrayLike, kind: str | float, waviness: float = 2.0) -> Array:
    """G_d(n) in m³ at n in cycles/m; `kind` is a class A to H, or G_d(n_0) itself."""
    level = CLASSES[kind] if isinstance(kind, str) else kind
    return level * (np.asarray(n, dtype=np.float64) / REFERENCE) ** -waviness


def isotropic_coherence(n: ArrayLike, distance: ArrayLike, waviness: float = 2.0) -> Array:
    """Cross-spectrum of two parallel lines over G_d: 2 (u/2)^ν K_ν(u)/Γ(ν), u = 2π n·distance, ν = waviness/2.

    It is what a surface has that is equally rough in all directions (Dodds and Robson, J. Sound and Vibration 31, 1973): one for waves
    much longer than the distance, zero for much shorter ones. The surface's two-dimensional spectrum is then ∝ (n² + m²)^−(w+1)/2, and
    the integral over m of it by cos(2π m·distance) is the Bessel function.
    """
    order = 0.5 * waviness
    u = 2.0 * pi * np.asarray(n, dtype=np.float64) * np.abs(np.asarray(distance, dtype=np.float64))
    safe = np.where(u > 0.0, u, 1.0)
    value = 2.0 * (0.5 * safe) ** order * scipy.special.kv(order, safe) / scipy.special.gamma(order)
    return np.where(u > 0.0, value, 1.0)


def rough_road(
    kind: str | float,
    rng: np.random.Generator,
    *,
    length: float = 1000.0,
    track: float = 1.5,
    lines: int = 2,
    band: tuple[float, float] = BAND,
    waviness: float = 2.0,
    start: float = -inf,
    ramp: float = 0.0,
) -> Profile:
    """A road of class `kind` ("A" to "H", or G_d(n_0) in m³) over `band` (cycles/m), for wheels `track` metres apart.

    Two lines serve a car that stays in its lane: left wheels on one, right wheels on the other. A car that moves sideways needs more;
    one line is the same for both wheels. Lines are coherent as :func:`isotropic_coherence` says. `start` and `ramp` as of a Profile.
    """
    _check_roughness(kind, length, lines, band, waviness)
    first, last = int(np.ceil(band[0] * length)), int(np.floor(band[1] * length))
    n = np.arange(first, last + 1) / length
    count = int(np.ceil(PER_WAVE * band[1] * length))
    amplitude = np.sqrt(2.0 * roughness(n, kind, waviness) / length)

    phases = np.exp(2j * pi * rng.random((n.size, lines)))
    apart = track * np.abs(np.subtract.outer(np.arange(lines), np.arange(lines)))
    square, turn = np.linalg.eigh(isotropic_coherence(n[:, None, None], apart, waviness))
    # the symmetric root, which is unique: the same generator makes the same road on every machine
    root = (turn * np.sqrt(np.maximum(square, 0.0))[:, None, :]) @ turn.transpose(0, 2, 1)
    waves = np.zeros((lines, count // 2 + 1), dtype=np.complex128)
    waves[:, first : last + 1] = 0.5 * count * amplitude * np.einsum("nij,nj->in", root, phases)

    heights = np.fft.irfft(waves, count)
    slopes = np.fft.irfft(waves * (2j * pi / length) * np.arange(count // 2 + 1), count)
    return Profile(heights, slopes, length / count, track, start, ramp)


def _check_roughness(kind: str | float, length: float, lines: int, band: tuple[float, float], waviness: float) -> None:
    faults = Faults()
    if isinstance(kind, str):
        if kind not in CLASSES:
            faults.add(f"'{kind}' is not a roughness class.", where="kind", hint=did_you_mean(kind, tuple(CLASSES)))
    elif not 0.0 <= kind < inf:
        faults.add("it is not a roughness.", where="kind", expected="G_d(n_0) in m³, 0 or more", found=f"{kind}")
    if lines < 1:
        faults.add("a road needs a line.", where="lines", expected="1 or more", found=f"{lines}")
    if not 0.0 < waviness < inf:
        faults.add("it is not a waviness.", where="waviness", expected="about 2", found=f"{waviness}")
    if not 0.0 < band[0] < band[1] < inf:
        faults.add("it is not a band.", where="band", expected="0 < lowest < highest, cycles/m", found=f"{band}")
    elif not 1.0 / band[0] <= length < inf:
        faults.add(
            "the longest wave does not fit on the road.",
            where="length",
            expected=f"at least {1.0 / band[0]:.4g} m",
            found=f"{length:g} m",
            hint="Make the road longer, or raise the lowest wave number of the band.",
        )
    faults.raise_if_any(ModelError, "rough road")
