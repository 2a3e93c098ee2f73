"""Course over ground from two components of a velocity: where the machine goes, which is not where it points.

    χ = atan2(v_y, v_x),    σ_χ = σ_v/v,    available where v = √(v_x² + v_y²) ≥ v_min        (003 prints atan2 in place of the speed)

Yaw is course minus sideslip: taken as yaw, course biases it by the sideslip. At rest a course is the direction of noise.
"""

from __future__ import annotations

import numpy as np

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault, Faults
from veridyn.model.experiment import Channel


@checked
def course_over_ground(
    x: Channel, y: Channel, name: str = "course", *, above: float, sigma: float | None = None
) -> tuple[Channel, ...]:
    """Channels `name` (rad, −π to π, from x towards y) and `name.available` (1 from the speed `above` on, 0 below).

    Parameters
    ----------
    x, y : components of the velocity in a plane (m/s), on one clock: east and north for a course from east.
    above : m/s; several times the noise of the velocity.
    sigma : noise of each component (m/s); with it there is also `name.sigma`, σ/v, at most π/√3, that of no direction at all.

    Returns
    -------
    channels : ``log.replacing(*channels)`` puts them into a log, where an observer takes availability and noise from them.

    Examples
    --------
    >>> import numpy as np
    >>> from veridyn.model import Channel
    >>> from veridyn.signals import course_over_ground
    >>> t = np.arange(3) * 0.02
    >>> east, north = Channel("v.x", t, np.array([0.01, 2.0, 0.0]), "m/s"), Channel("v.y", t, np.array([0.02, 2.0, -3.0]), "m/s")
    >>> course, available = course_over_ground(east, north, above=0.5)
    >>> np.round(course.values, 4).tolist(), available.values.tolist()
    ([1.1071, 0.7854, -1.5708], [0.0, 1.0, 1.0])
    """
    faults = Faults()
    for c in (x, y):
        if c.unit != "m/s":
            faults.add("it is no velocity.", where=f"channel '{c.name}'", expected="m/s", found=c.unit)
    if not np.array_equal(x.t, y.t):
        faults.add("it has another clock.", where=f"channel '{y.name}'", expected=f"the clock of '{x.name}'")
    if not above > 0.0:
        faults.add("there is no course at rest.", where="above", expected="a positive speed (m/s)", found=f"{above:g}")
    faults.raise_if_any(DataError)
    speed = np.hypot(x.values, y.values)
    available = np.where(speed >= above, 1.0, 0.0)  # not where it is not a number
    out = (
        Channel(name, x.t, np.arctan2(y.values, x.values), "rad"),
        Channel(f"{name}.available", x.t, available, "1"),
    )
    if sigma is None:
        return out
    if not sigma > 0.0:
        raise DataError(Fault("it is no deviation.", "sigma", "a positive number (m/s)", f"{sigma:g}"))
    worst = np.pi / np.sqrt(3.0)
    with np.errstate(divide="ignore"):
        own = np.minimum(sigma / speed, worst)
    return (*out, Channel(f"{name}.sigma", x.t, np.where(np.isfinite(own), own, worst), "rad"))
