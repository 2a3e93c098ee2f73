"""What was tried: one row for each term of a friction ladder, numbers with their standard errors, and what became of it in words."""

from __future__ import annotations

from dataclasses import replace

from veridyn.identify.friction_ladder import FrictionLadder, LadderStep
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.report.blocks import Table
from veridyn.report.trials import friction_section

NUMBERS = {"before_percent": 12.3, "after_percent": 4.56, "fall_percent": 86.3, "sigma_percent": 5.1}
STEPS = (
    LadderStep(term="viscous", on="q1", **NUMBERS, enters=True, last=(80.0, 4.0)),
    LadderStep(term="stribeck", on="q1", **NUMBERS, last=(0.1, 0.4)),
    LadderStep(term="load", on="q1", **NUMBERS),
    LadderStep(term="temperature", on="q1", reason="not tried: no temperature is named"),
)
LADDER = FrictionLadder(machine=Machine.of_bodies([Body("1")]), steps=STEPS, standard_errors=1.0, after_percent=4.56)


def test_rows_and_lead() -> None:
    section = friction_section(LADDER)
    (table,) = section.blocks
    assert isinstance(table, Table) and len(table.rows) == 4
    assert table.rows[0] == ("viscous", "q1", "12", "4.6", "86.3 ± 5.1", "80 ± 4", "enters")
    assert table.rows[1][-2:] == ("0.1 ± 0.4", "entered, and is not needed beside the others")
    assert table.rows[2][-2:] == ("–", "stays out")
    assert table.rows[3] == ("temperature", "q1", *("–",) * 4, "not tried: no temperature is named")
    assert "1 term of 3 entered" in section.lead and "more than its standard error" in section.lead
    assert "Load-dependent" not in section.lead


def test_signals_of_loads_and_other_thresholds_are_said() -> None:
    lead = friction_section(replace(LADDER, standard_errors=2.0, needs_loads=("load_q1",))).lead
    assert "2 of its standard errors" in lead and "Load-dependent friction reads load_q1" in lead
