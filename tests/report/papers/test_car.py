"""The car's page: one file, offline, with every section and number in it."""

from __future__ import annotations

from studies.car_day import SEED, day
from veridyn.report.papers.car import car_page, car_verdict


def test_the_page_is_whole() -> None:
    made = day()
    text = car_page(made, made.result("demo car", SEED), "veridyn demo car --quick")
    assert len(text) < 6e6 and "http://" not in text.replace("http://www.w3.org", "")
    for title in (
        "The drive",
        "Forces on a drive not used for the fit",
        "The parameters",
        "How far the numbers may be off",
        "From all standard parameters to the 33",
        "Where to cut",
        "Filters, as printed and corrected",
        "38 against 20 degrees of freedom",
        "Which manoeuvre",
        "The paper of 2002",
    ):
        assert title in text, title
    for name in ("k_arf", "XZ_c", "fs_3", "ks17"):
        assert name in text


def test_the_verdict_names_what_is_not_known() -> None:
    judged = car_verdict(day())
    assert judged.grade in ("good", "fair") and "33" in judged.headline
    weak = [p.name for p in day().study.parameters if p.sigma_percent >= 10.0]
    assert all(name in judged.may_not[0] for name in weak)
