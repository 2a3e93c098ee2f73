"""Places on the Earth as positions in a plane: latitude, longitude and height ↔ metres east, north and up of an origin (WGS 84).

    local_position(load_log("drive.bag", {"fix": "/fix"}))        # adds position.east, position.north, position.up

Angles are in radians, as everywhere inside; heights are above the ellipsoid, as satellites give them, not above the sea. The plane touches
the Earth at the origin: what lies on the ground at a distance d is d²/2R below it, 0.8 m at 3.2 km. pymap3d, of the extra ``geodesy``,
does the sums. (The thesis, 003, prints its matrix (82) with a wrong entry.)

Degrees-minutes of NMEA (ddmm.mmmm: 3643.2 is 36° 43.2′ = 36.72°), and latitudes exchanged with longitudes, are refused where the numbers
show them: degrees-minutes of a place within 1° of the equator and of Greenwich look like degrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, degrees, hypot, pi, radians
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked, checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, part_at, warn
from veridyn.files.units import convert
from veridyn.model.experiment import Channel, Experiment

DEEPEST, HIGHEST = -12e3, 100e3  # m: what is below the sea, or above the air, was not measured by a receiver
FAR = 100e3  # m from the origin, where a plane is no map any more
DEGREE_M = 111e3  # m, about, of a degree of latitude
NEAR_M = 100e3  # m: a log lies within it of its origin


@checked_record
@dataclass(frozen=True)
class GeoOrigin:
    """Where the plane touches the Earth: latitude and longitude in rad, height in m."""

    latitude: float
    longitude: float
    height: float = 0.0

    def __post_init__(self) -> None:
        check_place(self.latitude, self.longitude, self.height, "origin")
        if not np.isfinite([self.latitude, self.longitude, self.height]).all():
            raise DataError("it is not a number.", where="origin", expected="a place on the Earth", found=f"{self}")

    @classmethod
    def in_degrees(cls, latitude: float, longitude: float, height: float = 0.0) -> GeoOrigin:
        """The same from degrees."""
        if 0.0 < abs(latitude) < pi / 2 and abs(longitude) < pi:
            found = f"latitude {latitude:.6g}, longitude {longitude:.6g}, which is at sea off the Gulf of Guinea"
            warn(DataWarning, Fault("these degrees look like radians.", "origin", "", found))
        check_degrees(latitude, longitude, "origin")
        return cls(radians(latitude), radians(longitude), height)

    def __str__(self) -> str:
        return f"{degrees(self.latitude):.9f} deg, {degrees(self.longitude):.9f} deg, {self.height:.4f} m"


@checked
def enu_of(latitude: ArrayLike, longitude: ArrayLike, height: ArrayLike, origin: GeoOrigin) -> Array:
    """Metres east, north and up of the origin, (…, 3); NaN where a place is."""
    lat, lon, h = (np.asarray(x, dtype=np.float64) for x in (latitude, longitude, height))
    check_place(lat, lon, h, "place")
    found = _pymap3d().geodetic2enu(lat, lon, h, origin.latitude, origin.longitude, origin.height, deg=False)
    return np.stack(np.broadcast_arrays(*found), axis=-1).astype(np.float64)


@checked
def geodetic_of(enu: ArrayLike, origin: GeoOrigin) -> tuple[Array, Array, Array]:
    """Latitude, longitude (rad, −π to π) and height (m) of places given in metres east, north and up, (…, 3)."""
    x = np.asarray(enu, dtype=np.float64)
    if x.ndim == 0 or x.shape[-1] != 3:
        raise DataError(
            "positions have the wrong shape.", where="enu", expected="(…, 3): east, north, up", found=f"{x.shape}"
        )
    found = _pymap3d().enu2geodetic(
        x[..., 0], x[..., 1], x[..., 2], origin.latitude, origin.longitude, origin.height, deg=False
    )
    lat, lon, h = (np.asarray(f, dtype=np.float64) for f in found)
    return lat, (lon + pi) % (2.0 * pi) - pi, h


@checked
def local_position(
    log: Experiment, fix: str = "fix", name: str = "position", origin: GeoOrigin | None = None
) -> Experiment:
    """The log with channels name.east, name.north and name.up, in m, from fix.latitude, fix.longitude and fix.altitude (or fix.height).

    Without an origin the first whole fix is one, and the notes say where it is. A fix that is not a number gives positions that are none.
    """
    tall = f"{fix}.height" if f"{fix}.height" in log else f"{fix}.altitude"
    lat, lon, h = log[f"{fix}.latitude"], log[f"{fix}.longitude"], log[tall]
    faults = Faults()
    for c in (lat, lon, h):
        if not np.array_equal(c.t, lat.t):
            faults.add("it has another clock.", where=part_at("channel", c.name), expected=f"the clock of '{lat.name}'")
    faults.raise_if_any(DataError, log.name)
    places = [
        convert(c.values, c.unit, unit, part_at("channel", c.name))
        for c, unit in ((lat, "rad"), (lon, "rad"), (h, "m"))
    ]
    whole = np.flatnonzero(np.isfinite(np.stack(places)).all(axis=0))
    if len(whole) == 0:
        expected = "a latitude, longitude and height"
        raise DataError("no fix is whole.", where=f"channels '{fix}.…'", expected=expected, source=log.name)
    near = None if origin is None else (degrees(origin.latitude), degrees(origin.longitude))
    try:
        check_degrees(np.degrees(places[0]), np.degrees(places[1]), f"channels '{fix}.latitude' and '.longitude'", near)
    except DataError as error:
        raise DataError(error.faults, log.name) from error
    centre = origin or GeoOrigin(*(float(p[whole[0]]) for p in places))
    enu = enu_of(places[0], places[1], places[2], centre)
    furthest = float(np.nanmax(np.hypot(enu[:, 0], enu[:, 1])))
    if furthest > FAR:
        fault = Fault(
            f"the log goes {furthest / 1e3:.0f} km from its origin, too far for a plane.",
            f"channels '{fix}.…'",
            found=f"the origin {centre}",
            hint="A fix at 0 deg, 0 deg is a receiver without satellites; an origin in degrees is GeoOrigin.in_degrees(…).",
        )
        warn(DataWarning, fault)
    made = [Channel(f"{name}.{axis}", lat.t, enu[:, k], "m") for k, axis in enumerate(("east", "north", "up"))]
    out = log.replacing(*made)
    return Experiment(out.channels, out.name, {**out.notes, f"origin of {name}": str(centre)})


def check_place(latitude: ArrayLike, longitude: ArrayLike, height: ArrayLike, where: str) -> None:
    """Refuse what is nowhere on the Earth; NaN is let through."""
    faults = Faults()
    for word, x, low, high in (
        ("latitude", latitude, -pi / 2, pi / 2),
        ("longitude", longitude, -2.0 * pi, 2.0 * pi),
        ("height", height, DEEPEST, HIGHEST),
    ):
        values = np.atleast_1d(np.asarray(x, dtype=np.float64))
        out = np.flatnonzero((values < low - 1e-12) | (values > high + 1e-12))
        if len(out):
            value, place = float(values.ravel()[out[0]]), "" if values.size == 1 else f", first at sample {out[0]}"
            angle = word != "height"
            what = f"a {word} is out of range{place}."
            expected = f"{low:.6g} to {high:.6g} {'rad' if angle else 'm'}"
            hint = "These may be degrees: np.radians turns them, and GeoOrigin.in_degrees takes them." if angle else ""
            faults.add(what, where=where, expected=expected, found=f"{value:.6g}", hint=hint)
    faults.raise_if_any(DataError)


def _pymap3d() -> Any:
    try:
        import pymap3d
    except ImportError as error:
        fault = Fault(
            "positions on the Earth need pymap3d, which is not installed.", hint="pip install 'veridyn[geodesy]'"
        )
        raise DataError(fault) from error
    return pymap3d


@checked
def degrees_of_minutes(value: ArrayLike) -> Array:
    """Degrees from degrees-minutes (ddmm.mmmm, dddmm.mmmm), with the sign of the hemisphere.

    Examples
    --------
    >>> from veridyn.files import degrees_of_minutes
    >>> degrees_of_minutes([3643.2, -425.2]).round(6).tolist()
    [36.72, -4.42]
    """
    x = np.asarray(value, dtype=np.float64)
    whole = np.floor(np.abs(x) / 100.0)
    return np.sign(x) * (whole + (np.abs(x) - 100.0 * whole) / 60.0)


def check_degrees(
    latitude: ArrayLike, longitude: ArrayLike, where: str, near: tuple[float, float] | None = None
) -> None:
    """Refuse degrees-minutes, and latitudes exchanged with longitudes, by name; values in degrees, NaN is let through.

    `near`: latitude and longitude of an origin that is given. Only the exchanged ones are near it where the two are exchanged.
    """
    lat, lon = (np.atleast_1d(np.asarray(x, dtype=np.float64)).ravel() for x in (latitude, longitude))
    lat, lon = lat[np.isfinite(lat)], lon[np.isfinite(lon)]
    if len(lat) == 0 or len(lon) == 0:
        return
    if _exchanged(lat, lon, near):
        origin = "" if near is None else f" near the origin {near[0]:g}, {near[1]:g} deg"
        expected, found = f"latitudes of −90 to 90 deg{origin}", f"latitude {lat[0]:.6g}, longitude {lon[0]:.6g}"
        what, hint = "latitude and longitude are exchanged.", "Exchange the two columns."
        raise DataError(what, where=where, expected=expected, found=found, hint=hint)
    if _minutes(lat, lon):
        a, b = degrees_of_minutes([lat[0], lon[0]]).tolist()
        what = "these are degrees and minutes, ddmm.mmmm, as NMEA sentences have them."
        hint = f"They stand for {a:.6f} and {b:.6f} deg: veridyn.files.degrees_of_minutes turns them."
        raise DataError(
            what, where=where, expected="degrees", found=f"latitude {lat[0]:.8g}, longitude {lon[0]:.8g}", hint=hint
        )


def _exchanged(lat: Array, lon: Array, near: tuple[float, float] | None) -> bool:
    if 90.0 < np.abs(lat).max() <= 180.0 and np.abs(lon).max() <= 90.0:
        return True
    if near is None or max(np.abs(lat).max(), np.abs(lon).max()) > 180.0:
        return False
    return _away(lat[0], lon[0], near) > NEAR_M > _away(lon[0], lat[0], near)


def _away(lat: float, lon: float, near: tuple[float, float]) -> float:
    """The distance of a place from another (m), roughly."""
    east = (lon - near[1] + 180.0) % 360.0 - 180.0
    return DEGREE_M * hypot(lat - near[0], east * cos(radians(near[0])))


def _minutes(lat: Array, lon: Array) -> bool:
    """Whether one is out of range as degrees and both are what degrees-minutes can be."""
    out = np.abs(lat).max() > 90.0 or np.abs(lon).max() > 360.0
    return bool(
        out
        and all((np.abs(x) % 100.0 < 60.0).all() for x in (lat, lon))
        and degrees_of_minutes(np.abs(lat)).max() <= 90.0
        and degrees_of_minutes(np.abs(lon)).max() <= 180.0
    )
