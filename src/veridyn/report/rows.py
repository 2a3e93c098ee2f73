"""How far rows are off, in one form for forces, simulated coordinates and outputs of an observer: a table, and curves over time.

Errors are rms(r)/std(y) of a row unless a head says ‖r‖/‖y‖ (:mod:`veridyn.inference.error_measures`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.pipeline.identified import Trace
from veridyn.inference.error_measures import RowReport
from veridyn.report import number, percent, unit_text
from veridyn.report.blocks import Cell, Figure, Table
from veridyn.report.plots import Axis, Curve, Plot, axis_over, level, line, shared

NOT_JUDGED = "varies by less than three times its noise: listed, not judged"
MARKED = "○ marks rows that vary by less than three times their noise: they are listed, not judged."


def row_table(
    rows: Sequence[RowReport],
    word: str = "row",
    fitted: Sequence[RowReport] = (),
    before: Sequence[RowReport] = (),
    left_over: Mapping[str, str] | None = None,
    caption: str = "",
) -> Table:
    """The errors of `rows`; beside them those of the same rows on the data of the fit, and with the values from `before`, where given.

    `left_over`: row → what its residual looks like; `word`: what a row is.
    """
    errors = {"error, validation" if fitted else "error": rows, "error, training": fitted, "error before": before}
    shares = {head: {r.row: r.std_error for r in own} for head, own in errors.items() if own}
    nis = any(math.isfinite(r.nis) for r in rows)
    lines = [
        (
            Cell(r.row, mark="" if r.judged else NOT_JUDGED),
            unit_text(r.unit),
            *(f"{percent(100.0 * own.get(r.row, math.nan))} %" for own in shares.values()),
            f"{percent(100.0 * r.relative_error)} %",
            number(r.rms, 3),
            number(r.measured_std, 3),
            number(r.measured_rms, 3),
            *([number(r.nis, 3)] if nis else []),
            *([] if fitted else [str(r.samples)]),
            *([] if left_over is None else [left_over.get(r.row, "–")]),
        )
        for r in rows
    ]
    tail = ["‖r‖/‖y‖", "rms error", "std", "measured rms", *(["NIS"] if nis else []), *([] if fitted else ["samples"])]
    head = (word, "unit", *shares, *tail, *([] if left_over is None else ["what is left over"]))
    words = (1,) if left_over is None else (1, len(head) - 1)
    notes = [caption, *([] if all(r.judged for r in rows) else [MARKED])]
    return Table(head, lines, " ".join(filter(None, notes)), left=words, strong=(2,))


NAMES = {"training": "Motion used for the fit", "validation": "Validation motion"}


def row_figures(traces: Mapping[str, Trace]) -> list[Figure]:
    """One figure for each row: forces along every motion, and what is left over below, on common scales so that they can be compared."""
    rows = next(iter(traces.values())).rows
    figures = []
    for k, row in enumerate(rows):
        forces = shared([x for t in traces.values() for x in (t.measured[:, k], t.predicted[:, k])])
        residual = shared([_used(t, k) for t in traces.values()])
        pairs = [_pair(NAMES.get(name, name), t, k, forces, residual, name) for name, t in traces.items()]
        figures.append(Figure([above for above, _ in pairs], row, below=[below for _, below in pairs]))
    return figures


def row_figure(t: Trace, k: int) -> Figure:
    """Forces of row k along one motion, and what is left over beside them."""
    forces, residual = _pair("", t, k, shared([t.measured[:, k], t.predicted[:, k]]), shared([_used(t, k)]))
    below = {"x_ticks": residual.x_ticks, "x_label": residual.x_label}
    beside = replace(residual, title="measured less predicted", low=False)
    return Figure([replace(forces, title="measured and predicted", **below), beside], t.rows[k])


def _used(t: Trace, k: int) -> Array:
    """The differences that decide the scale: those the row uses, or all where it uses none."""
    return t.residual[t.used[:, k], k] if t.used[:, k].any() else t.residual[:, k]


def _pair(title: str, t: Trace, k: int, forces: Axis, residual: Axis, clock: str = "time") -> tuple[Plot, Plot]:
    """Forces, and what is left over, on one clock: each motion has its own."""
    time = axis_over(t.t, margin=0.0)
    unit, row = unit_text(t.units[k]), t.rows[k]
    where = f"{row}, {title.lower()}" if title else row
    whole, used = t.residual[:, k], t.used[:, k]
    pale = np.convolve(~used, np.ones(3), "same") > 0  # with the samples beside them, so that no gap is left
    unused = Curve("unused", line(t.t, np.where(pale, whole, np.nan), time, residual), "difference, not used")
    compared = Plot(
        title,
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
        words=f"{where}: measured and predicted force over time",
    )
    difference = Plot(
        title,
        (
            Curve("zero", level(0.0, residual)),
            *([] if used.all() else [unused]),
            Curve("residual", line(t.t, np.where(used, whole, np.nan), time, residual), "difference"),
        ),
        time.ticks(7),
        residual.ticks(4, upwards=True),
        "time, s",
        unit,
        low=True,
        axes=(time, residual),
        clock=clock,
        words=f"{where}: measured less predicted over time",
    )
    return compared, difference
