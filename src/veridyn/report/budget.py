"""Where deviations come from: the parts of a standard deviation as a stacked bar for each parameter, with a line for each source.

Their squares add up to the square of the whole, so shares are those of the variance. Of more sources than colours, the smaller ones are
drawn together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.result import Fit
from veridyn.report.blocks import Block, Figure, Section, Table
from veridyn.report.plots import COLOURS, stacked

BARS_IN_A_PLOT = 12
OTHERS = "others"
REMEDIES = {
    "noise": "a longer recording, or a motion that excites more; four times as long halves it",
    "drives": "more drives, on other days and roads",
    "takes": "more takes of the motion, on other days",
    "known values": "measure better what is known: gains, loads, the empty machine",
    "noise of positions": "finer encoders, a lower cut-off, or instrumental variables; not a longer recording",
    "cut-off": "positions with less noise, which may pass a higher cut-off; softer impacts",
    "stretches": "more drives, on other days and roads",
    "prior": "a motion in which the parameter acts; the data say little of it",
    "zeros": "zero the instruments again before and after the drive",
    "carriers": "weigh and swing a wheel carrier, or ask for its drawing",
    "tables": "measure the axle's kinematics on a bench again",
    "bands": "measure the frequency response of the instruments",
    "places": "measure where the instruments sit",
    "lengths": "measure track and wheelbase on the level",
    "air": "a wind tunnel, or slower drives",
}


def shares(parts: Mapping[str, Array]) -> dict[str, Array]:
    """Source → share of the variance of each parameter (p,); sources that add nothing are left out."""
    whole = np.sum([np.square(x) for x in parts.values()], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {name: np.square(x) / whole for name, x in parts.items()}
    return {name: share for name, share in found.items() if np.nan_to_num(share).max(initial=0.0) > 0.0}


def budget_blocks(names: Sequence[str], parts: Mapping[str, Array], caption: str = "") -> list[Block]:
    """The stacked bars of all parameters, and a table of the sources: their mean share, where they are largest, what reduces them."""
    every = shares(parts)
    if not every:
        return []
    order = sorted(every, key=lambda name: -float(np.nanmean(every[name])))
    drawn = {name: 100.0 * every[name] for name in order}
    if len(order) > COLOURS:
        own, rest = order[: COLOURS - 1], order[COLOURS - 1 :]
        drawn = {name: drawn[name] for name in own} | {OTHERS: np.sum([drawn[name] for name in rest], axis=0)}
    plots = []
    count = max(1, -(-len(names) // BARS_IN_A_PLOT))
    for part in np.array_split(np.arange(len(names)), count):
        some = [names[int(k)] for k in part]
        title = "Parts of the variance" if count == 1 else f"Parts of the variance, {some[0]} to {some[-1]}"
        plots.append(stacked(title, some, {n: x[part] for n, x in drawn.items()}, "% of the variance"))
    rows = []
    for name in order:
        most = int(np.nanargmax(every[name]))
        mean, top = 100.0 * float(np.nanmean(every[name])), 100.0 * float(every[name][most])
        rows.append((name, f"{mean:.0f} %", f"{names[most]}: {top:.0f} %", REMEDIES.get(name, "")))
    head = ("source", "mean share", "largest share", "what would reduce it")
    return [
        Figure(plots, caption=caption),
        Table(head, rows, "Sources of the deviations and what would reduce each.", left=(2, 3)),
    ]


def fit_budget(fit: Fit, caption: str) -> list[Block]:
    """The same of the parameters of a fit that have a deviation."""
    stated = np.isfinite(fit.sigma) & (fit.sigma > 0.0)
    names = [name for name, known in zip(fit.names, stated, strict=True) if known]
    return budget_blocks(names, {name: sigma[stated] for name, sigma in fit.budget.items()}, caption)


def budget_section(fit: Fit) -> list[Section]:
    """Where deviations come from, as shares of their squares; nothing where noise is all of it."""
    if sum(np.nanmax(sigma, initial=0.0) > 0.0 for sigma in fit.budget.values()) < 2:
        return []
    note = "A longer recording makes the share of noise smaller, and no other."
    lead = "Deviations have several sources; their squares add up."
    return [Section("Where the deviations come from", fit_budget(fit, note), lead)]
