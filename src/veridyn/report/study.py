"""Pages of identification studies of any machine, and of payload studies: the load, how sure it is and why, and what to type into a
controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veridyn.identify.controller_load import CONVENTIONS
from veridyn.inference.verdict import Verdict
from veridyn.report import measured, number, percent
from veridyn.report.blocks import Block, Code, Key, Section, Table, Text
from veridyn.report.faults import named_faults
from veridyn.report.identification import identification_page
from veridyn.report.page import page
from veridyn.report.parameters import QuantityLine, quantity_table
from veridyn.report.preparation import study_sections
from veridyn.report.verdict import verdict
from veridyn.spatial.inertia import INERTIAL, six
from veridyn.studies.result import Result
from veridyn.studies.run.estimation import IdentifyRun
from veridyn.studies.run.payload import PayloadRun


def identified_page(run: IdentifyRun, result: Result, command: str) -> str:
    """The report of ``veridyn identify``, of any machine."""
    found, sections = identified_verdict(run), study_sections(run)
    if run.drive is None:
        own = {"missed": run.missed, "faults": [s.fault for s in run.suspicions]}
        return identification_page(run.study, result, command, sections, "", found, model=run.model_file, **own)
    from veridyn.report.observed import identified_keys, identified_sections  # here: they bring pages of observers

    title, sections = f"Identification of “{run.machine.name}”", [*sections, *identified_sections(run.drive)]
    keys, own = identified_keys(run.drive), {"missed": run.missed, "faults": run.drive.faults}
    return page(title, found, keys, sections, result, command, **own)


def identified_verdict(run: IdentifyRun) -> Verdict:
    """The verdict on an identification, of any machine."""
    if run.drive is None:
        return verdict(run.study).against(run.missed, named_faults([s.fault for s in run.suspicions]))
    from veridyn.report.observed import shown_verdict

    return shown_verdict(run.machine.name, run.drive).against(run.missed)


def payload_page(run: PayloadRun, settings: Mapping[str, Any], result: Result, command: str) -> str:
    """The report of ``veridyn identify`` for a study with a section ``payload``; `settings` are those of controllers."""
    x = run.load
    value, sigma = measured(x.mass, x.mass_sigma)
    keys = [
        Key(f"{value} ±\N{NO-BREAK SPACE}{sigma} kg", "mass of the load"),
        Key(", ".join(number(1e3 * v, 3) for v in x.centre) + " mm", "centre of mass in the flange frame"),
        Key(percent(100.0 * run.weighed.study.check.relative_error) + " %", f"error on {run.weighed.study.judged_on}"),
    ]
    first = [
        Section("The load", load_blocks(run), "Mass, centre of mass and inertia about it, in the frame of the flange."),
        Section(
            "Settings for controllers",
            controller_blocks(settings),
            "The same load in the form that three controllers expect.",
        ),
    ]
    title, more, w = f"The load on “{x.body}”", study_sections(run.weighed), run.weighed
    own = {"missed": run.missed, "faults": [s.fault for s in w.suspicions]}
    return identification_page(w.study, result, command, more, title, payload_verdict(run), keys, first, **own)


def payload_verdict(run: PayloadRun) -> Verdict:
    """Whether the load may be used, and what its deviation contains."""
    return run.verdict


def load_blocks(run: PayloadRun) -> list[Block]:
    """The load in a table, and where the deviation of its mass comes from."""
    x = run.load
    known = [("mass", "kg", x.mass, x.mass_sigma)]
    known += [(f"centre {a}", "m", float(v), float(s)) for a, v, s in zip("xyz", x.centre, x.centre_sigma, strict=True)]
    if x.has_inertia:
        inertia = zip(INERTIAL, six(x.inertia), x.inertia_sigma, strict=False)
        known += [(name, "kg*m^2", float(v), float(s)) for name, v, s in inertia]
    table = quantity_table([QuantityLine(*q, given="" if q[3] else "given") for q in known], "quantity")
    sources = [[name, number(s, 2), f"{100.0 * (s / x.mass_sigma) ** 2:.0f}"] for name, s in x.mass_budget.items()]
    caption = "Where the deviation of the mass comes from: independent sources, whose squares add up."
    return [table, Table(["source", "deviation, kg", "% of the variance"], sources, caption, left=(0,))]


def controller_blocks(settings: Mapping[str, Any]) -> list[Block]:
    """What is typed into each controller, with its conventions."""
    franka = settings["franka"]
    inertia = "{" + ", ".join(f"{v:.6g}" for v in franka["load_inertia"]) + "}"
    place = "{" + ", ".join(f"{v:.6g}" for v in franka["F_x_Cload"]) + "}"
    return [
        Text(f"Universal Robots. {CONVENTIONS['ur']}."),
        Code(settings["ur"]["script"].replace("], [", "],\n  [")),
        Text(f"Franka. {CONVENTIONS['franka']}."),
        Code(f"robot.setLoad({franka['mass']:.6g}, {place},\n  {inertia});"),
        Text(f"KUKA. {CONVENTIONS['kuka']}."),
        Code(settings["kuka"]["script"]),
    ]
