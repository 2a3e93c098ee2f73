"""The families of periodic motions that an excitation is chosen from: finite Fourier series and periodic B-splines.

A motion is x(φ) = B(φ) C with phases φ, a basis B (N, count) and coefficients C (count, n). A family is an object with its settings; it
makes the basis with its two derivatives, random coefficients, and the trajectory of given ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from veridyn.arrays import Array
from veridyn.settings import Rule, Settings, at_least
from veridyn.signals.trajectory import FourierTrajectory, SplineTrajectory, fourier_basis, spline_basis

Trajectory = FourierTrajectory | SplineTrajectory
DEGREE = 5  # of the splines: accelerations are three times differentiable


def _is_frequency(value: Any) -> bool:
    ends = value if isinstance(value, tuple | list) else (value, value)
    numbers = [isinstance(x, int | float | np.number) and not isinstance(x, bool) for x in ends]
    return len(ends) == 2 and all(numbers) and 0.0 < ends[0] <= ends[1] < np.inf


FREQUENCY = Rule(_is_frequency, "a number above 0, or two of them, the lower one first")


class Shape(Settings, ABC):
    """Base of the families; `name` is the word that stands for one with default settings."""

    name: ClassVar[str]
    title: ClassVar[str]

    frequency: float | tuple[float, float]

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest frequency, Hz."""
        low, high = self.frequency if isinstance(self.frequency, tuple | list) else (self.frequency, self.frequency)
        return float(low), float(high)

    @property
    @abstractmethod
    def count(self) -> int:
        """Coefficients of one coordinate."""

    @property
    @abstractmethod
    def fastest(self) -> float:
        """How many of its shortest waves fit into a period."""

    @abstractmethod
    def basis(self, phase: Array) -> Array:
        """B, B' and B'' (3, N, count) at phases (N,) from 0 to 1."""

    @abstractmethod
    def still(self, centre: Array) -> Array:
        """The coefficients (count, n) of standing at a place (n,)."""

    @abstractmethod
    def drawn(self, rng: np.random.Generator, n: int) -> Array:
        """Random coefficients (count, n) about zero."""

    @abstractmethod
    def trajectory(self, C: Array, frequency: float, start: float = 0.0) -> Trajectory:
        """The motion of coefficients (count, n) at a frequency in Hz."""


@dataclass(frozen=True, repr=False)
class Fourier(Shape):
    """A finite Fourier series, (12)–(15) of paper 002: periodic, smooth, and limited to a known band.

    Parameters
    ----------
    harmonics : int of at least 1
        Harmonics of each coordinate; 5 by default.
    frequency : float above 0, or two of them
        Frequency of the period in Hz, 0.1 by default; two numbers are the ends between which it is chosen.

    Examples
    --------
    >>> vd.Fourier(harmonics=8)
    Fourier(harmonics=8)
    """

    name: ClassVar[str] = "fourier"
    title: ClassVar[str] = "Fourier series"

    harmonics: Annotated[int, at_least(1)] = 5
    frequency: Annotated[float | tuple[float, float], FREQUENCY] = 0.1

    @property
    def count(self) -> int:
        return 2 * self.harmonics + 1

    @property
    def fastest(self) -> float:
        return float(self.harmonics)

    def basis(self, phase: Array) -> Array:
        return fourier_basis(phase, self.harmonics)

    def still(self, centre: Array) -> Array:
        C = np.zeros((self.count, len(centre)))
        C[0] = centre
        return C

    def drawn(self, rng: np.random.Generator, n: int) -> Array:
        C = rng.standard_normal((self.count, n))
        C[0] *= 0.0
        return C

    def trajectory(self, C: Array, frequency: float, start: float = 0.0) -> FourierTrajectory:
        H = self.harmonics
        k = np.arange(1, H + 1)[:, None]
        return FourierTrajectory(C[0], (C[1 : H + 1] / k).T, (C[H + 1 :] / k).T, frequency, start)


@dataclass(frozen=True, repr=False)
class Spline(Shape):
    """Periodic B-splines of degree 5: a motion that may rest in one part of its period and hurry in another.

    Parameters
    ----------
    points : int of at least 6
        Control points of each coordinate over one period; 16 by default.
    frequency : float above 0, or two of them
        Frequency of the period in Hz, 0.1 by default; two numbers are the ends between which it is chosen.

    Examples
    --------
    >>> vd.estimators.Spline(frequency=(0.05, 0.2))
    Spline(frequency=(0.05, 0.2))
    """

    name: ClassVar[str] = "spline"
    title: ClassVar[str] = "B-spline"

    points: Annotated[int, at_least(DEGREE + 1)] = 16
    frequency: Annotated[float | tuple[float, float], FREQUENCY] = 0.1

    @property
    def count(self) -> int:
        return self.points

    @property
    def fastest(self) -> float:
        return self.points / 4.0

    def basis(self, phase: Array) -> Array:
        return spline_basis(phase, self.points, DEGREE)

    def still(self, centre: Array) -> Array:
        return np.tile(np.asarray(centre, dtype=np.float64), (self.points, 1))

    def drawn(self, rng: np.random.Generator, n: int) -> Array:
        return rng.uniform(-1.0, 1.0, (self.points, n))

    def trajectory(self, C: Array, frequency: float, start: float = 0.0) -> SplineTrajectory:
        return SplineTrajectory(C, frequency, DEGREE, start)


SHAPES: dict[str, type[Shape]] = {kind.name: kind for kind in (Fourier, Spline)}
