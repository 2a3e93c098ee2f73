"""A car on a motorway (rav4_comma): places on the Earth against a pose in earth-centred axes, and how late the receiver is against it."""

import numpy as np
import pytest

from real_logs import folder
from veridyn.files.geodesy import GeoOrigin, enu_of
from veridyn.model.experiment import Channel
from veridyn.signals.clock_offset import estimate_clock_offset, offset_findings

A, E2 = 6378137.0, 6.69437999014e-3  # WGS 84


def read(name):
    return np.genfromtxt(folder("rav4_comma") / f"{name}.csv", delimiter=",", names=True)


def test_fixes_lie_on_the_pose():
    """East, north and up of fixes by the library, and of the pose by rows written out here: metres apart, over a kilometre."""
    pytest.importorskip("pymap3d", reason="pymap3d (the extra 'geodesy') turns places into positions")
    fix, pose = read("gnss_ublox"), read("global_pose")
    lat, lon, h = np.radians(fix["lat_deg"]), np.radians(fix["lon_deg"]), fix["alt_m"]
    origin = GeoOrigin(lat[0], lon[0], h[0])
    (sp, cp), (sl, cl) = (np.sin(lat[0]), np.cos(lat[0])), (np.sin(lon[0]), np.cos(lon[0]))
    n = A / np.sqrt(1.0 - E2 * sp**2)
    centre = np.array([(n + h[0]) * cp * cl, (n + h[0]) * cp * sl, (n * (1.0 - E2) + h[0]) * sp])
    rows = np.array([[-sl, cl, 0.0], [-sp * cl, -sp * sl, cp], [cp * cl, cp * sl, sp]])
    track = (np.column_stack([pose[f"ecef_{a}"] for a in "xyz"]) - centre) @ rows.T
    found = enu_of(lat, lon, h, origin)
    at = np.column_stack([np.interp(fix["t"] - 0.13, pose["t"], track[:, k]) for k in range(3)])
    assert np.ptp(found[:, 1]) > 1000.0
    assert (
        np.abs((found - at).mean(axis=0)).max() < 2.0 and (found - at).std(axis=0).max() < 0.6
    )  # m; a receiver's error


def test_the_receiver_is_late():
    """Its speed against the rate of the pose's speed, and against the pose's speed moved by every lag there may be."""
    fix, pose = read("gnss_ublox"), read("global_pose")
    new = np.append(True, np.diff(fix["t"]) > 0.0)
    speed = np.sqrt(sum(pose[f"vel_{a}"] ** 2 for a in "xyz"))
    seen = Channel("gnss", fix["t"][new], fix["speed"][new], "m/s")
    found = estimate_clock_offset(Channel("pose", pose["t"], np.gradient(speed, pose["t"]), "m/s^2"), seen)
    inside = (seen.t > seen.t[0] + 1.0) & (seen.t < seen.t[-1] - 1.0)
    lags = np.linspace(-0.5, 0.5, 501)
    left = [np.var(seen.values[inside] - np.interp(seen.t[inside] - d, pose["t"], speed)) for d in lags]
    assert found.correlation > 0.98
    assert found.seconds == pytest.approx(lags[int(np.argmin(left))], abs=0.03)  # 0.15 against 0.13 s
    assert "its clock is 0.15" in offset_findings([found])[0].message
