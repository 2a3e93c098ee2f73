"""The band of a sensor, and how signals of sensors with different bands are brought to one.

A sensor and its conditioning pass y = H x, with H a Butterworth low-pass that lags. Equations that add signals of several
sensors hold after filtering only where every signal has met the same filter. Where H is known it can be divided out:

    equalised = (L / H) y,     L the zero-phase filter that is common to all

L must fall faster than H, or the noise of the slow sensors is all that is left: :func:`noise_gain` says by how much it grows.
Signals of N samples are filtered whole, by their spectrum; a straight line between their ends passes by itself, and both ends are continued
by reflection, so that the first and last few periods of a cutoff are known less well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Faults
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.samples import as_rate, as_samples

Array = NDArray[np.float64]
Response = Callable[[Array], NDArray[np.complex128]]

GRID = 2049  # frequencies at which a gain is averaged


@dataclass(frozen=True)
class Band:
    """A causal low-pass of Butterworth's kind: −3 dB at `cutoff` Hz, `order` poles; it delays low frequencies by `delay`."""

    cutoff: float
    order: int = 2

    def __post_init__(self) -> None:
        faults = Faults()
        if not (np.isfinite(self.cutoff) and self.cutoff > 0.0):
            faults.add("its cutoff is not usable.", where="band", expected="Hz above zero", found=f"{self.cutoff}")
        if not (isinstance(self.order, int) and 1 <= self.order <= 12):
            faults.add(
                "its order is not usable.", where="band", expected="a whole number, 1 to 12", found=f"{self.order}"
            )
        faults.raise_if_any(DataError)

    def response(self, frequency: ArrayLike) -> NDArray[np.complex128]:
        """H at frequencies in Hz, any shape."""
        s = 1j * np.asarray(frequency, dtype=np.float64) / self.cutoff
        k = np.arange(self.order)
        poles = np.exp(0.5j * np.pi * (2 * k + self.order + 1) / self.order)
        return np.prod(-poles / (s[..., None] - poles), axis=-1)

    @property
    def delay(self) -> float:
        """Seconds by which a slow signal comes late: −dφ/dω at zero."""
        k = np.arange(self.order)
        return float(np.sin(0.5 * np.pi * (2 * k + 1) / self.order).sum() / (2.0 * np.pi * self.cutoff))


def within(x: ArrayLike, rate: float, band: Band, where: str = "signal") -> Array:
    """What a sensor of that band makes of the truth `x` (N, ...), sampled at `rate` Hz."""
    return _through(x, rate, band.response, band.delay, where)


def equalised(x: ArrayLike, rate: float, own: Band | None, common: Butterworth, where: str = "signal") -> Array:
    """A signal (N, ...) as if its sensor had no band but `common`, which acts forwards and backwards; own None: it has none."""
    if own is None:
        return _through(x, rate, lambda f: common.gain(f, rate).astype(np.complex128), 0.0, where)
    return _through(x, rate, lambda f: common.gain(f, rate) / own.response(f), -own.delay, where)


def noise_gain(own: Band, common: Butterworth, rate: float) -> float:
    """Standard deviation of white noise after :func:`equalised`, over what `common` alone leaves of it."""
    f = np.linspace(0.0, as_rate(rate) / 2.0, GRID)
    left = common.gain(f, rate)
    return float(np.sqrt((left**2 / np.abs(own.response(f)) ** 2).sum() / (left**2).sum()))


def _through(x: ArrayLike, rate: float, response: Response, delay: float, where: str) -> Array:
    rate = as_rate(rate, where)
    samples = as_samples(x, least=8, where=where)
    n = len(samples)
    t = np.arange(n).reshape((n,) + (1,) * (samples.ndim - 1))
    slope = (samples[-1] - samples[0]) / (n - 1)
    line = samples[0] + slope * t
    bent = samples - line  # zero at both ends
    around = np.concatenate([bent, -bent[-2:0:-1]], axis=0)  # odd about both ends, so it repeats without a step
    f = np.asarray(np.fft.rfftfreq(len(around), 1.0 / rate), dtype=np.float64)
    H = response(f).reshape((len(f),) + (1,) * (samples.ndim - 1))
    passed = np.fft.irfft(np.fft.rfft(around, axis=0) * H, len(around), axis=0)[:n]
    return passed + line - slope * rate * delay
