import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from studies.small_arm import small_study, with_check
from veridyn.report.identification import identification_page
from veridyn.report.verdict import CLOSE, USEFUL

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Balance(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def page() -> str:
    study = small_study()
    result = study.result(
        "small", seed=7, quick=True, inputs={"log": "ab" * 32}, warnings=("log: <b>odd</b> & so on.",)
    )
    return identification_page(study, result, "veridyn demo arm --seed 7")


def test_it_is_well_formed_and_needs_nothing_from_outside(page: str) -> None:
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(
        r"<script (?!type=.application/json.>)|<link|<img|src=|href=\"[^#]|@import|url\(|https?://|innerHTML|eval\(|fetch\(",
        page,
    )
    assert page.count("<script>") == 1 and len(page) < 1_000_000


def test_the_contents_lead_to_every_section(page: str) -> None:
    contents = page[page.index('<nav class="contents"') : page.index("</nav>")]
    linked = re.findall(r'<a href="#([^"]+)">([^<]+)</a>', contents)
    headed = re.findall(r'<section id="([^"]+)">\s*<h2>([^<]+)</h2>', page)
    assert linked == headed and len(headed) == len({a for a, _ in headed}) >= 6
    assert page.count("<section") == len(headed) + page.count('<section class="scope">')


@pytest.mark.parametrize("before", [True, False])
def test_sentences_under_a_table_stand_apart(before: bool) -> None:
    study = small_study() if before else with_check(small_study(), before=None)
    study = replace(study, settings={**study.settings, "dead zone": "0.01 rad/s"})
    text = identification_page(study, study.result("small", seed=7, quick=True, inputs={}), "veridyn demo arm")
    note = re.search(r'<p class="note">‖r‖(.*?)</p>', text, re.DOTALL)
    assert note and re.search(r"\. Samples close to standstill", note[1]) and not re.search(r"[a-z]\.[A-Z○]", note[1])


def test_it_says_what_a_reader_looks_for(page: str) -> None:
    study = small_study()
    for name in study.fit.names:
        assert f">{name}<" in page
    for relation in study.fit.base.relations():
        assert relation in page
    for text in ("It may be used for", "It may not be used for", "veridyn demo arm --seed 7", "quick run", "ab" * 32):
        assert text in page
    first = page.index("<h1")
    assert first < page.index("<table")


def test_verdict_figures_and_warnings_are_counted_before_any_sentence(page: str) -> None:
    """Ten seconds: the verdict, how far predictions are off, what is known, and whether something speaks against it."""
    header = page[page.index("<header>") : page.index("</header>")]
    labels = re.findall(r"<dt>(.*?)</dt>", header)
    assert "not predicted" in labels[0] and "σ below 10 %" in labels[1] and labels[-1] == "warning, below"
    assert header.index("<h1") < header.index('<dl class="cards">') < header.index('<div class="prose lead">')


def test_the_appendix_has_the_rule_of_the_grade(page: str) -> None:
    after = page[page.index('<section id="appendix">') :]
    rule = re.search(r'<th scope="row">grade</th><td>(.*?)</td>', after)
    assert rule and f"good below {CLOSE:g} %, fair below {USEFUL:g} %" in rule[1]
    assert page.index('<section id="parameters">') < page.index('<section id="appendix">')


def test_of_many_warnings_the_first_are_open_and_units_are_those_of_the_page() -> None:
    study = small_study()
    said = tuple(f"joint {k}: found {k} N*m for each rad/s^2 of a*b." for k in range(1, 8))
    text = identification_page(
        study, study.result("small", seed=7, quick=True, inputs={}, warnings=said), "veridyn demo arm"
    )
    later = study.result(
        "small", seed=7, quick=True, inputs={}, warnings=("channel 'q.q1': 1 spike(s).", "not exported.")
    )
    ordered = identification_page(study, later, "veridyn demo arm")
    assert ordered.index("not exported.") < ordered.index("1 spike(s).")
    folded = text[text.index("<details>") : text.index("</details>")]
    assert "<summary>3 more</summary>" in folded and "joint 5: found 5 N·m for each rad/s² of a*b." in folded
    assert all(f"joint {k}: found {k} N·m" in text for k in range(1, 8)) and "joint 4:" not in folded


def test_what_comes_from_outside_is_escaped(page: str) -> None:
    assert "log: &lt;b&gt;odd&lt;/b&gt; &amp; so on." in page
    assert "<b>odd" not in page


def test_the_same_study_makes_the_same_page(page: str) -> None:
    study = small_study()
    result = study.result(
        "small", seed=7, quick=True, inputs={"log": "ab" * 32}, warnings=("log: <b>odd</b> & so on.",)
    )
    assert identification_page(study, result, "veridyn demo arm --seed 7") == page


def test_it_can_do_without_truth_priors_and_warnings() -> None:
    study = replace(with_check(small_study(), before=None), truth=np.full(len(small_study().truth), np.nan))
    text = identification_page(
        study, study.result("a log", seed=None, quick=False, inputs={}), "veridyn identify study.yaml"
    )
    assert "Warnings" not in text
    assert ">truth<" not in text
    assert "quick run" not in text


def test_pictures_have_words_for_those_who_cannot_see_them(page: str) -> None:
    pictures = re.findall(r'<svg viewBox="0 0 1000 240"[^>]*>', page)
    assert len(pictures) == 2 * 2 * 2 + 1 + 7  # forces, singular values, and what stands behind them
    assert all('role="img" aria-label="' in p for p in pictures)
