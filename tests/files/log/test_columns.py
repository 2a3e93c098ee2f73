"""Columns and their units, as headers give them."""

from veridyn.files.log.columns import split_header


def test_brackets_hold_a_unit_or_number_a_column() -> None:
    assert split_header("speed [km/h]") == ("speed", "km/h")
    assert split_header("slip [1]") == ("slip", "1")
    assert split_header("position[1]") == ("position[1]", "")
    assert split_header("t[s]") == ("t", "s")
    assert split_header("plain") == ("plain", "")
