"""A car of a few numbers observed beside a running program: ``Observer(car, "ekf", ObserveSettings(process_noise=CarNoise(…)))``.

Speed, steering and longitudinal acceleration act, and what acts from one sample to the next is the mean of both, as in ``observe``: it is
known when the next sample comes, which is when the filter goes there. So samples that come one by one give what the whole log gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.model.machine import Machine
from veridyn.observe.car.log import SLOWEST_M_S
from veridyn.observe.car.observation import ObservedCar, car_setting, car_under_filter, quantity_name
from veridyn.observe.car.system import CarQuantities, Inflation
from veridyn.observe.drifting import followed_drifts
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import refuse_smoother
from veridyn.observe.result import Belief
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.stream import as_vector
from veridyn.observe.virtual import Virtual


def car_beside(machine: Machine, method: Filter | str, settings: ObserveSettings) -> tuple[Filter, ObservedCar]:
    """The filter and the car under it, straight ahead until the first reading is there."""
    how, car, noise = car_setting(machine, method, settings, "Observer")
    refuse_smoother(how)
    outputs = [s.name for s in car.sensors]
    estimate = tuple(settings.parameters)
    drifts = followed_drifts(car.parameters.drifts, settings, estimate, car.name)
    return how, car_under_filter(car, noise, outputs, 0.0, estimate, settings.consider, drifts)


class DriverInputs:
    """What acts on a car, sample by sample: `last` is speed (m/s), steer (rad) and ax (m/s²) of the newest one, None before the first.

    It also keeps by how much innovations are larger than stated, which widens the bands of quantities.
    """

    def __init__(self, car: ObservedCar) -> None:
        self.last: Array | None = None
        self._car, self._inflation, self._factor = car, Inflation(), 1.0

    def acting(self, inputs: ArrayLike | None) -> Array:
        """Speed, steer and ax (3,) of a new sample; zero ax where it is left out, and those before where there are none."""
        if inputs is None and self.last is not None:
            return self.last
        given = np.zeros(0) if inputs is None else as_vector(inputs)
        acting = np.append(given, 0.0) if len(given) == 2 else given
        if acting.shape != (3,) or not np.isfinite(acting).all():
            expected = "speed (m/s), steer (rad) and ax (m/s^2)"
            raise DataError(
                "these are not what acts on a car.", where="step, inputs", expected=expected, found=f"{given}"
            )
        return acting

    @staticmethod
    def too_slow(acting: Array) -> bool:
        """Whether slip angles mean nothing at this speed."""
        return bool(acting[0] < SLOWEST_M_S)

    def start(self, measurements: ArrayLike | Mapping[str, float]) -> Belief:
        """Where the car starts: nearly straight, with the first reading of a gyroscope as its yaw rate, zero where there is none."""
        named = isinstance(measurements, Mapping)
        read = measurements if named else dict(zip(self._car.outputs, np.atleast_1d(measurements), strict=False))
        gyros = [s.name for s in self._car.machine.sensors if s.on == "yaw_rate"]
        found = next((float(read[n]) for n in gyros if n in read), 0.0)
        x = self._car.start.x.copy()
        x[self._car.states.index("yaw_rate")] = found if np.isfinite(found) else 0.0
        return replace(self._car.start, x=x)

    def taken(self, acting: Array, nis: float, dof: int, dt: float) -> None:
        """A step was made with what acts at its time, `dt` seconds after the one before, and its innovations were so large."""
        self.last = acting
        self._factor = self._inflation(nis if dof else 0.0, dof, dt)

    def quantity(self, wanted: Virtual | str, belief: Belief, inputs: Array) -> tuple[Array, Array]:
        """The value (1,) of a quantity by its name, and its deviation, which allows for innovations larger than stated."""
        if self.last is None:
            raise DataError("speed and steering are not known yet.", where="virtual", expected="a step before it")
        y, s = CarQuantities(self._car.equations, [quantity_name(wanted)]).at(belief.x, belief.P, inputs)
        return y, self._factor * s
