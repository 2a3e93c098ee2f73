"""A car of a few numbers observed beside a running program: ``Observer(car, "ekf", ObserveSettings(process_noise=CarNoise(…)))``.

Speed, steering and longitudinal acceleration act, and what acts from one sample to the next is the mean of both, as in ``observe``: it is
known when the next sample comes, which is when the filter goes there. So samples that come one by one give what the whole log gives.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError
from veridyn.model.machine import Machine
from veridyn.observe.car.log import SLOWEST_M_S
from veridyn.observe.car.observation import car_setting, car_under_filter, quantity_name
from veridyn.observe.car.system import CarQuantities, Inflation
from veridyn.observe.filters.filter import Filter
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.streaming.observer import Observer, ObserverStep, refuse_smoother, streaming_settings
from veridyn.observe.streaming.stream import as_vector
from veridyn.observe.virtual import Virtual

Array = NDArray[np.float64]


class CarObserver(Observer):
    """An observer of a car; see :class:`~veridyn.observe.streaming.observer.Observer`.

    Inputs of a step: speed (m/s), steer (rad) and ax (m/s²).
    """

    @checked
    def __init__(
        self,
        machine: Machine,
        method: Filter | str = "ekf",
        settings: ObserveSettings | None = None,
    ) -> None:
        chosen = streaming_settings(settings)
        how, car, noise = car_setting(machine, method, chosen, "Observer")
        refuse_smoother(how)
        self._set = car, noise, tuple(chosen.parameters), chosen.consider
        self._frozen_after, self._inflation, self._last, self._factor = chosen.frozen_after, Inflation(), None, 1.0
        self._start(how, 0.0, chosen.frozen_after)

    def _start(self, how: Filter, yaw_rate: float, frozen_after: int | None) -> None:
        """The car goes nearly straight with this yaw rate."""
        car, noise, estimate, consider = self._set
        observed = car_under_filter(car, noise, [s.name for s in car.sensors], yaw_rate, estimate, consider)
        self._begin(observed, how, observed.equations, observed.start, frozen_after)

    def step(
        self,
        t: float,
        measurements: ArrayLike | Mapping[str, float],
        inputs: ArrayLike | None = None,
        sigma: Mapping[str, float] | None = None,
    ) -> ObserverStep:
        """Take in readings stamped `t` (s), and speed, steer and ax at that time; without them, those before go on.

        Readings of a car that is slower than four metres a second are not used: slip angles mean nothing there.
        """
        before, since = self._last, self._since
        acting = self._acting(inputs)
        if before is None:
            self._start(self._stream.settings, self._first_yaw_rate(measurements), self._frozen_after)
        else:
            self._stream.act(np.concatenate([before, 0.5 * (before + acting)]))
        slow = acting[0] < SLOWEST_M_S
        done = super().step(t, {} if slow else measurements, np.concatenate([acting, acting]), sigma)
        self._last = acting
        dt = 0.0 if before is None else t - since
        self._factor = self._inflation(done.nis if done.dof else 0.0, done.dof, dt)
        return done

    def virtual(self, wanted: Virtual | str) -> tuple[Array, Array]:
        """The value (1,) of a quantity now by its name, and its deviation, which allows for innovations larger than stated."""
        belief = self._stream.belief
        if self._last is None:
            raise DataError("speed and steering are not known yet.", where="virtual", expected="a step before it")
        y, s = CarQuantities(self.system.equations, [quantity_name(wanted)]).at(belief.x, belief.P, self._inputs)
        return y, self._factor * s

    def _acting(self, inputs: ArrayLike | None) -> Array:
        """Speed, steer and ax (3,); zero ax where it is left out."""
        if inputs is None and self._last is not None:
            return self._last
        given = np.zeros(0) if inputs is None else as_vector(inputs)
        acting = np.append(given, 0.0) if len(given) == 2 else given
        if acting.shape != (3,) or not np.isfinite(acting).all():
            expected = "speed (m/s), steer (rad) and ax (m/s^2)"
            raise DataError(
                "these are not what acts on a car.", where="step, inputs", expected=expected, found=f"{given}"
            )
        return acting

    def _first_yaw_rate(self, measurements: ArrayLike | Mapping[str, float]) -> float:
        """The first reading of a gyroscope, zero where there is none."""
        named = isinstance(measurements, Mapping)
        read = measurements if named else dict(zip(self.system.outputs, np.atleast_1d(measurements), strict=False))
        gyros = [s.name for s in self._set[0].sensors if s.on == "yaw_rate"]
        found = next((float(read[n]) for n in gyros if n in read), 0.0)
        return found if np.isfinite(found) else 0.0


def unmade_observer() -> CarObserver:
    """The object that ``Observer(car, …)`` becomes, before it is given its settings."""
    return object.__new__(CarObserver)
