"""Estimated numbers in one form: value and deviation, what was known before, the truth where it is known, and which come only as a sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.identify.base import BaseParameters
from veridyn.report import like, listed, measured, number, percent, unit_text
from veridyn.report.blocks import Block, Cell, Listing, Table, Text
from veridyn.report.plots import Axis, Curve, Plot, dots, powers

NAN = float("nan")
SCALE_SIGMAS = 4.0  # standard deviations that the small scale of the truth shows to either side
LEAST_PERCENT, MOST_PERCENT = 0.01, 100.0  # σ % at the ends of its bar, which is logarithmic
BARS = "Bars of σ % are logarithmic, from 0.01 to 100 %"


@dataclass(frozen=True)
class QuantityLine:
    """An estimated number, in SI.

    `prior` with `prior_sigma` and `truth` are NaN where they are not known. `given`: words that stand in place of the deviation.
    `weak`: not to be relied on; `mark`: why its name carries a mark; `more`: cells of further columns.
    """

    name: str
    unit: str
    value: float
    sigma: float
    prior: float = NAN
    prior_sigma: float = NAN
    truth: float = NAN
    given: str = ""
    weak: bool = False
    mark: str = ""
    more: tuple[str, ...] = ()

    @property
    def percent(self) -> float:
        """σ in percent of the value."""
        return 100.0 * self.sigma / abs(self.value) if self.value else math.inf


def quantity_table(
    quantities: Sequence[QuantityLine],
    word: str = "parameter",
    caption: str = "",
    *,
    percents: bool = False,
    value: str = "value",
    more: Sequence[str] = (),
    words: bool = False,
) -> Table:
    """A line for each; columns that none of them has are left out.

    `percents`: with σ as a percentage; `value`: the head of the values; `more`: heads of further columns, which hold `words` or numbers.
    """
    prior, spread, truth = (
        any(math.isfinite(getattr(q, what)) for q in quantities) for what in ("prior", "prior_sigma", "truth")
    )
    unit = any(q.unit for q in quantities)
    lines = []
    for q in quantities:
        shown = (number(q.value, 3 if q.weak else 4), q.given) if q.given else measured(q.value, q.sigma)
        cells = (
            [unit_text(q.unit)] if unit else [],
            shown,
            [_bar(q.percent)] if percents else [],
            [number(q.prior, 3) if spread else like(q.prior, q.sigma)] if prior else [],
            [number(q.prior_sigma, 2)] if spread else [],
            [like(q.truth, q.sigma), _off(q)] if truth else [],
        )
        lines.append((Cell(q.name, mark=q.mark), *(cell for own in cells for cell in own), *q.more))
    heads = (["unit"] * unit, [value, "± σ"], ["σ %"] * percents, ["prior"] * prior, ["± σ"] * spread)
    head = [word, *(name for own in heads for name in own), *(["truth", "within 2σ of the truth?"] if truth else [])]
    end = len(head)
    left = [*([1] if unit else []), *([end - 1] if truth else []), *(range(end, end + len(more)) if words else [])]
    weak = [k for k, q in enumerate(quantities) if q.weak]
    return Table((*head, *more), lines, caption, left=left, strong=[1 + unit], weak=weak)


def _bar(share: float) -> Cell | str:
    if math.isnan(share):
        return percent(share)
    decades = math.log10(min(max(share, LEAST_PERCENT), MOST_PERCENT) / LEAST_PERCENT)
    return Cell(percent(share), "bar", 100.0 * decades / math.log10(MOST_PERCENT / LEAST_PERCENT))


def _off(q: QuantityLine) -> Cell | str:
    """How far the value is from the truth, in its deviations."""
    if not (math.isfinite(q.truth) and q.sigma > 0.0):
        return "–"
    off = (q.value - q.truth) / q.sigma
    place = 50.0 + 50.0 * max(-SCALE_SIGMAS, min(SCALE_SIGMAS, off)) / SCALE_SIGMAS
    sort = f"{round(off, 1) + 0.0:+.1f} σ".replace("-", "−")
    return Cell(f"{'yes' if abs(off) <= 2.0 else 'no'}, {sort}", "strip", place, sort.lstrip("+"))


def sum_blocks(base: BaseParameters, never: Sequence[str] = ()) -> list[Block]:
    """Sums that are identified as a whole, and parameters without effect: `never` whatever the motion, others in this one."""
    names, blocks = base.parameters.names, list[Block]()
    if base.relations():
        what = "These parameters act on the measured rows together, so their sum is what is identified."
        blocks += [Text(what), Listing(base.relations(), code=True)]
    dead = [names[k] for k in base.dead]
    for some, what in (
        ([n for n in dead if n in never], "Without effect on these rows, whatever the motion"),
        ([n for n in dead if n not in never], "Without effect in this motion, and so not estimated"),
    ):
        blocks += [Text(f"{what}: {listed(some, len(some))}.")] if some else []
    return blocks


def singular_values(base: BaseParameters) -> Plot | None:
    """Singular values of the weighted regressor with columns scaled by typical sizes, largest 1, on a logarithmic axis."""
    s = base.singular_values
    if not len(s) or s[0] <= 0.0:
        return None
    floor = -17.0
    decades = np.maximum(np.log10(np.maximum(s / s[0], 1e-300)), floor)
    place = np.arange(1, len(s) + 1, dtype=np.float64)
    across, up = Axis(0.0, len(s) + 1.0), Axis(min(float(decades.min()), -1.0) - 0.6, 0.6)
    kept = place <= base.count
    curves = [Curve("kept", dots(place[kept], decades[kept], across, up), "kept")]
    if not kept.all():
        curves.append(Curve("dropped", dots(place[~kept], decades[~kept], across, up), "dropped: rounding"))
    title = f"Singular values of the regressor: {base.count} kept, {len(s) - base.count} dropped"
    ticks = powers(up, upwards=True)
    return Plot(title, tuple(curves), across.ticks(6), ticks, "number", "size", axes=(across, up), log="y")
