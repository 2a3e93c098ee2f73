"""What an identification shows in pictures: forces measured and predicted, what is left over, and how well the motion excites."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.identify.base import BaseParameters
from veridyn.report.plots import Axis, Curve, Plot, Tick, axis_over, dots, level, line, shared
from veridyn.report.words import superscript, unit_text
from veridyn.studies.identification import IdentificationStudy
from veridyn.studies.identified import Trace

Array = NDArray[np.float64]
NAMES = {"training": "Motion used for the fit", "validation": "Validation motion"}


@dataclass(frozen=True)
class Panel:
    """One motion of one row: forces above, what is left over below."""

    title: str
    forces: Plot
    residual: Plot


@dataclass(frozen=True)
class RowFigure:
    """One row on every motion, on common scales so that they can be compared."""

    row: str
    panels: tuple[Panel, ...]

    @property
    def tick_width(self) -> int:
        """Characters of the longest label beside any of its y axes."""
        return max(p.tick_width for panel in self.panels for p in (panel.forces, panel.residual))


def row_figures(study: IdentificationStudy) -> tuple[RowFigure, ...]:
    """One figure for each row of the fit."""
    traces = study.traces
    rows = next(iter(traces.values())).rows
    figures = []
    for k, row in enumerate(rows):
        forces = shared([t.measured[:, k] for t in traces.values()] + [t.predicted[:, k] for t in traces.values()])
        residual = shared([_used(t, k) for t in traces.values()])
        panels = [_panel(NAMES.get(name, name), t, k, forces, residual, name) for name, t in traces.items()]
        figures.append(RowFigure(row, tuple(panels)))
    return tuple(figures)


def trace_figure(t: Trace, k: int) -> list[Plot]:
    """Forces of row k along one motion, and what is left over beside them."""
    panel = _panel("one motion", t, k, shared([t.measured[:, k], t.predicted[:, k]]), shared([_used(t, k)]))
    below = {"x_ticks": panel.residual.x_ticks, "x_label": panel.residual.x_label}
    return [
        replace(panel.forces, title="measured and predicted", **below),
        replace(panel.residual, title="measured less predicted", low=False),
    ]


def _used(t: Trace, k: int) -> Array:
    """The differences that decide the scale: those the row uses, or all where it uses none."""
    return t.residual[t.used[:, k], k] if t.used[:, k].any() else t.residual[:, k]


def _panel(title: str, t: Trace, k: int, forces: Axis, residual: Axis, clock: str = "time") -> Panel:
    """Two plots on one clock: each motion has its own."""
    time = axis_over(t.t, margin=0.0)
    unit, row = unit_text(t.units[k]), t.rows[k]
    whole, used = t.residual[:, k], t.used[:, k]
    pale = np.convolve(~used, np.ones(3), "same") > 0  # with the samples beside them, so that no gap is left
    compared = Plot(
        f"{row}, {title.lower()}: measured and predicted force over time",
        (
            Curve("zero", level(0.0, forces)),
            Curve("measured", line(t.t, t.measured[:, k], time, forces), "measured"),
            Curve("predicted", line(t.t, t.predicted[:, k], time, forces), "predicted"),
        ),
        (),
        forces.ticks(5, upwards=True),
        "",
        unit,
        axes=(time, forces),
        clock=clock,
    )
    difference = Plot(
        f"{row}, {title.lower()}: measured less predicted over time",
        (
            Curve("zero", level(0.0, residual)),
            *(
                []
                if used.all()
                else [Curve("unused", line(t.t, np.where(pale, whole, np.nan), time, residual), "difference, not used")]
            ),
            Curve("residual", line(t.t, np.where(used, whole, np.nan), time, residual), "difference"),
        ),
        time.ticks(7),
        residual.ticks(4, upwards=True),
        "time, s",
        unit,
        low=True,
        axes=(time, residual),
        clock=clock,
    )
    return Panel(title, compared, difference)


def singular_values(base: BaseParameters) -> Plot | None:
    """Singular values of the weighted regressor with columns scaled by typical sizes, largest 1, on a logarithmic axis."""
    s = base.singular_values
    if not len(s) or s[0] <= 0.0:
        return None
    floor = -17.0
    decades = np.maximum(np.log10(np.maximum(s / s[0], 1e-300)), floor)
    number = np.arange(1, len(s) + 1, dtype=np.float64)
    across, up = Axis(0.0, len(s) + 1.0), Axis(min(float(decades.min()), -1.0) - 0.6, 0.6)
    kept = number <= base.count
    curves = [Curve("kept", dots(number[kept], decades[kept], across, up), "kept")]
    if not kept.all():
        curves.append(Curve("dropped", dots(number[~kept], decades[~kept], across, up), "dropped: rounding"))
    step = 1 if up.low > -5 else 3
    powers = tuple(
        Tick(100.0 * (1.0 - float(up.share(-p))), f"10{superscript(-p)}" if p else "1")
        for p in range(0, int(-up.low) + 1, step)
    )
    title = f"Singular values of the regressor: {base.count} kept, {len(s) - base.count} dropped"
    return Plot(title, tuple(curves), across.ticks(6), powers, "number", "size", axes=(across, up), log="y")
