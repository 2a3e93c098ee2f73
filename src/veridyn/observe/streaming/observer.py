"""An observer beside a running program: readings as they come, the state at once.

observer = Observer(machine, EKF(gate=0.999), ObserveSettings(process_noise=…));   observer.step(t, {"encoder": 0.31}).values
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from math import isfinite, sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, ModelError, did_you_mean
from veridyn.mechanics.formulated import GivenMachine
from veridyn.model.machine import Machine
from veridyn.observe.consistency.health import Silence
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import filter_of, refuse_smoother
from veridyn.observe.filters.update import Passage
from veridyn.observe.hung import repeat_check
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import MISSING, NOT_FINITE, STATUSES, USED, Codes, Status
from veridyn.observe.model_error import with_given_density
from veridyn.observe.observation import Virtual, placed_quantities, quantity_of
from veridyn.observe.observer_setup import ObserverSetup, frozen_in
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.result import Belief
from veridyn.observe.settings import ObserveSettings, ParameterBounds
from veridyn.observe.streaming.stream import GuardedStream, StreamStep, as_vector, guarded_stream, statuses
from veridyn.observe.system import System

if TYPE_CHECKING:
    from veridyn.observe.car.observation import DriverInputs, ObservedCar

NONE_BOUNDED: Mapping[str, float] = MappingProxyType({})


class ObservedSystem(Protocol):
    """What an observer reports of the system that it runs on."""

    @property
    def states(self) -> tuple[str, ...]: ...
    @property
    def outputs(self) -> tuple[str, ...]: ...
    def reduced(self, x: Array, /) -> Array: ...
    def reported(self, x: Array, P: Array, /) -> Array: ...


class ObserverStep:
    """What an observer knows after a step at the time `t`: the `belief`, and what it has to say about its sensors.

    `values` and `sigma`: the states and their deviations by name; `status`: what became of the reading of each output, by name; all three
    are made when they are first read. `messages` is empty while all is well; a sensor that fails is named then and when it is back, and so
    is an estimated parameter that reaches one of its bounds. `bounded`: the parameters that stand at a bound now, with the bound: their
    estimate is the bound's, and not the data's. `innovations`: reading minus what was expected, with its standard deviation, of every
    output that was read; `nis` and `dof`: the normalised innovations squared, summed over the `dof` readings that were used.
    """

    def __init__(
        self,
        system: ObservedSystem,
        t: float,
        belief: Belief,
        codes: Codes,
        messages: tuple[str, ...],
        bounded: Mapping[str, float],
        passages: tuple[Passage, ...] = (),
    ) -> None:
        self._system, self._codes, self._passages = system, codes, passages
        self.t, self.belief, self.messages, self.bounded = t, belief, messages, bounded

    @cached_property
    def values(self) -> Mapping[str, float]:
        return dict(zip(self._system.states, self._system.reduced(self.belief.x).tolist()))

    @cached_property
    def sigma(self) -> Mapping[str, float]:
        P = self._system.reported(self.belief.x, self.belief.P)
        return dict(zip(self._system.states, np.sqrt(np.diag(P)).tolist()))

    @cached_property
    def status(self) -> Mapping[str, Status]:
        return statuses(self._system.outputs, self._codes)

    @cached_property
    def innovations(self) -> Mapping[str, tuple[float, float]]:
        found: dict[str, tuple[float, float]] = {}
        for passage in self._passages:
            c = passage.correction
            rows = zip(self._system.outputs, c.innovations.tolist(), c.variances.tolist())
            found |= {name: (nu, sqrt(s)) for name, nu, s in rows if isfinite(nu) and s >= 0.0}
        return found

    @property
    def nis(self) -> float:
        return float(sum(passage.correction.nis for passage in self._passages))

    @property
    def dof(self) -> int:
        return sum(passage.used for passage in self._passages)


def streaming_settings(given: ObserveSettings | None) -> ObserveSettings:
    """The settings of an observer that has no log: what only a log could give is refused, all of it at once."""
    settings, faults = given or ObserveSettings(), Faults()
    if settings.process_noise is None:
        faults.add(
            "it is missing, and there is no log to choose it from.",
            where="Observer, settings.process_noise",
            expected="ObserveSettings(process_noise=ProcessNoise(…)), of a car of a few numbers CarNoise(…)",
        )
    if isinstance(settings.start, str):
        faults.add(
            "the first readings are not there yet.", where="Observer, settings.start", expected="coordinates by name"
        )
    if settings.input_hold != "zero":
        faults.add(
            "the next sample of an input is not there yet.",
            where="Observer, settings.input_hold",
            expected="'zero': inputs act from the time they are given on",
            found=f"{settings.input_hold!r}",
        )
    faults.raise_if_any(ModelError)
    return settings


class Observer:
    """An observer beside a running program: :meth:`step` takes readings as they come and returns the state at once.

    Settings are those of :func:`observe`; a process noise must be among them, because there is no log to choose it from, and a start in
    numbers. There is no log to learn the model's error on either: learn it along one, and hand it over as
    ``model_error=states.model_error.process_noise()``. Inputs act from the time they are given on. The object changes with every step and
    is not for two threads at once. Sensors with a delay make it go back in time by itself. Of a car of a few numbers the process noise is
    a CarNoise, and inputs are speed (m/s), steer (rad) and ax (m/s²) (:class:`~veridyn.observe.car.observation.DriverInputs`).

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> encoder = vd.Sensor("encoder", "coordinate", "hinge", 1e-3)
    >>> pendulum = vd.Machine.build([rod], [hinge], sensors=[encoder], dimension=2)
    >>> settings = vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-4), start={"hinge": 0.0})
    >>> observer = vd.Observer(pendulum, "ekf", settings)
    >>> for k in range(20):  # readings as they come: it begins to fall by 9.81/0.6 rad/s²
    ...     state = observer.step(0.01 * k, {"encoder": -0.5 * 16.35 * (0.01 * k) ** 2})
    >>> bool(abs(state.values["hinge"] + 0.5 * 16.35 * 0.19**2) < 3e-3)
    True
    """

    system: MachineSystem | ObservedCar

    @checked
    def __init__(
        self,
        machine: GivenMachine,
        method: Filter | str = "ekf",
        settings: ObserveSettings | None = None,
    ) -> None:
        self._driver: DriverInputs | None = None
        chosen = streaming_settings(settings)
        setup = ObserverSetup(filter_of(method, "Observer"), chosen)
        refuse_smoother(setup.method)
        if isinstance(machine, Machine) and machine.car is not None:
            # here: it brings compiled equations along
            from veridyn.observe.car.observation import DriverInputs, observed_car, sensing_car

            system = car = observed_car(sensing_car(setup, machine, "Observer"), chosen)
            self._driver, q, start = DriverInputs(car), np.zeros(0), car.start
        else:
            system, q, qd = setup.system(machine)
            if isinstance(chosen.model_error, ProcessNoise):
                system = with_given_density(system, chosen.model_error)
            start = system.belief(q, qd)

        def seen(frozen: tuple[str, ...]) -> System:
            return setup.seen(cast(Any, frozen_in(system, frozen)), q)  # that of a car is itself

        self.system = system
        how = setup.method
        delays = np.array([self.system.table.sensors[k].delay for k in self.system.table.owner])
        if delays.any() and how.late == "use":
            how = replace(how, late="rewind", horizon=2.0 * float(delays.max()))
        # The longest wait first, and to the present itself though all are delayed.
        waits = sorted({0.0, *delays.tolist()}, reverse=True)
        self._waits = [(delay, delays == delay) for delay in waits] if delays.any() else []
        self._stream = guarded_stream(how, seen, self.system.drifts, start)
        self._repeats = repeat_check(self.system.table, chosen.frozen_after)
        self._silence = Silence(len(self.system.outputs))
        self._places = {name: j for j, name in enumerate(self.system.outputs)}
        self._bad: dict[int, int] = {}
        self._bounded: Mapping[str, float] = NONE_BOUNDED
        self._inputs = np.zeros(0)  # as the mechanism has them, until some are given
        self._since = np.nan  # when they were given

    @property
    def belief(self) -> Belief:
        return self._stream.belief

    @property
    def bodies(self) -> MachineSystem:
        """The system of a machine of bodies and joints."""
        if not isinstance(self.system, MachineSystem):
            raise ModelError(
                "a car of a few numbers has no bodies and joints.", where="observer", found=self.system.name
            )
        return self.system

    def step(
        self,
        t: float,
        measurements: ArrayLike | Mapping[str, float],
        inputs: ArrayLike | None = None,
        sigma: Mapping[str, float] | None = None,
    ) -> ObserverStep:
        """Take in readings stamped `t` (s): by name, or an array with NaN where there is none; and the loads that act from now on.

        `sigma`: output → standard deviation of this reading, where it is not the sensor's own.

        Of a car the inputs are those at the time `t`; without them, those before go on. Readings of one that is slower than four metres a
        second are not used: slip angles mean nothing there.
        """
        if self._driver is not None:
            return self._step_of_car(self._driver, t, measurements, inputs, sigma)
        return self._step(t, measurements, inputs, sigma)

    def _step_of_car(
        self,
        driver: DriverInputs,
        t: float,
        measurements: ArrayLike | Mapping[str, float],
        inputs: ArrayLike | None,
        sigma: Mapping[str, float] | None,
    ) -> ObserverStep:
        """What acts from the sample before to this one is known now: the mean of both."""
        before, since = driver.last, self._since
        acting = driver.acting(inputs)
        if before is None:
            self._stream = self._stream.begun(driver.start(measurements))
        else:
            self._stream.act(np.concatenate([before, 0.5 * (before + acting)]))
        done = self._step(t, {} if driver.too_slow(acting) else measurements, np.concatenate([acting, acting]), sigma)
        driver.taken(acting, done.nis, done.dof, 0.0 if before is None else t - since)
        return done

    def _step(
        self,
        t: float,
        measurements: ArrayLike | Mapping[str, float],
        inputs: ArrayLike | None,
        sigma: Mapping[str, float] | None,
    ) -> ObserverStep:
        if not isinstance(measurements, np.ndarray) and isinstance(measurements, Mapping):
            values, codes = self._by_name(measurements)
        else:
            values, codes = self._by_place(measurements)
        if inputs is None and t > self._since and isinstance(self.system, MachineSystem):
            inputs = self.system.later(self._inputs, t - self._since)  # prescribed coordinates go on
        if inputs is not None:
            inputs = as_vector(inputs)
            if self._driver is None:
                self._check_inputs(inputs)
            self._inputs, self._since = inputs, t
        before = self.frozen
        own = None if sigma is None else self._own(sigma)
        silent = self._silence.since(t, codes)
        codes = self._repeats.flags(values, codes, t)
        passages: tuple[Passage, ...] = ()
        if self._waits:
            steps: list[StreamStep] = []
            codes = self._delayed(t, values, codes, inputs, own, steps)
            passages = tuple(step.passage for step in steps if step.passage is not None)
        elif not isfinite(t):
            codes = self._stream.step(t, values, inputs, codes).codes  # refuses it
        else:
            step = self._stream.take(t, values, codes, inputs, own)
            codes = step.codes
            if step.passage is not None:
                passages = (step.passage,)
        messages = self._messages(t, codes, silent)
        if self.system.bounds is not None:
            messages = (*messages, *self._bound_messages(t, self.system.bounds))
        if len(before) != len(now := self.frozen):
            released = (name for name in before if name not in now)
            messages = (
                *messages,
                *(
                    f"{t:.6g} s: the readings determine parameter '{name}', which drifts; it is followed."
                    for name in released
                ),
            )
        return ObserverStep(self.system, t, self._stream.belief, codes, messages, self._bounded, passages)

    @property
    def frozen(self) -> tuple[str, ...]:
        """Drifting parameters that the readings have not determined yet: they keep their values, and their uncertainty enters the bands."""
        return self._stream.frozen if isinstance(self._stream, GuardedStream) else ()

    def _check_inputs(self, inputs: Array) -> None:
        """Refuse another number of inputs than the machine has; none are as it has them."""
        names = self.bodies.inputs
        if len(inputs) not in (0, len(names)):
            raise DataError(
                "the number of inputs is not that of the observer.",
                where="step, inputs",
                expected=f"{len(names)}: {', '.join(names)}" if names else "none",
                found=f"{len(inputs)}",
                hint="Their names and order are ObserveSettings(inputs=…).",
            )

    def _bound_messages(self, t: float, bounds: ParameterBounds) -> list[str]:
        """What has changed about the parameters that stand at a bound."""
        before = self._bounded
        now = {name: bound for name, (bound, _) in bounds.held(self._stream.belief.x).items()}
        self._bounded = now
        found = [
            f"{t:.6g} s: parameter '{name}' stands at its bound {bound:g}; its estimate is not the data's."
            for name, bound in now.items()
            if before.get(name) != bound
        ]
        return found + [f"{t:.6g} s: parameter '{name}' has left its bound." for name in before if name not in now]

    def _by_place(self, measurements: ArrayLike) -> tuple[Array, Codes]:
        """Readings and codes (m,), MISSING where an array has NaN."""
        try:
            values = np.array(measurements, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(
                "these are no readings.",
                where="step",
                expected="numbers, or a number by name",
                found=repr(measurements)[:60],
            ) from None
        if values.shape != (len(self._places),):
            raise DataError("wrong shape.", where="step", expected=f"({len(self._places)},)", found=f"{values.shape}")
        return values, np.isnan(values).view(np.int8)  # MISSING is 1, USED is 0

    def _by_name(self, measurements: Mapping[str, float]) -> tuple[Array, Codes]:
        """Readings and codes (m,), MISSING for the outputs that are not named."""
        values, codes = np.full(len(self._places), np.nan), np.full(len(self._places), MISSING, dtype=np.int8)
        for name, value in measurements.items():
            j = self._places.get(name)
            if j is None:
                names = self.system.outputs
                raise DataError(f"there is no output '{name}'.", where="step", hint=did_you_mean(name, names))
            try:
                values[j], codes[j] = value, USED if isfinite(value) else NOT_FINITE
            except (TypeError, ValueError):
                raise DataError(
                    "it is no reading.", where=f"step, '{name}'", expected="a number", found=repr(value)[:60]
                ) from None
        return values, codes

    def _own(self, sigma: Mapping[str, float]) -> Array:
        """Deviations (m,) of the readings of one step, NaN for the sensor's own."""
        found, faults = np.full(len(self._places), np.nan), Faults()
        for name, value in sigma.items():
            where = f"step, sigma of '{name}'"
            if name not in self._places:
                faults.add(f"there is no output '{name}'.", where=where, hint=did_you_mean(name, self.system.outputs))
            elif not (isfinite(value) and value > 0.0):
                faults.add("it is no deviation.", where=where, expected="a positive number", found=f"{value:g}")
            else:
                found[self._places[name]] = value
        faults.raise_if_any(DataError)
        return found

    def _delayed(
        self,
        t: float,
        values: Array,
        codes: Codes,
        inputs: ArrayLike | None,
        sigma: Array | None,
        steps: list[StreamStep],
    ) -> Codes:
        """Each reading at the time it speaks of; the status of all. The steps that were made are appended to `steps`."""
        status = np.full(len(codes), MISSING, dtype=np.int8)
        for delay, concerned in self._waits:
            here = np.where(concerned, codes, np.int8(MISSING))
            if delay > 0.0 and (here == MISSING).all():
                continue
            step = self._stream.step(t - delay, values, inputs if delay == 0.0 else None, here, sigma)
            steps.append(step)
            status[concerned] = step.codes[concerned]
        return status

    def virtual(self, wanted: Virtual | str) -> tuple[Array, Array]:
        """The value (k,) of a virtual sensor now, and its standard deviation; of a car its name is enough."""
        belief = self._stream.belief
        if self._driver is not None:
            return self._driver.quantity(wanted, belief, self._inputs)
        system = self.bodies
        quantity = quantity_of(system, placed_quantities([wanted])[0])
        y, G = quantity.at(belief.x, system.instant(belief.x, self._inputs), self._inputs)
        return y, np.sqrt(np.maximum(((G @ belief.P) * G).sum(axis=1), 0.0))

    def _messages(self, t: float, codes: Codes, silent: bool) -> tuple[str, ...]:
        found, listed = [], codes.tolist()
        if not self._bad and not silent and max(listed) <= MISSING:
            return ()
        for j, (now, gone) in enumerate(zip(listed, self._silence.silent.tolist())):
            before = self._bad.get(j, USED)
            if now == before or (now == MISSING and not gone):
                continue
            name = self.system.outputs[j]
            if now == USED:
                del self._bad[j]
                found.append(f"{t:.6g} s: '{name}' is used again.")
            else:
                self._bad[j] = now
                why = "silent" if now == MISSING else STATUSES[now].name.lower().replace("_", " ")
                found.append(f"{t:.6g} s: '{name}' is not used ({why}); its band grows.")
        return tuple(found)
