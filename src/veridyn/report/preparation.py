"""How the logs of an identification were made ready: the cut-off, delays, loops, friction, and what was not looked for."""

from __future__ import annotations

import numpy as np

from veridyn.identify.pipeline.loop_closing import Closing
from veridyn.report import count, listed, number
from veridyn.report.blocks import Block, Listing, Section, Table, Text
from veridyn.report.trials import cutoff_section, friction_section
from veridyn.studies.run.estimation import IdentifyRun

STANDSTILL = 1e-9  # rad or m: what moves less stands still


def study_sections(run: IdentifyRun) -> list[Section]:
    """How the filter was chosen, delays, loops and friction, and what was not looked for."""
    out = []
    if run.cutoff is not None:
        out.append(cutoff_section(run.cutoff))
    if run.delays.seconds:
        late = run.delays
        rows = [
            (
                c,
                number(1e3 * d, 3),
                number(1e3 * late.sigma.get(c, np.nan), 2),
                "yes" if c in late.confirmed else "no",
            )
            for c, d in late.seconds.items()
        ]
        lead = (
            "How late each measured force is against the positions, estimated beside the parameters. Friction that lags looks like one, "
            "too, most of all in joints that carry little. Confirmed are those that lower the error of parts of the log that they were not "
            "fitted to; no other one is proposed, or taken out."
        )
        out.append(Section("Delays", [Table(("coordinate", "delay, ms", "σ, ms", "confirmed"), rows)], lead))
    if run.closing is not None:
        out.append(_loops(run.closing, run))
    if run.ladder is not None:
        out.append(friction_section(run.ladder))
    if run.omitted:
        title = "What was not looked for"
        out.append(Section(title, [Listing(run.omitted)], "Mistakes in model and log are looked for. Not among them:"))
    return out


def _loops(c: Closing, run: IdentifyRun) -> Section:
    units = {"turning": "rad", "sliding": "m"}
    rows = [
        (
            name,
            units[kind],
            "measured" if name in c.given else "measured, and follows" if name in c.spare else "follows",
            number(c.spans[name][0], 3) if np.ptp(c.spans[name]) > STANDSTILL else "–",
            number(c.spans[name][1], 3) if np.ptp(c.spans[name]) > STANDSTILL else "stands still",
        )
        for name, kind in zip(run.machine.coordinates, run.machine.coordinate_kinds, strict=True)
    ]
    lead = (
        f"{count(len(c.given), 'coordinate')} were measured ({listed(c.given)}), low-passed and differentiated; the other "
        f"{len(rows) - len(c.given)} follow at every sample from {count(len(run.machine.cut_joints), 'closed loop')}. "
        "The equations are those of the drives."
    )
    chosen = (
        f"The condition of what was solved for is {number(c.home, 2)} where the machine is assembled and at most {number(c.worst, 2)} "
        f"in these logs, at t = {number(c.at, 4)} s; at a singular position it is infinite."
    )
    blocks: list[Block] = [
        Text(chosen),
        Table(("coordinate", "unit", "how it is known", "from", "to"), rows, left=(1, 2)),
    ]
    if c.spare:
        off = [(name, number(s.mean, 3), number(s.rms, 3), number(s.span, 3)) for name, s in c.spare.items()]
        blocks.append(
            Table(
                ("measured besides", "mean difference", "rms difference", "span"),
                off,
                "Measured less what follows from the others: zeros of encoders and lengths of the model that are wrong show here.",
            )
        )
    return Section("How its loops were closed", blocks, lead)
