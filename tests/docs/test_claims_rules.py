"""Rows of claims have what their kind needs, tests assert what rows say, and a status follows from the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from benchmarks.claims.__main__ import CASES, figures_of
from docs.claims_rules import (
    KINDS,
    Claim,
    Done,
    Figure,
    asserted,
    asserts,
    claims,
    faults,
    minutes,
    results,
    source_of_test,
    status,
    values,
)

EVERY, RUNS = claims(), results()
QUICK = ("car_weights", "buggy_course")  # a few seconds: run again here
FIGURE = Figure("result.json#error", "5", (4.0, 6.0), "a digit")
ROW = Claim("000", "(1)", "c", "result", "e", command="run {seed} {out}", seeds=(0, 1, 2, 3, 4), figures=(FIGURE,))


def of(numbers: Sequence[float]) -> dict[str, Done]:
    return {ROW.run(k): Done(1.0, {"error": x}) for k, x in enumerate(numbers)}


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((4.0, 4.5, 5.0, 5.5, 6.0), "holds"),
        ((4.0, 4.5, 5.0, 5.5, 6.1), "partly"),
        ((1.0, 2.0, 3.0, 6.1, 9.0), "refuted"),
        ((4.0, 4.5, 5.0, 5.5), "open"),
        ((4.0, 4.5, 5.0, 5.5, float("nan")), "open"),
    ],
)
def test_a_status_follows_from_the_numbers(numbers: Sequence[float], expected: str) -> None:
    assert status(ROW, of(numbers)) == expected


def test_every_figure_of_a_row_counts() -> None:
    other = replace(FIGURE, within=(0.0, 1.0))
    both = replace(ROW, figures=(FIGURE, other))
    assert status(both, of([5.0] * 5)) == "partly"
    assert minutes(ROW, of([5.0] * 5)) == 5.0


def test_an_equation_holds_unless_its_test_refutes_it() -> None:
    row = Claim("000", "(1)", "c", "equation", "e", test="tests/a.py::test_b", deviation=0.0)
    assert [status(r, {}) for r in (row, replace(row, refutes=True), replace(row, kind="background"))] == [
        "holds",
        "refuted",
        "background",
    ]


def test_no_row_has_a_fault() -> None:
    found = {(claim.paper, claim.item): [*faults(claim)] for claim in EVERY}
    assert not {row: named for row, named in found.items() if named}
    assert {claim.kind for claim in EVERY} == set(KINDS)


@pytest.mark.parametrize(
    "broken",
    [
        replace(ROW, kind="belief"),
        replace(ROW, evidence=""),
        replace(ROW, seeds=(0, 1)),
        replace(ROW, command="run"),
        replace(ROW, figures=(replace(FIGURE, name="error"),)),
        replace(ROW, figures=(replace(FIGURE, within=(1.0, 1.0)),)),
        replace(ROW, figures=()),
        replace(ROW, refutes=True),
        replace(ROW, kind="equation"),
        replace(ROW, test="tests/a.py::test_b", deviation=1e-3),
    ],
)
def test_faults_of_rows_are_found(broken: Claim) -> None:
    assert not [*faults(ROW)]
    assert [*faults(broken)]


def test_every_equation_names_a_test_that_asserts_its_deviation() -> None:
    equations = [claim for claim in EVERY if claim.kind == "equation"]
    not_asserted = [(c.paper, c.item, c.test, c.deviation) for c in equations if not asserts(c.test, c.deviation)]
    assert not not_asserted


def test_what_a_test_asserts_is_read_from_its_source() -> None:
    own = "tests/docs/test_claims_rules.py"
    numbers, exact = asserted(f"{own}::test_every_figure_of_a_row_counts")
    assert exact and 5.0 in numbers and not asserts(f"{own}::test_every_figure_of_a_row_counts", 0.3)
    assert asserted(f"{own}::test_gone") == (set(), False)
    assert source_of_test("tests/gone.py::test_gone") is None
    likelihood = "tests/identify/estimators/test_likelihood.py::test_the_cost_is_that_of_equation_24"
    assert asserts(likelihood, 1e-6)  # pytest.approx without a tolerance
    deviations = "tests/identify/estimators/test_least_squares.py::test_deviations_are_those_of_the_estimates"
    assert asserts(deviations, 0.05)  # 0.95 < x < 1.05


def test_every_run_of_the_file_is_of_a_row_and_has_its_figures() -> None:
    named = {claim.run(seed): claim for claim in EVERY for seed in claim.seeds}
    assert set(RUNS) <= set(named)
    for claim in EVERY:
        for figure in claim.figures:
            assert len(values(claim, figure, RUNS)) in (0, len(claim.seeds)), (claim.item, figure.key)


@pytest.mark.parametrize("case", QUICK)
def test_quick_runs_give_the_numbers_of_the_file(case: str) -> None:
    """One seed of each, to six digits as the file has them; another machine rounds otherwise."""
    assert case in CASES
    run = f"python -m benchmarks.claims {case} --seed 0 --out {{out}}"
    found = figures_of(case, 0)
    assert RUNS[run].figures == pytest.approx({name: found[name] for name in RUNS[run].figures}, rel=1e-4)
