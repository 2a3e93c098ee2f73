import pytest

from veridyn.report.words import count, like, listed, measured, number, percent, unit_text, units_in


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
    ],
)
def test_value_and_deviation_end_at_the_same_place(value: float, sigma: float, shown: tuple[str, str]) -> None:
    assert measured(value, sigma) == shown


def test_another_value_of_the_same_quantity() -> None:
    assert like(1.23456, 0.0123) == "1.235"
    assert like(0.0, 0.0123) == "0"
    assert like(float("nan"), 0.0123) == "–"


def test_numbers_for_the_eye() -> None:
    assert number(-0.00012345) == "−0.0001234"
    assert number(1.3e13, 2) == "1.3·10¹³"
    assert (number(-4567.0, 2), number(500.0, 2), number(999999.6)) == ("−4600", "500", "1·10⁶")
    assert number(float("inf")) == "–"
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
