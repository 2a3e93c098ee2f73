"""Random roads of a roughness class of ISO 8608, for several wheel tracks, from an explicit generator.

    G_d(n) = G_d(n_0) (n/n_0)^−w,    n_0 = 0.1 cycles/m,    w = 2;    class A: G_d(n_0) = 16e-6 m³, each class after it four times more

n counts cycles per metre and G_d is one-sided: the variance of the height is its integral over the band. The road is a sum of
sinusoids of these amplitudes with random phases, one for each n = k/length of the band, so it begins again after `length`.
"""

from __future__ import annotations

from math import inf, pi

import numpy as np
import scipy.special
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import Faults, ModelError, did_you_mean
from veridyn.mechanics.ground.road import Profile

Array = NDArray[np.float64]

REFERENCE = 0.1  # cycles/m, n_0
CLASSES = {name: 16e-6 * 4.0**k for k, name in enumerate("ABCDEFGH")}  # m³, geometric means of G_d(n_0), ISO 8608
BAND = (0.011, 2.83)  # cycles/m: wavelengths from 91 m to 0.35 m, those of the standard's tables
PER_WAVE = 16  # samples of the shortest wave: cubics between them then err by 6e-5 of its height and 5e-4 of its slope


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
    _check(kind, length, lines, band, waviness)
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


def _check(kind: str | float, length: float, lines: int, band: tuple[float, float], waviness: float) -> None:
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
