"""The suspension as straight lines or as curves, and the straight lines nearest to the curves: what Table II reports.

The curved model has columns that are linear in their parameters like all others: (z − z̄)² and (z − z̄)³ beside each spring, |ż| and ż|ż|
beside each damper (one that pulls harder than it pushes, one that stiffens), d³ beside each bar. The straight line nearest to each
curve over the travel of the drives is its secant, and is linear in the parameters too:

    x_reported = J x,   cov x_reported = J C Jᵀ,

with J = 1 for the straight model. The model that predicts the drive it did not learn from is reported: each training drive is predicted
by a model that learned from the others alone; the sum over rows of the squared errors, each in units of its row's variance, decides. The
drive that validates the study takes no part. The same fits of single drives say how much estimates vary from drive to drive
(:mod:`veridyn.identify.fleet`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.estimator import WLS, fit_of
from veridyn.identify.estimators.coloured import sandwich
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.fleet import TakeVariation, take_variation
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import Hac, IdentifySettings
from veridyn.identify.validate import validate
from veridyn.model.elements.element import Element, drive_gain
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.machine import TEN_ROWS
from veridyn.papers.car.simulator.run import nearest_line

WHEELS = (1, 2, 3, 4)
BARS = {"arf": (1, 2), "arr": (3, 4)}
# What follows the symbol → unit and typical size, chosen of the order that bends a spring by half over its travel.
KINDS = {"k2": ("N/m^2", 3e4), "k3": ("N/m^3", 1e6), "h1": ("N*s/m", 500.0), "h2": ("N*s^2/m^2", 1000.0)}
BAR_CUBE = ("N/m^3", 4e5)
BENDS = (*(f"{kind}_{i}" for i in WHEELS for kind in KINDS), *(f"k3_{bar}" for bar in BARS))
MEMORY = (
    1.0  # s, over which residuals may be correlated: three times the memory of the filter of the chassis' rows; chosen
)
STRAIGHT, CURVED = "straight", "curved"
WheelName = TypeVar("WheelName", int, str)  # by its number or by the name of its coordinate
# Parameters whose drive-to-drive variation is pooled, by how their names begin.
GROUPS = {
    "k_ar": "bars",
    "k_": "springs",
    "off_": "springs",
    "h_": "dampers",
    "fs_": "dampers",
    "Cx": "air",
    "zero_fx": "air",
}


class CarModel(Protocol):
    """What is fitted: a machine with straight suspensions or with curves, the rows it is fitted to, and what is reported of it.

    `straight` is the same machine without the curves.
    """

    @property
    def straight(self) -> Machine: ...

    @property
    def curved(self) -> bool: ...

    @property
    def rows(self) -> tuple[str, ...]: ...

    @property
    def machine(self) -> Machine: ...

    def prepared(self, motions: Sequence[Motion]) -> tuple[Motion, ...]: ...

    def secants(self, names: Sequence[str], motions: Sequence[Motion]) -> tuple[tuple[str, ...], Array]: ...


@dataclass(frozen=True, eq=False)
class SuspensionModel:
    """A machine with straight suspensions, or the same with curves about the mean clearances `centre` (4,)."""

    straight: Machine
    curved: bool
    centre: Array
    rows: tuple[str, ...] = TEN_ROWS

    @property
    def machine(self) -> Machine:
        return widened(self.straight) if self.curved else self.straight

    def prepared(self, motions: Sequence[Motion]) -> tuple[Motion, ...]:
        """The motions with the columns of the curves as signals."""
        return tuple(with_bends(m, self.columns([m])) if self.curved else m for m in motions)

    def columns(self, motions: Sequence[Motion]) -> dict[str, Array]:
        """The bends' columns along the motions."""
        z, zd = (np.concatenate(x) for x in zip(*(_clearances(m, self.straight) for m in motions), strict=True))
        return bend_columns(WHEELS, BARS, z, zd, self.centre)

    def secants(self, names: Sequence[str], motions: Sequence[Motion]) -> tuple[tuple[str, ...], Array]:
        """Names of the parameters that are reported, and J: slope and height of the line nearest to each curve over the motions."""
        return secants(self, names, motions)


@dataclass(frozen=True, eq=False)
class SuspensionFit:
    """A fit of one model: `names`, `values`, `covariance` are those reported, `secants` is J, `motions` those learned from, with bends."""

    model: CarModel
    fit: Fit
    names: tuple[str, ...]
    secants: Array
    motions: tuple[Motion, ...]

    @property
    def values(self) -> Array:
        return self.secants @ self.fit.values

    @property
    def covariance(self) -> Array:
        return self.secants @ self.fit.covariance @ self.secants.T

    @property
    def sigma(self) -> Array:
        """Standard deviations by noise alone."""
        return np.sqrt(np.diag(self.covariance))


def mean_clearances(machine: Machine, motions: Sequence[Motion]) -> Array:
    """Over all samples of the motions (4,)."""
    return np.concatenate([_clearances(m, machine)[0] for m in motions]).mean(axis=0)


def fitted(
    model: CarModel, motions: Sequence[Motion], how: Sampling, over: Sequence[Motion] | None = None
) -> SuspensionFit:
    """Weighted least squares of a model on motions, allowing for residuals with MEMORY; secants over the travel of `over`, by default
    theirs."""
    machine, learned = model.machine, model.prepared(motions)
    # Not by `identify`, which would refuse a bend of zero: these gains stand for curves, and a straight spring has none.
    samples = stream(machine, learned, model.rows, IdentifySettings(sampling=how))
    s = solve(samples.observe())
    rate = 1.0 / (float(np.median(np.diff(motions[0].t))) * how.decimate)
    made = sandwich(samples, s, hac=Hac(round(MEMORY * rate)))
    fit = replace(fit_of(machine, s, WLS.title), covariance=made.covariance)
    names, J = model.secants(fit.names, over or motions)
    return SuspensionFit(model, fit, names, J, learned)


def widened(machine: Machine) -> Machine:
    """The machine with bends of springs, dampers and bars estimated as well."""
    bends = [bend({f"z{i}": 1.0}, f"{kind}_{i}", *KINDS[kind]) for i in WHEELS for kind in KINDS]
    bends += [bend({f"z{a}": 1.0, f"z{b}": -1.0}, f"k3_{bar}", *BAR_CUBE) for bar, (a, b) in BARS.items()]
    return machine.with_elements(bends)


def bend(on: Mapping[str, float], name: str, unit: str, typical: float) -> Element:
    """A gain on the column of a bend, which is a signal of the motion."""
    return replace(drive_gain(on, f"bend.{name}", 0.0, name), typical=typical, unit=unit)


def with_bends(m: Motion, columns: Mapping[str, Array]) -> Motion:
    """The motion with the bends' columns as signals; a gain's column is the signal's negative."""
    return replace(m, signals={**m.signals, **{f"bend.{name}": -x for name, x in columns.items()}})


def bend_columns(
    wheels: Sequence[WheelName], bars: Mapping[str, tuple[WheelName, WheelName]], z: Array, zd: Array, centre: Array
) -> dict[str, Array]:
    """The force of each bend with a parameter of 1, (N,), by the clearances z (N, 4) of `wheels` about `centre` (4,)."""
    columns: dict[str, Array] = {}
    for k, i in enumerate(wheels):
        c, v = z[:, k] - centre[k], zd[:, k]
        columns |= {f"k2_{i}": c**2, f"k3_{i}": c**3, f"h1_{i}": np.abs(v), f"h2_{i}": v * np.abs(v)}
    at = {i: z[:, k] for k, i in enumerate(wheels)}
    return columns | {f"k3_{bar}": (at[left] - at[right]) ** 3 for bar, (left, right) in bars.items()}


def _clearances(m: Motion, machine: Machine) -> tuple[Array, Array]:
    return coordinates_of(m, machine, [f"z{i}" for i in WHEELS])


def coordinates_of(m: Motion, machine: Machine, names: Sequence[str]) -> tuple[Array, Array]:
    """Some coordinates and their rates, (N, k) each."""
    at = [machine.coordinates.index(name) for name in names]
    return m.q[:, at], m.qd[:, at]


def secants(model: SuspensionModel, names: Sequence[str], motions: Sequence[Motion]) -> tuple[tuple[str, ...], Array]:
    """Names of the parameters that are reported, and J: slope and height of the line nearest to each curve over the motions."""
    reported = tuple(n for n in names if n not in BENDS)
    J = np.zeros((len(reported), len(names)))
    J[np.arange(len(reported)), [names.index(n) for n in reported]] = 1.0
    if not model.curved:
        return reported, J
    z, zd = (np.concatenate(x) for x in zip(*(_clearances(m, model.straight) for m in motions), strict=True))
    forces = model.columns(motions)

    def add(name: str, bend: str, value: float) -> None:
        J[reported.index(name), names.index(bend)] += value

    for i in WHEELS:
        v, c = zd[:, i - 1], z[:, i - 1] - model.centre[i - 1]
        for bend in (f"k2_{i}", f"k3_{i}"):
            slope, height = nearest_line(c, np.ones_like(c), forces[bend])
            add(f"k_{i}", bend, slope)
            add(f"off_{i}", bend, height - slope * float(model.centre[i - 1]))
        for bend in (f"h1_{i}", f"h2_{i}"):
            viscous, dry = nearest_line(v, np.sign(v), forces[bend])
            add(f"h_{i}", bend, viscous)
            add(f"fs_{i}", bend, dry)
            add(f"off_{i}", bend, float(np.mean(forces[bend] - viscous * v - dry * np.sign(v))))
    for bar, (left, right) in BARS.items():
        d = z[:, left - 1] - z[:, right - 1]
        add(f"k_{bar}", f"k3_{bar}", float((d**4).sum() / (d**2).sum()))
    return reported, J


@dataclass(frozen=True, eq=False)
class Selected:
    """`errors`: model → rms over rows of rms/std on drives it did not learn from; `chosen` and `other` learned from all of them."""

    errors: Mapping[str, float]
    chosen: SuspensionFit
    other: SuspensionFit
    takes: TakeVariation

    @property
    def name(self) -> str:
        return CURVED if self.chosen.model.curved else STRAIGHT

    def of(self, curved: bool) -> SuspensionFit:
        return self.chosen if self.chosen.model.curved == curved else self.other


def kind_of(name: str) -> str:
    """The group of a parameter of Table II."""
    for start, kind in GROUPS.items():
        if name.startswith(start):
            return kind
    return "masses" if name in ("M1", "M2", "M3", "M4") else "chassis"


def selected(machine: Machine, motions: Sequence[Motion], how: Sampling) -> Selected:
    """Fit both models on all drives, and on all but one after the other."""
    centre = mean_clearances(machine, motions)
    return better(
        [SuspensionModel(machine, curved, centre) for curved in (False, True)],
        motions,
        how,
        lambda model: [fitted(model, [m], how, over=motions) for m in motions],
        lambda singles: _held_out(singles, motions, how),
        kind_of,
    )


def better(
    models: Sequence[CarModel],
    motions: Sequence[Motion],
    how: Sampling,
    parts: Callable[[CarModel], list[SuspensionFit]],
    squares: Callable[[Sequence[SuspensionFit]], Sequence[float]],
    kind: Callable[[str], str],
) -> Selected:
    """Of a straight and a curved model the one whose fits of `parts` predict what they did not learn from with smaller `squares` of errors.

    `kind`: the group of a parameter, over which what varies from part to part is pooled.
    """
    errors: dict[str, float] = {}
    singles: dict[str, list[SuspensionFit]] = {}
    wholes: dict[str, SuspensionFit] = {}
    for model in models:
        name = CURVED if model.curved else STRAIGHT
        wholes[name], singles[name] = fitted(model, motions, how), parts(model)
        errors[name] = float(np.sqrt(np.mean(squares(singles[name]))))
    best, other = sorted((STRAIGHT, CURVED), key=lambda n: errors[n])
    chosen = wholes[best]
    values, sigma = np.full((2, len(singles[best]), len(chosen.names)), np.nan)
    for k, single in enumerate(singles[best]):
        at = [chosen.names.index(n) for n in single.names]
        values[k, at], sigma[k, at] = single.values, single.sigma
    variation = take_variation(values, sigma, chosen.sigma, [kind(n) for n in chosen.names])
    return Selected(errors, chosen, wholes[other], variation)


def _held_out(singles: Sequence[SuspensionFit], motions: Sequence[Motion], how: Sampling) -> list[float]:
    """(rms/std)² of every row of every drive, by the fit of every other drive."""
    found = []
    for k, single in enumerate(singles):
        for m in (m for j, m in enumerate(motions) if j != k):
            check = validate(single.fit, single.model.prepared([m])[0], settings=IdentifySettings(sampling=how))
            found += [r.std_error**2 for r in check.rows]
    return found
