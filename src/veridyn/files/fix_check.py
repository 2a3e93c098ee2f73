"""Latitudes and longitudes that are not what they should be: degrees-minutes of NMEA, and the two exchanged.

    ddmm.mmmm: 3643.2 is 36° 43.2′ = 36.72°          latitudes lie within ±90°, longitudes within ±180° (or 0° to 360°)

Only what the numbers show is found: degrees-minutes of a place within 1° of the equator and of Greenwich look like degrees.
"""

from __future__ import annotations

from math import cos, hypot, radians

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.errors import DataError, Fault

Array = NDArray[np.float64]
DEGREE_M = 111e3  # m, about, of a degree of latitude
NEAR_M = 100e3  # m: a log lies within it of its origin


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
        raise DataError(
            Fault(
                "latitude and longitude are exchanged.",
                where,
                "latitudes of −90 to 90 deg"
                + ("" if near is None else f" near the origin {near[0]:g}, {near[1]:g} deg"),
                f"latitude {lat[0]:.6g}, longitude {lon[0]:.6g}",
                "Exchange the two columns.",
            )
        )
    if _minutes(lat, lon):
        as_degrees = degrees_of_minutes([lat[0], lon[0]]).tolist()
        raise DataError(
            Fault(
                "these are degrees and minutes, ddmm.mmmm, as NMEA sentences have them.",
                where,
                "degrees",
                f"latitude {lat[0]:.8g}, longitude {lon[0]:.8g}",
                f"They stand for {as_degrees[0]:.6f} and {as_degrees[1]:.6f} deg: veridyn.files.degrees_of_minutes turns them.",
            )
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
