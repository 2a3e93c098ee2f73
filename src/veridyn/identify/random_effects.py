"""One parameter of many machines: its mean, how much machines really differ, and which of them stand apart.

Machine i has x_i = μ + u_i + e_i, with u_i ~ N(0, τ²) of the machine and e_i ~ N(0, σ_i²) of its estimate. τ² is that of Paule and Mandel,

    Σ (x_i − μ)² / (σ_i² + τ²) = k − 1,      μ the mean with weights 1/(σ_i² + τ²),

zero where the estimates scatter no more than their deviations say. Whether machine i belongs to the others is asked of μ and τ without
it: x_i − μ has the variance V = σ_i² + τ² + σ_μ², in which τ² is known with a variance of 2/Σ w², w = 1/(σ² + τ²). So (x_i − μ)/√V has
about Student's t distribution with V² Σ w² degrees of freedom, (k − 2)/(k − 1) of them where τ² and μ come from the same k − 1 machines.

References: Paule and Mandel, 1982, Journal of Research of the National Bureau of Standards 87, 377; Satterthwaite, 1946, Biometrics
Bulletin 2, 110.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import root_scalar
from scipy.special import stdtr  # scipy.stats takes a second to import

Array = NDArray[np.float64]
FEWEST = 4  # machines, from which on one can be told from the others


@dataclass(frozen=True)
class Spread:
    """`mean` with its `sigma`, and `between`, the standard deviation τ between machines, of `count` of them."""

    mean: float
    sigma: float
    between: float
    count: int


def spread_of(values: ArrayLike, sigma: ArrayLike) -> Spread:
    """Mean and spread of one parameter from the values (k,) and deviations (k,) of k machines, k at least one."""
    x, s = np.asarray(values, dtype=np.float64), np.asarray(sigma, dtype=np.float64)

    def excess(square: float) -> float:
        w = 1.0 / (s**2 + square)
        mean = float(w @ x / w.sum())
        return float(w @ (x - mean) ** 2) - (len(x) - 1)

    square = 0.0
    if len(x) > 1 and excess(0.0) > 0.0:
        size = float(np.ptp(x)) ** 2
        square = float(root_scalar(excess, bracket=(0.0, size * len(x)), xtol=1e-12 * size).root)
    w = 1.0 / (s**2 + square)
    return Spread(float(w @ x / w.sum()), float(1.0 / np.sqrt(w.sum())), float(np.sqrt(square)), len(x))


def apart(values: ArrayLike, sigma: ArrayLike, significance: float) -> dict[int, float]:
    """Machines that do not belong to the others: number → by how many deviations it is off, the farthest first.

    `significance` is that of all machines of this parameter together. The least likely is taken out before the next is asked, so that it
    does not widen the spread by which that one is judged; deviations are those from the machines that are left. Fewer than `FEWEST`
    machines say nothing.
    """
    x, s = np.asarray(values, dtype=np.float64), np.asarray(sigma, dtype=np.float64)
    left: list[int] = list(range(len(x)))
    out: list[int] = []
    while len(left) >= FEWEST:
        asked = [_belonging(i, left, x, s) for i in left]
        least = min(range(len(left)), key=lambda k: asked[k][0])
        if asked[least][0] * len(left) > significance:
            break
        out.append(left.pop(least))
    found = {i: _belonging(i, left, x, s)[1] for i in out}
    return dict(sorted(found.items(), key=lambda item: -abs(item[1])))


def _belonging(i: int, all_: list[int], x: Array, s: Array) -> tuple[float, float]:
    """The chance of a machine as far from the others as i, and by how many deviations it is off."""
    others = [k for k in all_ if k != i]
    known = spread_of(x[others], s[others])
    variance = s[i] ** 2 + known.between**2 + known.sigma**2
    freedom = variance**2 * float(np.sum((s[others] ** 2 + known.between**2) ** -2.0)) * (1.0 - 1.0 / len(others))
    off = float((x[i] - known.mean) / np.sqrt(variance))
    return 2.0 * float(stdtr(freedom, -abs(off))), off
