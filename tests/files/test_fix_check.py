"""Degrees-minutes and exchanged columns are refused by name; places that are right pass."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.files.fix_check import check_degrees, degrees_of_minutes
from veridyn.files.geodesy import GeoOrigin, local_position
from veridyn.model.experiment import Channel, Experiment

PLACES = [(36.72, -4.42), (-33.9, 151.2), (78.2, 15.6), (0.01, 179.9), (0.5, 359.9), (-0.3, 0.2), (51.48, 0.0)]


def minutes(degrees):
    """ddmm.mmmm of degrees, written out here."""
    whole = int(abs(degrees))
    return np.copysign(100 * whole + 60.0 * (abs(degrees) - whole), degrees)


@pytest.mark.parametrize("place", PLACES)
def test_there_and_back_and_right_places_pass(place):
    assert degrees_of_minutes([minutes(x) for x in place]) == pytest.approx(place, abs=1e-12)
    lat, lon = (x + 1e-3 * np.arange(5.0) for x in place)
    check_degrees(lat, lon, "fix")
    check_degrees(lat, lon, "fix", near=place)
    check_degrees(np.append(lat, np.nan), lon, "fix")


@pytest.mark.parametrize("place", PLACES[:4])
def test_degrees_minutes_are_refused_with_what_they_stand_for(place):
    lat, lon = (np.array([minutes(x + d) for d in (0.0, 0.002)]) for x in place)
    with pytest.raises(DataError, match=r"fix: these are degrees and minutes") as error:
        check_degrees(lat, lon, "fix")
    assert f"They stand for {place[0]:.6f} and {place[1]:.6f} deg" in str(error.value)


def test_exchanged_columns_are_refused_where_numbers_show_it():
    with pytest.raises(DataError, match=r"latitude and longitude are exchanged(.|\n)*Exchange the two columns"):
        check_degrees([151.2], [-33.9], "fix")
    check_degrees([-4.42], [36.72], "fix")  # a place in Tanzania as well
    with pytest.raises(DataError, match=r"exchanged(.|\n)*near the origin 36.7, -4.4 deg"):
        check_degrees([-4.42], [36.72], "fix", near=(36.7, -4.4))


def test_a_log_of_degrees_minutes_is_refused_as_it_is_turned_into_metres():
    pytest.importorskip("pymap3d", reason="pymap3d (the extra 'geodesy') turns places into positions")
    t = np.arange(2) * 0.2

    def log(lat, lon):
        parts = {"latitude": (lat, "deg"), "longitude": (lon, "deg"), "altitude": ([11.0, 11.0], "m")}
        return Experiment({f"fix.{n}": Channel(f"fix.{n}", t, np.array(v), u) for n, (v, u) in parts.items()}, "drive")

    with pytest.raises(
        DataError, match=r"drive, channels 'fix.latitude' and '.longitude': these are degrees and minutes"
    ):
        local_position(log([3643.2, 3643.3], [-425.2, -425.1]))
    with pytest.raises(DataError, match="exchanged"):
        local_position(log([-4.42, -4.42], [36.72, 36.72]), origin=GeoOrigin.in_degrees(36.72, -4.42))
    with pytest.raises(DataError, match="origin: these are degrees and minutes"):
        GeoOrigin.in_degrees(3643.2, -425.2)
