"""What the equations of a car leave out, as noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class CarNoise:
    """What the equations leave out, as standard deviations.

    `slip_error` (rad): stationary deviation of each axle's slip error; `bank` (rad): of the bank; `lateral` (m/s²/√Hz) and `yaw`
    (rad/s²/√Hz): white accelerations; `walk`: estimated parameter → drift of it in a √s.
    """

    slip_error: float = 0.006
    bank: float = 0.02
    lateral: float = 0.02
    yaw: float = 0.05
    walk: Mapping[str, float] = field(default_factory=dict)
