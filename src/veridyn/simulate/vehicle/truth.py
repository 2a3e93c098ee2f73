"""The true values of the 33 parameters that paper 000 identifies, for a car that is more than its identification model.

Masses and inertias are settings. A nonlinear spring, damper or bar has no stiffness of its own: what is true of it is the straight line
that fits its force best, in least squares, over the clearances and speeds of the run at hand. A damper that pulls harder than it pushes
has a mean force on a rough road, which no sensor can separate from the offset and which is counted there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veridyn.simulate.vehicle.run import VehicleRun
from veridyn.spatial.inertia import INERTIAL

Array = NDArray[np.float64]


def truth(run: VehicleRun) -> dict[str, float]:
    """Name, as in Table II and ``car_20.yaml``, → true value: XX_c … M_c, M1 … M4, k_arr, k_arf, k fs h off of each wheel, Cx.

    For a vehicle that is simplified these are its settings.
    """
    car = run.vehicle
    values = {f"{name}_c": float(x) for name, x in zip(INERTIAL, car.chassis, strict=True)}
    values |= {f"M{i + 1}": car.carriers[i // 2].mass for i in range(4)}
    z, zd, _ = run.clearance
    for name, axle in (("k_arr", 1), ("k_arf", 0)):
        d = z[:, 2 * axle] - z[:, 2 * axle + 1]
        force = car.suspension.bar[axle] * d + car.suspension.bar_cube[axle] * d**3
        travelled = float(d @ d)
        values[name] = float(force @ d) / travelled if travelled > 0.0 else car.suspension.bar[axle]
    for i in range(4):
        k, off = _line(z[:, i], np.ones(len(run)), car.suspension.spring(i, z[:, i]))
        damper = car.suspension.damper(i, zd[:, i])
        h, fs = _line(zd[:, i], np.sign(zd[:, i]), damper)
        constant = off + float(np.mean(damper - h * zd[:, i] - fs * np.sign(zd[:, i])))
        values |= {f"k_{i + 1}": k, f"fs_{i + 1}": fs, f"h_{i + 1}": h, f"off_{i + 1}": constant}
    speed = (run.base.velocity**2).sum(axis=1) if run.base.velocity is not None else np.zeros(len(run))
    values["Cx"] = float(-run.air_wrench[:, 0] @ speed / (speed @ speed)) if speed.any() else float("nan")
    return values


def _line(a: Array, b: Array, force: Array) -> tuple[float, float]:
    """The two numbers that make a·x + b·y the nearest to the force."""
    columns = np.stack([a, b], axis=1)
    scale = np.abs(columns).max(axis=0)
    scale[scale == 0.0] = 1.0
    found = np.linalg.lstsq(columns / scale, force)[0] / scale
    return float(found[0]), float(found[1])
