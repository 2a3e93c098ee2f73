"""Butterworth filters as second-order sections, by closed form: importing SciPy's designs takes longer than most logs take to filter.

Poles of the prototype are −e^{jπm/2n}, m = −n + 1, −n + 3 … n − 1, scaled by 4 tan(πf/rate) and mapped by z = (4 + s)/(4 − s). A section is
b₀ b₁ b₂ 1 a₁ a₂; those with poles nearest to the unit circle come last, and the gain stands in the first, as in SciPy.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
