"""Springs, dampers and bars that are not straight lines: what their bends would do to the straight lines of Table II.

The model is widened by columns that are linear in their parameters like all others: (z − z̄)² and (z − z̄)³ beside each spring, |ż| and ż
|ż| beside each damper (one that pulls harder than it pushes, one that stiffens), d³ beside each bar. From the widened fit follows the
straight line nearest to each curve over the travel of the drives: the secant. Where that line differs from the one that the 33 parameters
found directly, the difference is an error of the straight model, and can be had without knowing any truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.estimators.weighted import WLS
from veridyn.identify.fitting import fit_of
from veridyn.identify.observation import observation
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.identify.validate import Validation, validate
from veridyn.model.elements import Element
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree

Array = NDArray[np.float64]
WHEELS = (1, 2, 3, 4)
BARS = {"arf": (1, 2), "arr": (3, 4)}
# What follows the symbol → unit and typical size, chosen of the order that bends a spring by half over its travel.
KINDS = {
    "k2": ("N/m^2", 3e4),
    "k3": ("N/m^3", 1e6),
    "h1": ("N*s/m", 500.0),
    "h2": ("N*s^2/m^2", 1000.0),
}


@dataclass(frozen=True, eq=False)
class Bent:
    """The widened fit, the secants of its curves by the names of Table II, its validation, and the motions it learned from, with bends."""

    fit: Fit
    secants: dict[str, float]
    check: Validation
    motions: tuple[Motion, ...]


def widened(tree: Tree) -> Tree:
    """The tree with bends of springs, dampers and bars estimated as well."""
    parts = [
        Element(
            kind="drive_gain",
            on={f"z{i}": 1.0},
            value=0.0,
            name=f"{kind}_{i}",
            signal=f"bend.{kind}_{i}",
            typical=size,
            unit=unit,
        )
        for i in WHEELS
        for kind, (unit, size) in KINDS.items()
    ]
    for bar, (left, right) in BARS.items():
        on = {f"z{left}": 1.0, f"z{right}": -1.0}
        parts.append(
            Element(
                kind="drive_gain",
                on=on,
                value=0.0,
                name=f"k3_{bar}",
                signal=f"bend.k3_{bar}",
                typical=4e5,
                unit="N/m^3",
            )
        )
    return tree.with_elements(parts)


def with_bends(m: Motion, tree: Tree, centre: Array) -> Motion:
    """The motion with the bends' columns as signals; a gain's column is the signal's negative. `centre` (4,): the mean clearances."""
    z, zd = _clearances(m, tree)
    signals = dict(m.signals)
    for i in WHEELS:
        c, v = z[:, i - 1] - centre[i - 1], zd[:, i - 1]
        columns = {"k2": c**2, "k3": c**3, "h1": np.abs(v), "h2": v * np.abs(v)}
        signals |= {f"bend.{kind}_{i}": -x for kind, x in columns.items()}
    for bar, (left, right) in BARS.items():
        signals[f"bend.k3_{bar}"] = -((z[:, left - 1] - z[:, right - 1]) ** 3)
    return replace(m, signals=signals)


def _clearances(m: Motion, tree: Tree) -> tuple[Array, Array]:
    at = [tree.coordinates.index(f"z{i}") for i in WHEELS]
    return m.q[:, at], m.qd[:, at]


def bent(tree: Tree, seen: Sequence[Motion], unseen: Motion, rows: Sequence[str], how: Sampling) -> Bent:
    """Identify with bends, and find the secants over the drives `seen`."""
    wide = widened(tree)
    z = np.concatenate([_clearances(m, tree)[0] for m in seen])
    zd = np.concatenate([_clearances(m, tree)[1] for m in seen])
    centre = z.mean(axis=0)
    learned = tuple(with_bends(m, tree, centre) for m in seen)
    # Not by `identify`, which would refuse a bend of zero: these gains stand for curves, and a straight spring has none.
    fit = fit_of(wide, solve(observation(wide, learned, rows, how)), WLS.title)
    check = validate(fit, with_bends(unseen, tree, centre), sampling=how)
    values = dict(zip(fit.names, (float(x) for x in fit.values), strict=True))
    return Bent(fit, _secants(values, z, zd, centre), check, learned)


def _secants(x: dict[str, float], z: Array, zd: Array, centre: Array) -> dict[str, float]:
    """Slope and height of the line nearest to each curve, added to the straight part."""
    out = dict(x)
    for i in WHEELS:
        clearance, v = z[:, i - 1], zd[:, i - 1]
        c = clearance - centre[i - 1]
        slope, height = _line(c, np.ones_like(c), x[f"k2_{i}"] * c**2 + x[f"k3_{i}"] * c**3)
        out[f"k_{i}"] += slope
        damper = x[f"h1_{i}"] * np.abs(v) + x[f"h2_{i}"] * v * np.abs(v)
        viscous, dry = _line(v, np.sign(v), damper)
        out[f"h_{i}"] += viscous
        out[f"fs_{i}"] += dry
        out[f"off_{i}"] += height - slope * centre[i - 1] + float(np.mean(damper - viscous * v - dry * np.sign(v)))
    for bar, (left, right) in BARS.items():
        d = z[:, left - 1] - z[:, right - 1]
        out[f"k_{bar}"] += x[f"k3_{bar}"] * float((d**4).sum() / (d**2).sum())
    return out


def _line(a: Array, b: Array, force: Array) -> tuple[float, float]:
    """The two numbers that make a·x + b·y the nearest to the force."""
    columns = np.stack([a, b], axis=1)
    scale = np.abs(columns).max(axis=0)
    found = np.linalg.lstsq(columns / scale, force)[0] / scale
    return float(found[0]), float(found[1])
