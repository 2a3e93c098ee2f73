"""The speed of a Stribeck curve from data: the one parameter of friction in which the equations are not linear.

For a given speed the equations are linear, so the least residual over all other parameters is a function of the speeds alone
(separable least squares: Golub and Pereyra, 1973, SIAM J. Numer. Anal. 10(2)). A bank of curves with many speeds is streamed once
beside the other columns into the same small factors; every choice of one curve for each joint is then a solve of the machine's size.
The speeds are chosen joint by joint until none changes, and once more on a finer bank about them. The speed is the vertex of the
parabola there; within the interval the sum of squares is less than one variance above the least, which is one deviation where
residuals are white.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, Faults, IdentificationError, did_you_mean
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.regression.factor import triangle_of
from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.elements.element import stribeck
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

MAX_ROUNDS = 10  # of choosing joint by joint; it ends as soon as none changes
FINE_BANK_SPEEDS = 9  # speeds of the finer bank


@dataclass(frozen=True, eq=False, kw_only=True)
class StribeckCurve:
    """The Stribeck curve of one coordinate: its speed and the interval of speeds that do as well.

    `speeds` and `residuals`: what was tried, with all other curves as chosen; sums of squares in variances of the best residual.
    """

    on: str
    speed: float
    low: float
    high: float
    speeds: tuple[float, ...]
    residuals: tuple[float, ...]
    gain_percent: float

    def summary(self) -> str:
        return (
            f"{self.on}: {self.speed:.4g} ({self.low:.3g} to {self.high:.3g}), "
            f"residual {self.gain_percent:.2g} % below that without a curve"
        )


@takes_machine
def stribeck_speeds(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    on: Iterable[str],
    speeds: Sequence[float],
    *,
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> tuple[Machine, dict[str, StribeckCurve]]:
    """The tree with a Stribeck curve on each coordinate of `on`, its speed the best of `speeds` and of a finer bank about it.

    The heights of the curves are estimated; identify the tree that comes back. `speeds` in rad/s or m/s, three at least.
    """
    names, bank = list(on), sorted({float(v) for v in speeds})
    _check(machine, names, bank)
    banks = dict.fromkeys(names, tuple(bank))
    how = {"rows": rows, "settings": settings, "executor": executor, "progress": progress}
    chosen = _searched(machine, motion, banks, how)
    fine = {c: tuple(_about(bank, chosen[c].speed)) for c in names}
    best = _searched(machine, motion, fine, how)
    curves = {c: _vertex(best[c]) for c in names}
    elements = [stribeck(c, curves[c].speed) for c in names]
    return machine.with_elements(elements), curves


def _searched(
    machine: Machine, motion: Motion | Sequence[Motion], banks: dict[str, tuple[float, ...]], how: dict[str, object]
) -> dict[str, StribeckCurve]:
    """The best speed of each bank."""
    bank = [stribeck(c, v, name=f"stribeck {c} {v!r}") for c, speeds in banks.items() for v in speeds]
    whole = machine.with_elements(bank)
    observed = observation(whole, motion, **how)  # pyright: ignore[reportArgumentType]
    plain = len(machine.parameters)
    s = solve(observed.of_first(machine.parameters))
    R = observed.stacked(list(1.0 / s.row_sigma)) / s.sigma
    place = {c: k for k, c in enumerate(observed.columns)}
    base = [place[c] for c in s.columns]
    at = {(e_on, v): place[plain + k] for k, (e_on, v) in enumerate((c, v) for c, vs in banks.items() for v in vs)}

    def cost(speeds: dict[str, float]) -> float:
        columns = [*base, *(at[c, v] for c, v in speeds.items())]
        T = triangle_of(R[:, [*columns, R.shape[1] - 1]])
        return float(np.linalg.norm(T[len(columns) :, -1]) ** 2)

    speeds: dict[str, float] = {}
    for _ in range(MAX_ROUNDS):
        before = dict(speeds)
        for c, options in banks.items():
            speeds[c] = min(options, key=lambda v, c=c: cost({**speeds, c: v}))
        if speeds == before:
            break
    found = {}
    variance = cost(speeds) / (s.freedom - len(speeds))
    for c, options in banks.items():
        tried = [cost({**speeds, c: v}) / variance for v in options]
        gain = 100.0 * (1.0 - np.sqrt(cost(speeds) / cost({k: v for k, v in speeds.items() if k != c})))
        found[c] = StribeckCurve(
            on=c,
            speed=speeds[c],
            low=speeds[c],
            high=speeds[c],
            speeds=options,
            residuals=tuple(tried),
            gain_percent=float(gain),
        )
    return found


def _vertex(curve: StribeckCurve) -> StribeckCurve:
    """The least of the parabola, over the logarithm of speed, through the best speed and its neighbours, and where it has risen by 1.

    At the end of a bank there is none: the interval is open towards the side on which nothing was tried.
    """
    x, y = np.log(curve.speeds), np.array(curve.residuals)
    k = int(np.argmin(y))
    if k in (0, len(y) - 1):
        return replace(curve, low=0.0 if k == 0 else curve.speed, high=curve.speed if k == 0 else np.inf)
    a, b, _ = np.polyfit(x[k - 1 : k + 2] - x[k], y[k - 1 : k + 2], 2)
    least, half = x[k] - b / (2.0 * a), 1.0 / np.sqrt(a)
    return replace(curve, speed=float(np.exp(least)), low=float(np.exp(least - half)), high=float(np.exp(least + half)))


def _about(bank: Sequence[float], speed: float) -> Array:
    """A finer bank between the neighbours of a speed."""
    k = bank.index(speed)
    return np.geomspace(bank[max(k - 1, 0)], bank[min(k + 1, len(bank) - 1)], FINE_BANK_SPEEDS)


def _check(machine: Machine, names: list[str], bank: list[float]) -> None:
    faults = Faults()
    for c in names:
        if c not in machine.coordinates:
            faults.add(
                f"there is no coordinate '{c}'.", where="stribeck_speeds", hint=did_you_mean(c, machine.coordinates)
            )
        if any(e.kind == "stribeck" and c in e.on for e in machine.elements):
            faults.add("there is a Stribeck curve on it already.", where=f"coordinate '{c}'")
    if len(bank) < 3 or not (np.isfinite(bank).all() and bank[0] > 0.0):
        faults.add("they must be positive, three at least.", where="stribeck_speeds.speeds", found=f"{bank}")
    if not names:
        faults.extend([Fault("no coordinate is named.", where="stribeck_speeds.on")])
    faults.raise_if_any(IdentificationError, machine.name)
