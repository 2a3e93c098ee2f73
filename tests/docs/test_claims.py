"""The table of the papers' claims is the one its file makes, and everything that it names exists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docs.claims import CLAIMS, PAPERS, STATUS, Claim, claims, exists, missing_names, page

EVERY = claims()


def test_the_page_is_what_the_command_prints() -> None:
    assert CLAIMS.with_suffix(".md").read_text(encoding="utf-8") == page(EVERY)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_function_test_and_section_that_is_named_exists(paper: str) -> None:
    gone = {claim.item: [*missing_names(claim)] for claim in EVERY if claim.paper == paper}
    assert len(gone) >= 15
    assert not {item: names for item, names in gone.items() if names}


def test_each_claim_has_a_status_evidence_and_what_shows_it() -> None:
    assert {claim.paper for claim in EVERY} == set(PAPERS)
    assert not [claim for claim in EVERY if claim.status not in STATUS or not claim.evidence or not claim.claim]
    named = [(claim.paper, claim.item) for claim in EVERY]
    assert len(set(named)) == len(named)
    # How a vibrating gyroscope works is physics of the instrument: the one claim that nothing here computes.
    assert [claim.item for claim in EVERY if claim.status == "holds" and not claim.by] == ["(97)–(100), Figs. 27–29"]


def test_what_does_not_exist_is_found(tmp_path: Path) -> None:
    there = Claim("000", "(1)", "c", "holds", "e", ("veridyn.spatial.rotations.MDH", "demo car: Which manoeuvre"))
    assert not [*missing_names(there)]
    assert exists("python -m benchmarks.buggy") and exists(
        "tests/docs/test_claims.py::test_what_does_not_exist_is_found"
    )
    gone = (
        "veridyn.spatial.rotations.Gone",
        "veridyn.gone",
        "gone.module",
        "demo car: No such section",
        "demo gone: Which manoeuvre",
        "python -m benchmarks.gone",
        "tests/docs/test_claims.py::test_gone",
        "tests/docs/test_gone.py::test_gone",
    )
    assert [*missing_names(replace(there, by=gone))] == [*gone]
    file = tmp_path / "claims.yaml"
    file.write_text(
        '"000":\n  - {item: (1), claim: c, status: partly, evidence: e, correction: d.}\n', encoding="utf-8"
    )
    assert "| (1) | c | partly | – | Corrected: d. e |" in page(claims(file))
