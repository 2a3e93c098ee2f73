"""What speaks against a result stands on a page once: in the head where the verdict gives it in full, else in a section of its own."""

from __future__ import annotations

import re

from veridyn.errors import Fault
from veridyn.inference.verdict import Outcome, Reason, Verdict, verdict_of
from veridyn.report.blocks import Listing, Section
from veridyn.report.faults import fault_section, missed_section, named_faults, own_findings, own_reasons, unlisted
from veridyn.report.page import page
from veridyn.studies.result import Result

SIGN = Fault("its sign is wrong.", "force of 'q2'", found="−1", hint="Write times: -1.")
LIMIT = "mass: 3, and at most 2 is accepted."


def page_of(verdict: Verdict, warnings: tuple[str, ...] = (), **own: object) -> str:
    result = Result("x", None, False, {}, {}, (), {}, warnings)
    return page("x", verdict, [], [], result, "veridyn", **own)  # pyright: ignore[reportArgumentType]


def test_reasons_stand_below_the_headline_the_gravest_first() -> None:
    verdict = verdict_of(Outcome(name="arm", bounds=["q1 reached its stop."], missed=[LIMIT]))
    text = page_of(verdict, missed=[LIMIT])
    grades = re.findall(r'<li class="([a-z-]+)">', text[: text.index("</ul>")])
    assert grades == ["poor", "not-validated", "fair"]
    assert text.count(LIMIT) == 1
    assert '<h1 class="poor">' in text and '<h1 class="not-validated">' in page_of(verdict_of(Outcome(name="arm")))


def test_a_fault_that_a_reason_gives_in_full_is_not_repeated() -> None:
    full = Verdict("fair", "It is identified.", reasons=(Reason("fair", "finding", str(SIGN)),))
    assert fault_section([SIGN], full) == [] and page_of(full, (str(SIGN),), faults=[SIGN]).count("Write times") == 1


def test_a_fault_that_the_head_only_names_has_a_section_instead() -> None:
    short = Verdict("good", "It is identified.").against(faults=named_faults([SIGN]))
    (section,) = fault_section([SIGN], short)
    assert section.blocks[0].text == str(SIGN) and own_findings(short, [SIGN]) == []  # pyright: ignore[reportAttributeAccessIssue]
    assert own_reasons(short) == []  # the headline has it
    text = page_of(short, (str(SIGN),), faults=[SIGN])
    assert text.count("its sign is wrong") == 1 and "Warnings" not in text


def test_limits_that_the_verdict_does_not_give_have_a_section() -> None:
    (section,) = missed_section([LIMIT], Verdict("poor", "Not yet."))
    assert list(section.blocks[0].items) == [LIMIT]  # pyright: ignore[reportAttributeAccessIssue]
    assert missed_section([LIMIT], Verdict("good", "Yes.").against([LIMIT])) == []


def test_a_warning_that_a_section_lists_is_not_repeated() -> None:
    listed = Section("Not shown", [Listing(["stiffness: 98 % is left."])])
    warnings = ("not shown: stiffness: 98 % is left.", "the clock jumps.")
    assert unlisted(warnings, [listed]) == ["the clock jumps."] and unlisted(warnings, []) == list(warnings)


def test_faults_of_one_kind_are_named_together() -> None:
    late = [Fault("it is late", f"force of 'q{k}'") for k in (1, 2)]
    assert named_faults([*late, Fault("no place")]) == ["force of 'q1' and force of 'q2': it is late", "no place"]
