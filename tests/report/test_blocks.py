from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from report.test_page import Balance
from veridyn.errors import DataError, ReportWarning, VeridynError
from veridyn.report.blocks import (
    Animation,
    Block,
    Code,
    Figure,
    Heat,
    Key,
    Listing,
    Section,
    Table,
    Text,
    Verdict,
    attempted,
    count,
    like,
    listed,
    measured,
    number,
    percent,
    unit_text,
    units_in,
)
from veridyn.report.page import page
from veridyn.report.plots import Series, bars, curves, heat
from veridyn.studies.result import Result
from veridyn.view.scene import Layer, scene


def everything() -> str:
    t = np.linspace(0.0, 2.0, 100)
    one = curves(
        "one", [Series("sine", t, np.sin(t), band=(np.sin(t) - 0.1, np.sin(t) + 0.1))], "time, s", "angle, rad"
    )
    two = bars("two", ["p", "q", "r"], {"before": [1, 2, 3], "after": [0.5, 1, 0.2]}, "error, %")
    points = np.stack([np.zeros((100, 3)), np.stack([np.sin(t), 0 * t, -np.cos(t)], axis=1)], axis=1)
    rng = np.random.default_rng(4)
    sections = [
        Section(
            "Words", [Text("a <b>bold</b> claim"), Listing(["first", "second"]), Code("veridyn --help")], "A lead."
        ),
        Section("Numbers", [Table(("name", "value", "remark"), [("mass", "1.0", "good")], "A caption.", left=(2,))]),
        Section("Pictures", [Figure([one, two], "Both", "Side by side."), Figure([one])]),
        Section("Matrix", [Heat(heat("Correlation", np.corrcoef(rng.normal(size=(6, 20))), "abcdef", "abcdef"))]),
        Section(
            "Motion", [Animation(scene(t, [Layer("rod", points, [(0, 1)], trails=[1])], "A pendulum"), "Drag to turn.")]
        ),
    ]
    judged = Verdict("good", "It works.", ("One finding.",), ("this",), ("that",))
    result = Result("a study", 1, False, {"log": "ab" * 32}, {"x": 1.0}, (), {}, ("odd <i>thing</i>",))
    return page("A title", judged, [Key("3", "things")], sections, result, "veridyn demo x", {"filter": "none"})


def test_every_kind_of_block_is_set_well_formed_and_escaped() -> None:
    text = everything()
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert "a &lt;b&gt;bold" in text and "odd &lt;i&gt;" in text
    assert text.count("<figure") == 4 and text.count("<canvas") == 1 and "requestAnimationFrame" in text
    for wanted in ("A lead.", "A caption.", "Drag to turn.", "veridyn demo x", "filter", "It works.", "One finding."):
        assert wanted in text


def test_it_needs_nothing_from_outside() -> None:
    text = everything()
    for outside in ("<link", "<img", "src=", 'href="h', "@import", "url(", "http://", "https://"):
        assert outside not in text


def test_a_table_with_a_short_row_is_refused() -> None:
    with pytest.raises(VeridynError, match=r"row 0 \(mass\).*\n.*2 cells, found 1"):
        Table(("a", "b"), [("mass",)])


def test_units_stand_in_a_column_of_their_own_and_below_the_names_where_it_is_narrow() -> None:
    rows = [
        ("mass", "kg", "2.0", "measured"),
        ("h_q1", "N·m·s/rad", "0.1", "not determined by a log as short as this one is"),
    ]
    shown = page_of(Table(("number", "unit", "value", "how"), rows, left=(1, 3), strong=(2,), weak=(1,)))
    assert '<th scope="row" data-unit="kg">mass</th><td class="unit">kg</td><td class="strong">2.0</td>' in shown
    assert shown.count('<tr class="weak">') == 1 and shown.count('class="text long"') == 1
    plain = page_of(Table(("number", "unit"), [("mass", "2")]))  # a column of numbers with this name is no unit
    assert 'data-unit="' not in plain and 'class="unit"' not in plain


def page_of(table: Table) -> str:
    """The table within its page, without style and script."""
    result = Result("a study", 1, False, {}, {}, (), {})
    text = page("A title", Verdict("good", "It works."), [], [Section("Table", [table])], result, "veridyn demo x")
    return text[text.index("<main>") : text.index("</main>")]


def test_an_unknown_grade_is_refused() -> None:
    with pytest.raises(VeridynError, match="good, fair or poor, found great"):
        Verdict("great", "x")


def degenerate() -> Block:
    ConvexHull(np.zeros((5, 3)))
    raise AssertionError


def singular() -> Block:
    np.linalg.inv(np.zeros((2, 2)))
    raise AssertionError


def refused() -> Block:
    raise DataError("it has no width.")


def test_what_can_be_drawn_is_drawn() -> None:
    assert attempted("a picture", lambda: Text("drawn")) == Text("drawn")


@pytest.mark.parametrize(
    ("make", "reason"),
    [(degenerate, "QhullError: QH6"), (singular, "LinAlgError: Singular"), (refused, "DataError: it has no width.")],
)
def test_what_cannot_be_drawn_is_named_with_the_reason(make, reason: str) -> None:
    with pytest.warns(ReportWarning, match="picture “The machine”: it cannot be drawn.\nFound " + reason):
        block = attempted("The machine", make)
    assert isinstance(block, Text)
    assert block.text.startswith(f"The picture “The machine” cannot be drawn ({reason}")


def test_a_defect_is_not_taken_for_a_picture_that_fails() -> None:
    def defect() -> Block:
        raise TypeError("a bug")

    with pytest.raises(TypeError, match="a bug"):
        attempted("The machine", defect)


@pytest.mark.parametrize(
    ("value", "sigma", "shown"),
    [
        (1.23456, 0.0123, ("1.235", "0.012")),
        (-1.23456, 0.0996, ("−1.23", "0.10")),
        (1234.5, 34.0, ("1234", "34")),
        (123456.0, 3400.0, ("123500", "3400")),
        (0.0, 0.02, ("0.000", "0.020")),
        (-0.0004, 0.02, ("0.000", "0.020")),
        (1.5, 0.0, ("1.5", "0")),
        (1.5, float("nan"), ("1.5", "–")),
        (1.5e-12, 2.5e-13, ("1.50·10⁻¹²", "0.25·10⁻¹²")),
        (8.14167e6, 8.3e5, ("8.14·10⁶", "0.83·10⁶")),
        (-8.14167e6, 9.96e5, ("−8.1·10⁶", "1.0·10⁶")),
        (3.0, 5e6, ("0.0·10⁶", "5.0·10⁶")),
        (999999.5, 99600.0, ("1.00·10⁶", "0.10·10⁶")),
        (0.0, 99600.0, ("0.0·10⁵", "1.0·10⁵")),
        (1.0, 1e-12, ("1.0000000000000", "0.0000000000010")),
        (8.14167e6, 1e-12, ("8141670", "1·10⁻¹²")),
        (1.5, 1e-300, ("1.5", "1·10⁻³⁰⁰")),
        (1e300, 2.0, ("1·10³⁰⁰", "2")),
        (0.0, 5e-324, ("0", "4.9·10⁻³²⁴")),
    ],
)
def test_value_and_deviation_end_at_the_same_place(value: float, sigma: float, shown: tuple[str, str]) -> None:
    assert measured(value, sigma) == shown


def read(text: str) -> tuple[Decimal, int]:
    """A number as it is shown, and the power of ten of its last digit."""
    mantissa, _, power = text.replace("−", "-").partition("·10")
    shown = Decimal(f"{mantissa}e{power.translate(str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789')) or 0}")
    places = shown.as_tuple().exponent
    assert isinstance(places, int)
    return shown, places


@given(st.floats(-9.99, 9.99), st.floats(1.0, 9.99), st.integers(-12, 12), st.integers(-24, 12))
def test_value_and_deviation_are_those_that_are_shown(a: float, b: float, power: int, more: int) -> None:
    """By decimal numbers: half a unit of the last place at most, which is the same for both, and two digits of the deviation."""
    value, sigma = a * 10.0 ** (power + more), b * 10.0**power
    shown = measured(value, sigma)
    unit = Decimal(10) ** (Decimal(f"{sigma:.1e}").adjusted() - 1)  # of the second digit of the deviation, rounded
    for text, true in zip(shown, (value, sigma), strict=True):
        mantissa, _, ten = text.replace("−", "-").partition("·10")
        read = Decimal(f"{mantissa}e{ten.translate(str.maketrans('⁻⁰¹²³⁴⁵⁶⁷⁸⁹', '-0123456789')) or 0}")
        assert abs(read - Decimal(true)) <= Decimal("0.501") * unit
        assert not ten or abs(Decimal(mantissa)) < 10
    (x, _, x_ten), (s, _, s_ten) = (text.partition("·") for text in shown)
    assert x_ten == s_ten and len(x.partition(".")[2]) == len(s.partition(".")[2])


def test_another_value_of_the_same_quantity() -> None:
    assert like(1.23456, 0.0123) == "1.235"
    assert like(0.0, 0.0123) == "0"
    assert like(float("nan"), 0.0123) == "–"


def test_numbers_for_the_eye() -> None:
    assert number(-0.00012345) == "−0.0001234"
    assert number(1.3e13, 2) == "1.3·10¹³"
    assert (number(-4567.0, 2), number(500.0, 2), number(999999.6)) == ("−4600", "500", "1·10⁶")
    assert number(float("inf")) == "–"
    assert (number(0.0), number(-0.0), number(-1e-4, 1)) == ("0", "0", "−0.0001")
    assert [percent(x) for x in (4e-5, 0.0, -0.0, -18.4, -1e5, -float("inf"))] == [
        "4·10⁻⁵",
        "0",
        "0",
        "−18",
        "< −999",
        "< −999",
    ]
    assert [percent(x) for x in (0.042, 0.55, 1.0, 3.14, 9.97, 18.4, 379.2, 1e5, float("inf"), float("nan"))] == [
        "0.04",
        "0.55",
        "1.0",
        "3.1",
        "10",
        "18",
        "379",
        "> 999",
        "> 999",
        "–",
    ]
    assert unit_text("N*m/(m/s)^2") == "N·m/(m/s)²"


def test_words() -> None:
    assert count(1, "body", "bodies") == "1 body"
    assert count(2, "body", "bodies") == "2 bodies"
    assert count(3, "row") == "3 rows"
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"


def test_units_within_a_sentence_and_nothing_else() -> None:
    said = "found 0.06 ± 0.01 N*m for each rad/s^2, 3 N*m*s/rad, m^2."
    assert units_in(said) == "found 0.06 ± 0.01 N·m for each rad/s², 3 N·m·s/rad, m²."
    for kept in ("{kind: law, formula: a*b}", "2*m", "q1*m", "m*(s)", "column 'tau1 [N*m]'"):
        assert units_in(kept) == kept
