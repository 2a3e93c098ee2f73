"""Sections of a report about how a study went: what is suspected, which limits are missed, and how the cut-off was chosen."""

from __future__ import annotations

import numpy as np

from veridyn.report.blocks import Figure, Listing, Section, Table, Text
from veridyn.report.plots import Series, curves
from veridyn.report.words import number
from veridyn.studies.cutoff import TOLERANCE, Cutoff
from veridyn.studies.identify_run import IdentifyRun


def study_sections(run: IdentifyRun) -> list[Section]:
    """What stands before the rest, because it may make the rest worthless; then how the filter was chosen."""
    out = []
    if run.missed:
        out.append(
            Section(
                "Limits that are missed", [Listing(run.missed)], "The study file sets limits, and these are not kept."
            )
        )
    if run.suspicions:
        lead = "Something about the data or the model may be wrong. Until it is cleared up, the numbers below are not to be used."
        out.append(Section("Suspicions", [Text(str(s)) for s in run.suspicions], lead))
    if run.cutoff is not None:
        out.append(_cutoff(run.cutoff))
    if run.delays.seconds:
        rows = [(c, number(1e3 * d, 3)) for c, d in run.delays.seconds.items()]
        lead = (
            "How late each measured force is against the positions, estimated beside the parameters. Friction that lags looks like one, "
            "too, most of all in joints that carry little."
        )
        out.append(Section("Delays", [Table(("coordinate", "delay, ms"), rows)], lead))
    return out


def _cutoff(c: Cutoff) -> Section:
    f = np.array([t.cutoff for t in c.trials])
    series = [
        Series("fitted, filtered", f, [t.training_percent for t in c.trials]),
        Series("held out, filtered", f, [t.held_out_percent for t in c.trials]),
        Series("held out, as measured", f, [t.unfiltered_percent for t in c.trials]),
    ]
    drawn = curves("Error over the cut-off", series, "cut-off, Hz", "error, %", log_x=True, log_y=True)
    rows = [
        (
            number(t.cutoff, 3),
            number(t.training_percent, 3),
            number(t.held_out_percent, 3),
            number(t.unfiltered_percent, 3),
        )
        for t in c.trials
    ]
    lead = (
        f"Proposed: {number(c.proposed, 3)} Hz, the widest band whose error against the forces as measured, on blocks not fitted, "
        f"is within {100 * (TOLERANCE - 1):.0f} % of the least."
    )
    table = Table(("cut-off, Hz", "fitted %", "held out %", "held out, unfiltered %"), rows, strong=(3,))
    return Section("Cut-off of the low-pass", [Figure([drawn]), table], lead)
