from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veridyn.report import count, like, listed, measured, number, percent, unit_text, units_in


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
