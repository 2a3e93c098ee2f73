"""Positions on the Earth: against a published example, a published length and closed forms; degrees-minutes are refused by name."""

import itertools
import sys
from math import cos, pi, radians, sin, sqrt

import numpy as np
import pytest

from veridyn.errors import DataError, DataWarning
from veridyn.files.geodesy import GeoOrigin, check_degrees, degrees_of_minutes, enu_of, geodetic_of, local_position
from veridyn.model.experiment import Channel, Experiment

pytest.importorskip("pymap3d", reason="pymap3d (the extra 'geodesy') turns places into positions")

A, F = 6378137.0, 1.0 / 298.257223563  # WGS 84
E2 = F * (2.0 - F)
MALAGA = GeoOrigin.in_degrees(36.72, -4.42, 11.0)  # near where the vehicle of 003 was driven; chosen


def meridian_radius(phi):
    return A * (1.0 - E2) / (1.0 - E2 * sin(phi) ** 2) ** 1.5


def transverse_radius(phi):
    return A / sqrt(1.0 - E2 * sin(phi) ** 2)


def earth_centred(phi, lam, h):
    n = transverse_radius(phi)
    return np.array([(n + h) * cos(phi) * cos(lam), (n + h) * cos(phi) * sin(lam), (n * (1.0 - E2) + h) * sin(phi)])


def test_the_published_example():
    """IOGP, Geomatics Guidance Note 7-2, geographic/topocentric conversions (EPSG method 9837)."""
    origin = GeoOrigin.in_degrees(55.0, 5.0, 200.0)
    lat, lon = radians(53.0 + 48.0 / 60.0 + 33.82 / 3600.0), radians(2.0 + 7.0 / 60.0 + 46.38 / 3600.0)
    assert enu_of(lat, lon, 73.0, origin) == pytest.approx([-189013.869, -128642.040, -4220.171], abs=1e-3)


def test_the_quarter_of_a_meridian():
    """Small steps north, each in a plane of its own, add up to the length of a quarter meridian of WGS 84, 10 001 965.729 m."""
    count = 3000
    grid = np.linspace(0.0, pi / 2, count + 1)
    steps = [enu_of(b, 0.3, 0.0, GeoOrigin(a, 0.3))[1] for a, b in itertools.pairwise(grid)]
    # A plane sees the chord's shadow: s³/6R² short in each step of 3.3 km, 0.5 m in all.
    step = 10_001_965.729 / count
    assert sum(steps) == pytest.approx(10_001_965.729 - count * step**3 / (6.0 * 6.37e6**2), abs=0.01)


@pytest.mark.parametrize("degrees", [(36.72, -4.42), (-33.9, 151.2), (78.2, 15.6), (0.0, 179.9)])
def test_closed_form(degrees):
    """East, north and up are the rows of a rotation of differences of earth-centred coordinates."""
    phi, lam = map(radians, degrees)
    rng = np.random.default_rng(1)
    rows = np.array(
        [
            [-sin(lam), cos(lam), 0.0],
            [-sin(phi) * cos(lam), -sin(phi) * sin(lam), cos(phi)],
            [cos(phi) * cos(lam), cos(phi) * sin(lam), sin(phi)],
        ]
    )
    for _ in range(5):
        place = phi + rng.normal(0.0, 1e-3), lam + rng.normal(0.0, 1e-3), rng.uniform(-50.0, 500.0)
        expected = rows @ (earth_centred(*place) - earth_centred(phi, lam, 40.0))
        assert enu_of(*place, GeoOrigin(phi, lam, 40.0)) == pytest.approx(expected, abs=1e-7)


def test_a_hundred_metres_east_and_north_are_not_43_metres_down():
    """Equation (82) of 003 as printed gives 43 m down here; on a round Earth it is d²/2R, 1.6 mm."""
    phi = MALAGA.latitude
    lat = phi + 100.0 / (meridian_radius(phi) + 11.0)
    lon = MALAGA.longitude + 100.0 / ((transverse_radius(phi) + 11.0) * cos(phi))
    east, north, up = enu_of(lat, lon, 11.0, MALAGA)
    assert (east, north) == pytest.approx((100.0, 100.0), abs=2e-3)
    assert up == pytest.approx(-2.0 * 100.0**2 / (2.0 * 6.37e6), rel=0.01)


def test_there_and_back():
    rng = np.random.default_rng(2)
    enu = rng.uniform(-5e3, 5e3, size=(40, 2, 3))
    back = enu_of(*geodetic_of(enu, MALAGA), MALAGA)
    assert back.shape == (40, 2, 3)
    assert back == pytest.approx(enu, abs=1e-6)
    _, lon, _ = geodetic_of([-2e4, 0.0, 0.0], GeoOrigin.in_degrees(10.0, -179.95))
    assert radians(179.0) < lon < pi


def log(lat, lon, h, units=("rad", "rad", "m"), late=0.0):
    t = np.arange(len(lat)) * 0.2
    parts = zip(("latitude", "longitude", "altitude"), (lat, lon, h), units)
    return Experiment(
        {f"fix.{n}": Channel(f"fix.{n}", t + late * (n == "altitude"), np.array(x), u) for n, x, u in parts}, "drive"
    )


def test_a_log_of_fixes_becomes_positions():
    given = log([np.nan, 36.72, 36.72], [np.nan, -4.42, -4.41], [0.0, 11.0, 12.0], ("deg", "deg", "m"))
    out = local_position(given)
    assert out["position.east"].unit == "m"
    assert np.isnan(out["position.east"].values[0])
    phi = radians(36.72)
    assert out["position.east"].values[1:] == pytest.approx(
        [0.0, radians(0.01) * transverse_radius(phi) * cos(phi)], rel=1e-5
    )
    assert out["position.up"].values[2] == pytest.approx(1.0 - 893.0**2 / 2 / 6.37e6, abs=1e-3)
    assert out.notes["origin of position"] == "36.720000000 deg, -4.420000000 deg, 11.0000 m"
    other = local_position(given, name="p", origin=GeoOrigin.in_degrees(36.72, -4.41, 12.0))
    assert other["p.north"].values[2] == pytest.approx(0.0, abs=1e-9)


def test_degrees_for_radians_are_found_out():
    with pytest.raises(
        DataError,
        match=r"origin: a latitude is out of range.\nExpected -1.5708 to 1.5708 rad, found 36.72. These may be degrees",
    ):
        GeoOrigin(36.72, -4.42)
    with pytest.raises(DataError, match=r"place: a latitude is out of range, first at sample 1"):
        enu_of([0.6, 36.7], [0.1, 0.1], [0.0, 0.0], MALAGA)
    with pytest.warns(DataWarning, match=r"these degrees look like radians"):
        GeoOrigin.in_degrees(0.6409, -0.0771)


def test_what_is_nowhere_is_refused():
    with pytest.raises(DataError, match=r"(?s)a longitude is out of range.*a height is out of range.*found 400000"):
        enu_of(0.1, 200.0, 4e5, MALAGA)
    with pytest.raises(DataError, match=r"origin: it is not a number"):
        GeoOrigin(float("nan"), 0.0)
    with pytest.raises(DataError, match=r"no fix is whole"):
        local_position(log([np.nan], [0.1], [0.0]))
    with pytest.raises(DataError, match=r"'fix.altitude': it has another clock"):
        local_position(log([0.1, 0.1], [0.1, 0.1], [0.0, 0.0], late=0.1))
    with pytest.raises(DataError, match=r"'1' cannot be converted into 'rad'"):
        local_position(log([0.1], [0.1], [0.0], ("1", "rad", "m")))
    with pytest.raises(DataError, match=r"\(…, 3\): east, north, up, found \(2,\)"):
        geodetic_of([1.0, 2.0], MALAGA)


def test_a_receiver_without_satellites_is_told():
    with pytest.warns(DataWarning, match=r"the log goes .* km from its origin, too far for a plane"):
        local_position(log([0.0, 0.64], [0.0, -0.08], [0.0, 0.0]))


def test_without_its_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymap3d", None)
    with pytest.raises(DataError, match=r"need pymap3d, which is not installed.\npip install 'veridyn\[geodesy\]'"):
        enu_of(0.6, 0.1, 0.0, MALAGA)


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
