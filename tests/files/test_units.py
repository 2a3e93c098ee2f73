"""Factors from the SI brochure, the shape of what comes out, and a reason for every refusal."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.files.units import convert, dimension, si_unit, to_si


@pytest.mark.parametrize(
    ("unit", "factor", "si"),
    [
        ("m", 1.0, "m"),
        ("1", 1.0, "1"),
        ("%", 0.01, "1"),
        ("mm", 1e-3, "m"),
        ("km/h", 1 / 3.6, "m/s"),
        ("mph", 0.44704, "m/s"),
        ("deg", np.pi / 180, "rad"),
        ("deg/s", np.pi / 180, "rad/s"),
        ("°/s", np.pi / 180, "rad/s"),
        ("rpm", np.pi / 30, "rad/s"),
        ("rev/min", np.pi / 30, "rad/s"),
        ("m/s^2", 1.0, "m/s^2"),
        ("m/s²", 1.0, "m/s^2"),
        ("m/s2", 1.0, "m/s^2"),
        ("m s⁻²", 1.0, "m/s^2"),
        ("m*s**-2", 1.0, "m/s^2"),
        ("m.s-1", 1.0, "m/s"),
        ("g0", 9.80665, "m/s^2"),
        ("gn", 9.80665, "m/s^2"),
        ("gram", 1e-3, "kg"),
        ("gram*mm^2", 1e-9, "kg*m^2"),
        ("kg", 1.0, "kg"),
        ("kg m2", 1.0, "kg*m^2"),
        ("Nm", 1.0, "N*m"),
        ("N*m", 1.0, "N*m"),
        ("N·m", 1.0, "N*m"),
        ("N*m/rad", 1.0, "N*m/rad"),
        ("Nm/deg", 180 / np.pi, "N*m/rad"),
        ("N*m*s/rad", 1.0, "N*m*s/rad"),
        ("N/(m/s)", 1.0, "N*s/m"),
        ("(N*m)^2", 1.0, "N^2*m^2"),
        ("kN/mm", 1e6, "N/m"),
        ("1/s", 1.0, "1/s"),
        ("Hz", 1.0, "Hz"),
        ("rad/s/Hz^0.5", 1.0, "rad/s/Hz^0.5"),
        ("mm/m", 1e-3, "1"),
        ("A", 1.0, "A"),
        ("mV", 1e-3, "V"),
        ("Nm/A", 1.0, "N*m/A"),
        ("bar", 1e5, "Pa"),
        ("µs", 1e-6, "s"),
        ("us", 1e-6, "s"),
        ("h", 3600.0, "s"),
        (" ms ", 1e-3, "s"),
    ],
)
def test_units_that_are_read(unit, factor, si):
    value, found = to_si(3.0, unit)
    assert value == pytest.approx(3.0 * factor, rel=1e-15)
    assert found == si == si_unit(unit)
    assert to_si(value, found) == (value, si)  # SI stays as it is
    assert dimension(unit) == dimension(si)
    assert convert(value, si, unit) == pytest.approx(3.0, rel=1e-15)


def test_arrays_and_whole_numbers():
    values, unit = to_si(np.array([0.0, 36.0, 72.0]), "km/h")
    assert values == pytest.approx([0.0, 10.0, 20.0])
    assert unit == "m/s"
    same = np.arange(3.0)
    assert to_si(same, "rad")[0] is same


def test_degrees_celsius_have_an_offset():
    assert to_si(20.0, "degC") == (pytest.approx(293.15), "K")
    assert convert(300.0, "K", "degC") == pytest.approx(26.85)
    with pytest.raises(DataError, match=r"a temperature that has an offset.\nUse K"):
        to_si(1.0, "J/degC")


def test_dimensions_are_compared_by_what_they_measure():
    assert dimension("N") == dimension("kg*m/s^2")
    assert dimension("W") == dimension("N*m/s") == dimension("V*A")
    assert dimension("Hz") != dimension("rad/s")
    assert str(dimension("N/m")) == "kg/s^2"
    assert str(dimension("%")) == "1"
    assert convert(1.0, "kW*h", "J") == pytest.approx(3.6e6)


def test_a_mismatch_names_both():
    with pytest.raises(DataError, match=r"column 'k': 'N/m' cannot be converted into 'N\*m'"):
        convert(1.0, "N/m", "N*m", where="column 'k'")
    with pytest.raises(
        DataError, match=r"Expected a unit of dimension kg\*m\^2/s\^2 \('N\*m'\), found kg/s\^2 \('N/m'\)"
    ):
        convert(1.0, "N/m", "N*m")


def test_hertz_are_not_radians_per_second():
    with pytest.raises(DataError, match=r"They differ by an angle: name it"):
        convert(1.0, "Hz", "rad/s")


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("g", "'g' may be a gram or standard gravity: write 'gram', or 'g0'"),
        ("m/s/g", "unknown symbol 'g'"),
        ("Kg", "Write 'kg': K is the kelvin"),
        ("rads", "Did you mean 'rad'"),
        ("furlong", "unknown symbol 'furlong'.\nKnown: m, mm, s,"),
        ("", "there is no unit"),
        ("   ", "Write '1' for a pure number"),
        ("m/", "a symbol is missing at the end"),
        ("/s", "a symbol is missing before '/'"),
        ("(m/s", "a bracket is not closed"),
        ("m/s)", "'\\)' stands where nothing is expected"),
        ("10", "the number '10' stands where a symbol is expected"),
        ("m^^2", "the character '\\^' cannot be part of a unit"),
        ("m$", "the character '\\$'"),
    ],
)
def test_units_that_are_refused(unit, words):
    with pytest.raises(DataError, match=words):
        to_si(1.0, unit)


def test_the_place_is_named():
    with pytest.raises(DataError, match=r"column 'ax': the unit 'g' holds"):
        to_si(1.0, "g", where="column 'ax'")
