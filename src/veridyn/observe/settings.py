"""The settings of an observation, in one object: ``observe(machine, log, EKF(), ObserveSettings(start={"q1": 0.3}))``.

The same object is given to :func:`~veridyn.observe.observe.observe`, which runs along a log, and to
:class:`~veridyn.observe.streaming.observer.Observer`, which runs beside a program. The settings of the filter itself belong to the filter.

Parameters that are estimated with the state may have bounds. A corrected state x beyond a bound is moved to the nearest one within it, in
the metric of its covariance (D. Simon, "Kalman filtering with state constraints", IET Control Theory & Applications 4(8), 2010, 1303-1318):

    x ← x + P e_i (b − x_i)/P_ii

so that states which are correlated with the parameter move along. The covariance stays as it is, which is on the safe side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, VeridynError
from veridyn.mechanics.formulation import FRICTION_SPEED
from veridyn.model.sensor import Choice, Sensor
from veridyn.model.single_track import CarNoise
from veridyn.observe.measurements import InputHold
from veridyn.observe.process_noise import ProcessNoise
from veridyn.settings import Rule, Settings, above, at_least

BOUND_PASSES = 2  # over all bounds: moving to one may lead beyond another
AT_BOUND = 1e-12  # of a bound's size: a value that stands at it


@dataclass(frozen=True)
class Estimated:
    """How a parameter is estimated with the state: its deviation at the start, the density of its random walk (unit²/s), and bounds."""

    sigma: float
    walk: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf


Parameters = Iterable[str] | Mapping[str, Estimated | tuple[float, ...]]


def read_parameters(given: Parameters) -> tuple[tuple[str, ...], dict[str, Estimated]]:
    """Names of parameters, and how those are estimated for which that is given: an :class:`Estimated` or (sigma, walk, lower, upper)."""
    if not isinstance(given, Mapping):
        return tuple(given), {}
    faults, found = Faults(), dict[str, Estimated]()
    for name, how in given.items():
        where = f"parameters, '{name}'"
        try:
            record = how if isinstance(how, Estimated) else Estimated(*(float(x) for x in how))
        except (TypeError, ValueError):
            what = "this does not say how it is estimated."
            faults.add(
                what, where=where, expected="(sigma, walk, lower, upper), the last three optional", found=f"{how}"
            )
            continue
        if not (np.isfinite(record.sigma) and record.sigma >= 0.0 and np.isfinite(record.walk) and record.walk >= 0.0):
            found_numbers = f"{record.sigma:g} and {record.walk:g}"
            faults.add(
                "its deviation or walk is not usable.", where=where, expected="zero or more", found=found_numbers
            )
        if not record.lower < record.upper:
            faults.add(
                "its bounds leave nothing.",
                where=where,
                expected="lower below upper",
                found=f"{record.lower:g}, {record.upper:g}",
            )
        found[str(name)] = record
    faults.raise_if_any(ModelError)
    return tuple(found), found


@dataclass(frozen=True, eq=False, kw_only=True)
class ParameterBounds:
    """Bounds (count,) `lower` and `upper` of some entries: `places` of the state vector, which are the entries `changes` of a change."""

    names: tuple[str, ...]
    places: NDArray[np.int64]
    changes: NDArray[np.int64]
    lower: Array
    upper: Array

    def project(self, x: Array, d: Array, P: Array, considered: NDArray[np.bool_] | None) -> Array:
        """The change d of the state x moved within the bounds; considered states are left alone."""
        d = d.copy()
        for _ in range(BOUND_PASSES):
            for at, i, low, high in zip(self.places, self.changes, self.lower, self.upper, strict=True):
                new = x[at] + d[i]
                beyond = (low - new) if new < low else (high - new) if new > high else 0.0
                if beyond != 0.0 and P[i, i] > 0.0:
                    move = P[:, i] * (beyond / P[i, i])
                    d += move if considered is None else np.where(considered, 0.0, move)
        for at, i, low, high in zip(self.places, self.changes, self.lower, self.upper, strict=True):
            new = x[at] + d[i]
            if new < low or new > high:
                d[i] = (low if new < low else high) - x[at]
        return d

    def inside(self, x: Array) -> Array:
        """States (…, N) with the bounded parameters moved to the nearest value within their bounds."""
        out = x.copy()
        out[..., self.places] = np.clip(x[..., self.places], self.lower, self.upper)
        return out

    def held(self, x: Array) -> dict[str, tuple[float, int]]:
        """Of states (N, …): how often each parameter stood at a bound, as (bound, times), where it did."""
        found: dict[str, tuple[float, int]] = {}
        for name, at, low, high in zip(self.names, self.places, self.lower, self.upper, strict=True):
            for bound in (low, high):
                near = (
                    np.abs(x[..., at] - bound) <= AT_BOUND * max(1.0, abs(bound)) if np.isfinite(bound) else np.zeros(1)
                )
                times = int(np.count_nonzero(near))
                if times:
                    found[name] = (float(bound), times)
        return found


def _chooses_sensors(given: Any) -> bool:
    if isinstance(given, Mapping):
        return all(isinstance(n, str) and isinstance(s, Sensor | None) for n, s in given.items())
    listed = isinstance(given, Sequence) and not isinstance(given, str)
    return given is None or (listed and all(isinstance(s, Sensor | str) for s in given))


def _names_parameters(given: Any) -> bool:
    """What a mapping gives for a name is read, and refused, by :func:`~veridyn.observe.settings.read_parameters`."""
    return all(isinstance(name, str) for name in given) if isinstance(given, Mapping | tuple) else False


SENSORS = "a list of sensors or names of the machine's own, or a mapping of names to a Sensor or None"
PARAMETERS = "a list of names, or a mapping of names to (sigma, walk, lower, upper)"


@dataclass(frozen=True, kw_only=True, repr=False)
class ObserveSettings(Settings):
    """How a machine is observed; checked when it is made.

    Parameters
    ----------
    process_noise : ProcessNoise or CarNoise, optional
        How far the model is trusted. By default the density of the unknown forces (or of white acceleration) is the one under which the
        first thousand samples of the log are most likely; an ``Observer`` has no log and needs it. Of a car of a few numbers a CarNoise.
    model_error : {"learned", "off"} or ProcessNoise
        White acceleration of the independent coordinates that comes on top of the process noise, because no model is exact. "learned",
        the default: as much as the innovations demand, and at least a hundredth of the acceleration that each coordinate makes, see
        :mod:`veridyn.observe.model_error`. "off": none. ``ProcessNoise(acceleration=…)``: this density. An ``Observer`` has no log
        to learn on, and takes a density alone; a car of a few numbers has that of its CarNoise.
    start, rates : mapping of coordinates to numbers, optional
        Where the model starts (rad or m), and how fast (rad/s or m/s); what is not given is at home, and at rest. "readings" in place of
        a start: coordinates with a sensor of their own start at its first reading in the log.
    independents : names of coordinates, optional
        Coordinates that the states are made of; chosen from the machine by default.
    unknown : names, optional
        The forces that are estimated, by independent coordinate (of a free base base.x … base.yaw) or load; by default one on each
        independent coordinate.
    inputs : names, optional
        What acts and is a channel of the log: force.C of the motor on a coordinate C, loads by name, motions of prescribed coordinates, and
        on trees signals and wrenches; by default all that the log has, in every formulation, and none of an ``Observer``. What natural
        coordinates cannot take is refused by name.
    frozen_after : "auto" or int, optional
        When a sensor that repeats one number hangs, and its readings are not used. "auto", the default: where
        :func:`veridyn.signals.inspect` calls them frozen, or dropped to zero; a joint that dwells is not. A number: after so many repeats.
        None: never.
    step : float, optional
        The longest step of the integration (s). Without it 0.01 s, or shorter where the fastest oscillation at the start needs that; where
        steps do not converge, or their bias along the log is too large for the estimated deviations, the log is run again with a
        shorter one. The rule is the same in every formulation.
    input_hold : {"zero", "linear"}
        "zero", the default: an input acts from its sample to the next, as what a controller puts out. "linear": it runs straight from
        sample to sample, as a measured force does, and acts by its mean between readings; not of an ``Observer``.
    friction_speed : float
        Below it (rad/s, m/s) dry friction of a tree is rounded off, because a jump has no tangent.
    parameters : names, or mapping of names to (sigma, walk, lower, upper), optional
        Parameters of a tree, or constants inside the laws of its elements ("fst_q1.speed"), that are estimated with the state. Of names
        `process_noise` gives the random walk and the deviation at the start; a mapping gives deviation at the start, density of the
        random walk (unit²/s) and bounds, the last three optional.
    sensors : sequence of Sensor or name, or mapping of names to Sensor or None, optional
        A sequence lists the sensors that are used, a name standing for the machine's own. A mapping replaces the machine's own by name;
        one set to None is left out. By default all sensors of the machine.
    consider : bool
        Let the uncertainty of the parameters of ``fit.machine()`` widen the bands of the states (the default).
    drifts : bool or names
        Estimate the parameters that the machine marks as drifting (section ``parameters: drifts`` of its file) with the state: all of them,
        the default, or those that are named. One that a log does not determine keeps its value, and its uncertainty enters the bands;
        see :mod:`veridyn.observe.process_noise`. An ``Observer`` has no log that shows it, and estimates all.

    Examples
    --------
    >>> import veridyn as vd
    >>> vd.ObserveSettings(start={"q1": 0.3}, step=0.005)
    ObserveSettings(start={'q1': 0.3}, step=0.005)
    >>> vd.ObserveSettings(step=-1.0)
    Traceback (most recent call last):
        ...
    veridyn.errors.ModelError: ObserveSettings.step: the value is not valid.
    Expected a number above 0 or None, found -1.0.
    """

    error: ClassVar[type[VeridynError]] = ModelError

    process_noise: ProcessNoise | CarNoise | None = None
    model_error: Literal["learned", "off"] | ProcessNoise = "learned"
    start: Mapping[str, float] | Literal["readings"] | None = None
    rates: Mapping[str, float] | None = None
    independents: Sequence[str] = ()
    unknown: Sequence[str] | None = None
    inputs: Sequence[str] | None = None
    frozen_after: Annotated[int, at_least(1)] | Literal["auto"] | None = "auto"
    step: Annotated[float, above(0.0)] | None = None
    input_hold: InputHold = "zero"
    friction_speed: Annotated[float, above(0.0)] = FRICTION_SPEED
    parameters: Annotated[Parameters, Rule(_names_parameters, PARAMETERS)] = ()
    sensors: Annotated[Choice | None, Rule(_chooses_sensors, SENSORS)] = None
    consider: bool = True
    drifts: bool | Sequence[str] = True

    def __post_init__(self) -> None:
        for name in (
            "independents",
            "unknown",
            "inputs",
            "parameters",
            "drifts",
        ):  # lists that others could change, and generators
            given = getattr(self, name)
            if isinstance(given, Iterable) and not isinstance(given, str | tuple | Mapping):
                object.__setattr__(self, name, tuple(given))
        super().__post_init__()
        read_parameters(self.parameters)
