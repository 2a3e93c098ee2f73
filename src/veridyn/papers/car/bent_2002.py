"""The suspensions of paper 001, one straight line each, or springs, bars and dampers that bend, and the lines nearest to them.

The model of 2002 has off + ks q + h q̇ along each clearance and nothing between two wheels. The curved one adds columns that are linear
in their parameters: an anti-roll bar for each axle, q² and q³ beside each spring, d³ beside each bar, and sign q̇, |q̇| and q̇|q̇| beside
each damper. The sixteen that are reported are the straight model's: of each wheel the three numbers with which off + ks q + h q̇ is
nearest to all these forces over the drives, which are linear in the parameters, x_reported = J x. Over ramps of steering, where the car
rolls, ks is then k + 2 k_ar.

Ramps go to one side each, so neither alone can stand for the other. Both models are fitted to every other stretch of both ramps and
predict the stretches between; the one that predicts better is reported. Braking, the check of the paper, takes no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.takes import TakeVariation, take_variation
from veridyn.identify.validate import validate
from veridyn.model.elements.element import Element, coulomb, drive_gain, spring
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.bent import CURVED, KINDS, STRAIGHT, Selected, SuspensionFit, fitted
from veridyn.papers.car.simulator.run import VehicleRun

Array = NDArray[np.float64]
SPRINGS = (
    "13",
    "17",
    "7",
    "10",
)  # by wheel, in the order of the simulator: front left, front right, rear left, rear right
BARS = {"arf": ("13", "17"), "arr": ("7", "10")}
TEN_ROWS_2002 = ("q1", "q2", "q3", "q4", "q5", "q6", "q7", "q10", "q13", "q17")
SUSPENSIONS = TEN_ROWS_2002[6:]
SIXTEEN = ("MX6", "MY6", "MZ6", "M6", *(f"{s}{j}" for j in (7, 10, 13, 17) for s in ("off", "ks", "h")))  # Table 4
STRETCH = 2.0  # s, of which one in two is left out: twice the memory of residuals that deviations allow for


@dataclass(frozen=True, eq=False)
class Model2002:
    """A machine with straight suspensions, or the same with curves and bars."""

    straight: Machine
    curved: bool
    rows: tuple[str, ...] = TEN_ROWS_2002

    @property
    def machine(self) -> Machine:
        return self.straight.with_elements(_elements()) if self.curved else self.straight

    def prepared(self, motions: Sequence[Motion]) -> tuple[Motion, ...]:
        """The motions with the columns of the curves as signals."""
        return tuple(_with_bends(m, self.straight) if self.curved else m for m in motions)

    def secants(self, names: Sequence[str], motions: Sequence[Motion]) -> tuple[tuple[str, ...], Array]:
        """The sixteen, and J: the line nearest to the forces of all columns along each clearance over the motions."""
        J = np.zeros((len(SIXTEEN), len(names)))
        for k, name in enumerate(SIXTEEN):
            J[k, names.index(name)] = 1.0
        if self.curved:
            q, qd = (np.concatenate(x) for x in zip(*(_clearances(m, self.straight) for m in motions), strict=True))
            for i, j in enumerate(SPRINGS):
                for name, force in _forces_on(i, q, qd).items():
                    line = nearest(q[:, i], qd[:, i], force)
                    for symbol, value in zip(("off", "ks", "h"), line, strict=True):
                        J[SIXTEEN.index(f"{symbol}{j}"), names.index(name)] += value
        return SIXTEEN, J


def nearest(q: Array, qd: Array, force: Array) -> tuple[float, float, float]:
    """off, ks and h with which off + ks q + h q̇ is nearest to a force (N,)."""
    columns = np.stack([np.ones_like(q), q, qd], axis=1)
    scale = np.abs(columns).max(axis=0)
    found = np.linalg.lstsq(columns / scale, force)[0] / scale
    return float(found[0]), float(found[1]), float(found[2])


def true_lines(run: VehicleRun) -> dict[str, float]:
    """off, ks and h of each wheel that are nearest to what spring, stops, bar, damper and friction of the simulated car do in a run."""
    s = run.vehicle.suspension
    z, zd, _ = run.clearance
    out: dict[str, float] = {}
    for i, j in enumerate(SPRINGS):
        axle, other = i // 2, i + 1 - 2 * (i % 2)
        d = z[:, i] - z[:, other]
        force = s.spring(i, z[:, i]) + s.damper(i, zd[:, i]) + s.bar[axle] * d + s.bar_cube[axle] * d**3
        line = nearest(z[:, i] - s.design[i], zd[:, i], force)
        out |= {f"{symbol}{j}": value for symbol, value in zip(("off", "ks", "h"), line, strict=True)}
    return out


def _elements() -> list[Element]:
    made: list[Element] = []
    for j in SPRINGS:
        made += [
            replace(drive_gain(f"q{j}", f"bend.{kind}_{j}", 0.0, f"{kind}_{j}"), typical=size, unit=unit)
            for kind, (unit, size) in KINDS.items()
        ]
        made.append(replace(coulomb(f"q{j}", 0.0, f"fs_{j}"), typical=20.0))
    for bar, (left, right) in BARS.items():
        on = {f"q{left}": 1.0, f"q{right}": -1.0}
        made.append(replace(spring(on, 0.0, f"k_{bar}"), typical=2e4))
        made.append(replace(drive_gain(on, f"bend.k3_{bar}", 0.0, f"k3_{bar}"), typical=4e5, unit="N/m^3"))
    return made


def _clearances(m: Motion, machine: Machine) -> tuple[Array, Array]:
    at = [machine.coordinates.index(f"q{j}") for j in SPRINGS]
    return m.q[:, at], m.qd[:, at]


def _bends(q: Array, qd: Array) -> dict[str, Array]:
    """The force of each bend with a parameter of 1, (N,)."""
    columns: dict[str, Array] = {}
    for i, j in enumerate(SPRINGS):
        c, v = q[:, i], qd[:, i]
        columns |= {f"k2_{j}": c**2, f"k3_{j}": c**3, f"h1_{j}": np.abs(v), f"h2_{j}": v * np.abs(v)}
    for bar, (left, right) in BARS.items():
        columns[f"k3_{bar}"] = (q[:, SPRINGS.index(left)] - q[:, SPRINGS.index(right)]) ** 3
    return columns


def _forces_on(i: int, q: Array, qd: Array) -> dict[str, Array]:
    """Name of each further column that acts along the clearance of wheel i → its force with a parameter of 1."""
    j, axle, other = SPRINGS[i], tuple(BARS)[i // 2], i + 1 - 2 * (i % 2)
    bends = _bends(q, qd)
    d = q[:, i] - q[:, other]
    own = {f"{kind}_{j}": bends[f"{kind}_{j}"] for kind in KINDS} | {f"fs_{j}": np.sign(qd[:, i])}
    return own | {f"k_{axle}": d, f"k3_{axle}": d**3}


def _with_bends(m: Motion, machine: Machine) -> Motion:
    columns = _bends(*_clearances(m, machine))
    return replace(m, signals={**m.signals, **{f"bend.{name}": -x for name, x in columns.items()}})


def kind_of(name: str) -> str:
    """The group of a parameter of Table 4."""
    return "chassis" if name.startswith("M") else "dampers" if name.startswith("h") else "springs"


def stretches(motions: Sequence[Motion], rows: Sequence[str], part: int) -> dict[str, NDArray[np.bool_]]:
    """Row → mask over the samples of all motions that leaves out every other stretch: those with even numbers, or odd ones."""
    mask = np.concatenate([np.floor((m.t - m.t[0]) / STRETCH).astype(int) % 2 == part for m in motions])
    return dict.fromkeys(rows, mask)


def selected_2002(machine: Machine, motions: Sequence[Motion], how: Sampling) -> Selected:
    """Fit both models to both ramps, and to every other stretch of them; report the one that predicts the stretches between better."""
    halves = [replace(how, drop=stretches(motions, TEN_ROWS_2002, part)) for part in range(2)]
    errors: dict[str, float] = {}
    wholes: dict[str, SuspensionFit] = {}
    singles: dict[str, list[SuspensionFit]] = {}
    for name, curved in ((STRAIGHT, False), (CURVED, True)):
        model = Model2002(machine, curved)
        wholes[name] = fitted(model, motions, how)
        singles[name] = [fitted(model, motions, half) for half in halves]
        found = []
        for single, other in zip(singles[name], halves[::-1], strict=True):
            check = validate(single.fit, list(single.motions), settings=IdentifySettings(sampling=other))
            found += [check[row].std_error ** 2 for row in SUSPENSIONS]  # the chassis' rows are the same in both models
        errors[name] = float(np.sqrt(np.mean(found)))
    best, other = sorted((STRAIGHT, CURVED), key=lambda n: errors[n])
    return Selected(errors, wholes[best], wholes[other], _variation(singles[best], wholes[best]))


def _variation(singles: Sequence[SuspensionFit], whole: SuspensionFit) -> TakeVariation:
    values, sigma = (np.array([getattr(s, what) for s in singles]) for what in ("values", "sigma"))
    return take_variation(values, sigma, whole.sigma, [kind_of(n) for n in whole.names])
