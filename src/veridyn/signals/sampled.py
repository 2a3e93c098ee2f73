"""A reference motion from a table: positions at times, with or without their rates, made a function of time.

With rates and accelerations every interval is the polynomial of degree five that meets them at both ends, so that the motion goes
through the table to the second derivative. Without, it is the interpolating spline of degree five, whose jerk has no jumps.
Units: rad or m, s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BSpline, PPoly, make_interp_spline

from veridyn.errors import DataError, Faults

Array = NDArray[np.float64]
DEGREE = 5


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
