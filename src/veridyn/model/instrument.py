"""What a sensor on a mechanism is: what it reads, how well, and on which clock. Data only; ``mechanics/measurement.py`` reads them.

=============== ========================================================================== ========
kind            reads                                                                      outputs
=============== ========================================================================== ========
coordinate      an added angle or distance, as an encoder does (any coordinate, by name)   1
rate            its rate                                                                   1
position        the place of a point in the ground's axes                                  axes
velocity        its velocity                                                               axes
gyroscope       the angular velocity of a body, about the sensor's axes (plane: one)       axes
accelerometer   r̈ − g of a point, along the sensor's axes                                  axes
=============== ========================================================================== ========
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from veridyn.errors import Fault, Faults

if TYPE_CHECKING:
    from veridyn.model.natural import Marker

InstrumentKind = Literal["coordinate", "rate", "position", "velocity", "gyroscope", "accelerometer"]
KINDS: tuple[str, ...] = get_args(InstrumentKind)
ON_COORDINATE = ("coordinate", "rate")


@dataclass(frozen=True)
class Instrument:
    """A sensor by the name of its channel: `on` a coordinate, a point, a body, or a marker.

    A marker's `axis` and `side` are the sensor's x and y; without them they are those of the body. `axes` chooses some of x, y, z. A
    sensor of several outputs has the channels "name.x" and so on. `sigma`: standard deviation of its white noise; `quantum`: the step
    between two readings; `delay` (s): a reading stamped t is the truth at t − delay. `bias` is known and taken off. An unknown one has
    the standard deviation `bias_sigma` at the start and drifts by √(`bias_walk` · t); it is then estimated with the state. `turns`: it
    reads an angle modulo a full turn.
    """

    name: str
    kind: InstrumentKind
    on: str | Marker
    sigma: float
    axes: str = ""
    quantum: float = 0.0
    delay: float = 0.0
    bias: float = 0.0
    bias_sigma: float = 0.0
    bias_walk: float = 0.0
    turns: bool = False

    @property
    def variance(self) -> float:
        """Of one reading: noise, and Δ²/12 of the rounding."""
        return self.sigma**2 + self.quantum**2 / 12.0

    @property
    def drifts(self) -> bool:
        """Whether its bias is estimated."""
        return self.bias_sigma > 0.0 or self.bias_walk > 0.0

    def components(self, dimension: int) -> tuple[str, ...]:
        """The axes it reads, in order; nothing for a single number."""
        if self.kind in ON_COORDINATE or (self.kind == "gyroscope" and dimension == 2):
            return ()
        return tuple(self.axes or "xyz"[:dimension])

    def channels(self, dimension: int) -> tuple[str, ...]:
        """The names of its outputs."""
        return tuple(f"{self.name}.{a}" for a in self.components(dimension)) or (self.name,)

    def unit(self, angular: bool) -> str:
        """The unit of its readings, given whether its coordinate is an angle."""
        of = {"position": "m", "velocity": "m/s", "gyroscope": "rad/s", "accelerometer": "m/s^2"}
        size = "rad" if angular else "m"
        return of.get(self.kind, size if self.kind == "coordinate" else f"{size}/s")


def instrument_faults(i: Instrument, dimension: int) -> list[Fault]:
    """What is wrong with a sensor's own numbers."""
    faults, where = Faults(), f"sensor '{i.name}'"
    if i.kind not in KINDS:
        faults.add(f"there is no kind '{i.kind}'.", where=where, expected=", ".join(KINDS))
    for part in ("sigma", "quantum", "delay", "bias_sigma", "bias_walk"):
        value = getattr(i, part)
        if not (math.isfinite(value) and value >= 0.0):
            faults.add(f"its {part} is not usable.", where=where, expected="zero or more", found=f"{value:g}")
    if not faults and i.variance == 0.0:
        faults.add(
            "it has neither noise nor a quantum.",
            where=where,
            expected="a positive sigma or quantum",
            hint="No sensor is perfect, and a filter that believes one is cannot weigh it.",
        )
    if not math.isfinite(i.bias):
        faults.add("its bias is not usable.", where=where, expected="a finite number", found=f"{i.bias:g}")
    if set(i.axes) - set("xyz"[:dimension]) or len(set(i.axes)) != len(i.axes):
        faults.add("its axes cannot be read.", where=where, expected=f"some of {'xyz'[:dimension]}", found=i.axes)
    return faults.found
