"""The table of the papers' claims is the one its files make, and everything that it names exists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docs.claims import PAGE, PAPERS, exists, missing_names, page
from docs.claims_rules import Claim, Done, Figure, claims, results, status

EVERY = claims()


def test_the_page_is_what_the_command_prints() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(EVERY, results())


@pytest.mark.parametrize("paper", PAPERS)
def test_every_function_test_and_section_that_is_named_exists(paper: str) -> None:
    gone = {claim.item: [*missing_names(claim)] for claim in EVERY if claim.paper == paper}
    assert len(gone) >= 15
    assert not {item: names for item, names in gone.items() if names}


def test_every_claim_is_named_once() -> None:
    assert {claim.paper for claim in EVERY} == set(PAPERS)
    named = [(claim.paper, claim.item) for claim in EVERY]
    assert len(set(named)) == len(named)


def test_what_does_not_exist_is_found() -> None:
    there = Claim("000", "(1)", "c", "background", "e", ("veridyn.spatial.rotations.MDH", "demo car: Which manoeuvre"))
    assert not [*missing_names(there)]
    assert exists("python -m benchmarks.buggy") and exists("python -m benchmarks.claims car")
    assert exists("tests/docs/test_claims.py::test_what_does_not_exist_is_found")
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
    assert [*missing_names(replace(there, test=gone[-1], command="python -m benchmarks.gone --seed {seed}"))] == [
        gone[-1],
        "python -m benchmarks.gone",
    ]


def test_a_row_has_its_number_and_what_was_printed() -> None:
    figure = Figure("result.json#error", "5", (4.0, 6.0), "a digit")
    claim = Claim(
        "000", "(1)", "c", "result", "e", command="run {seed} --out {out}", seeds=tuple(range(5)), figures=(figure,)
    )
    runs = {claim.run(k): Done(0.5, {"error": 4.5 + 0.1 * k}) for k in range(5)}
    found = page([claim], runs)
    assert status(claim, runs) == "holds"
    assert (
        "| (1) | c | holds | `error` 4.7 (4.5 to 4.9); printed 5, 4 to 6: a digit<br>5 seeds, 2.5 min | `run {seed}` | e |"
        in found
    )


def test_a_page_from_another_file(tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(
        '"000":\n  - {item: (1), claim: c, kind: background, evidence: e, correction: d.}\n', encoding="utf-8"
    )
    assert "| (1) | c | background | – | – | Corrected: d. e |" in page(claims(file), {})
