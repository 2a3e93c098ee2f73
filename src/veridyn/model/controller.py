"""Control laws of a machine: what its own drives make of commands and measurements, sampled at their own rate. Data only.

A controller moves one coordinate. At each tick t_k = k/rate it reads the command r at t_k − command_delay and the state (q, q̇) at
t_k − measurement_delay, computes a force, and holds it until the next tick. With e = r − q:

================= ===================================================================================================
kind              Γ before limits
================= ===================================================================================================
pd                kp e + kd ė + velocity_feedforward ṙ + acceleration_feedforward r̈ + Γ_m
pid               the same + I
cascade           kv (v_r − q̇) + I + Γ_m,  v_r = kp e + speed_feedforward ṙ within ±speed_limit
computed_torque   Γ(q, q̇, r̈ + kd ė + kp e) of a model: with a true model every coordinate is ë + kd ė + kp e = 0
================= ===================================================================================================

Γ_m is what a model adds (`feedforward`): nothing, "gravity" Γ(q, 0, 0) at the measured position, or "model" Γ(r, ṙ, r̈) along the command.
Γ stays within ±limit, and changes by at most rate_limit/rate from tick to tick. The integral I grows by ki e/rate each tick, that of a
cascade by ki (v_r − q̇)/rate; `anti_windup` says what it does while Γ is limited: "clamp" does not grow further into the limit,
"back_calculation" adds (Γ − Γ_unlimited)/(tracking_time rate), "none" grows on. The laws are those of K. J. Åström and T. Hägglund,
Advanced PID Control, 2006, chapter 3.

A controller with a `motor` sets the voltage of that element (kind dc_motor) in place of a force. Its current loop runs at current_rate,
a whole multiple of `rate`: u = current_kp (i_r − i) + I_u within ±voltage_limit, where i_r is the current of the force Γ, within
±current_limit; I_u grows by current_ki (i_r − i)/current_rate, and not further into the limit.

Gears rub more under load: the dry friction of the coordinate, elements of kind coulomb and the like, is larger by load_friction |Γ|, and by
backdrive_friction |Γ| besides where Γ acts against the motion, so that the load drives the motor.

All constants have names of their own, "controller.key", as :attr:`veridyn.model.machine.Machine.controller_constants` lists them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, Self, get_args

from veridyn.arguments import checked_record
from veridyn.arrays import Record
from veridyn.errors import Fault, Faults, ModelError, did_you_mean, part_at
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import BELOW_ZERO, NAN, ConstantKind

ControllerKind = Literal["pd", "pid", "cascade", "computed_torque"]
Feedforward = Literal["none", "gravity", "model"]
AntiWindup = Literal["clamp", "back_calculation", "none"]
FEEDFORWARDS: tuple[str, ...] = get_args(Feedforward)
ANTI_WINDUPS: tuple[str, ...] = get_args(AntiWindup)
DRY = ("coulomb", "coulomb_forward", "coulomb_backward", "stribeck")
MOTOR = "dc_motor"  # the kind of element that a current loop drives
MULTIPLE_TOLERANCE = 1e-9  # relative, of a ratio of two rates that should be whole


def _gain(key: str, turning: str, sliding: str, doc: str, default: float = NAN) -> ConstantKind:
    return ConstantKind(key=key, turning=turning, sliding=sliding, doc=doc, default=default, low=BELOW_ZERO)


def _limit(key: str, turning: str, sliding: str, doc: str) -> ConstantKind:
    """A bound above zero, infinite where it is not given."""
    return ConstantKind(key=key, turning=turning, sliding=sliding, doc=doc, default=math.inf, low=0.0)


KP = _gain("kp", "N*m/rad", "N/m", "force per error of position")
KD = _gain("kd", "N*m*s/rad", "N*s/m", "force per error of speed", 0.0)
LIMITS = (
    _limit("limit", "N*m", "N", "the greatest force, in either direction"),
    _limit("rate_limit", "N*m/s", "N/s", "the fastest change of the force"),
)
AHEAD = (
    _gain("velocity_feedforward", "N*m*s/rad", "N*s/m", "force per speed of the command", 0.0),
    _gain("acceleration_feedforward", "kg*m^2", "kg", "force per acceleration of the command", 0.0),
)
TRACKING = ConstantKind(
    key="tracking_time", turning="s", sliding="s", doc="how soon the integral leaves a limit", default=math.inf, low=0.0
)
READING = (
    ConstantKind(key="zero", turning="rad", sliding="m", doc="what the encoder reads beyond the position", default=0.0),
    _gain("command_delay", "s", "s", "how old the command is that a tick reads", 0.0),
    _gain("measurement_delay", "s", "s", "how old the position and speed are that a tick reads", 0.0),
)
LOAD = (
    _gain("load_friction", "1", "1", "dry friction of the joint per force of its drive", 0.0),
    ConstantKind(
        key="backdrive_friction",
        turning="1",
        sliding="1",
        doc="what load_friction is larger by where the load drives the motor",
        default=0.0,
    ),
)
CURRENT = (
    _gain("current_kp", "V/A", "V/A", "voltage per error of the current"),
    _gain("current_ki", "V/(A*s)", "V/(A*s)", "growth of the voltage per error of the current", 0.0),
    _limit("current_limit", "A", "A", "the greatest current asked for"),
    _limit("voltage_limit", "V", "V", "the greatest voltage"),
)
CONTROLLER_KINDS: Mapping[str, tuple[ConstantKind, ...]] = MappingProxyType(
    {
        "pd": (KP, KD, *AHEAD, *LIMITS, *READING, *LOAD),
        "pid": (
            KP,
            _gain("ki", "N*m/(rad*s)", "N/(m*s)", "growth of the force per error of position"),
            KD,
            *AHEAD,
            TRACKING,
            *LIMITS,
            *READING,
            *LOAD,
        ),
        "cascade": (
            _gain("kp", "1/s", "1/s", "speed asked for per error of position"),
            _gain("kv", "N*m*s/rad", "N*s/m", "force per error of speed"),
            _gain("ki", "N*m/rad", "N/m", "growth of the force per error of speed", 0.0),
            _gain("speed_feedforward", "1", "1", "share of the command's speed that is asked for", 1.0),
            _limit("speed_limit", "rad/s", "m/s", "the greatest speed asked for"),
            TRACKING,
            *LIMITS,
            *READING,
            *LOAD,
        ),
        "computed_torque": (
            _gain("kp", "1/s^2", "1/s^2", "acceleration per error of position"),
            _gain("kd", "1/s", "1/s", "acceleration per error of speed", 0.0),
            *LIMITS,
            *READING,
            *LOAD,
        ),
    }
)
CONTROLLER_CONSTANTS = tuple(dict.fromkeys(c.key for kind in (*CONTROLLER_KINDS.values(), CURRENT) for c in kind))


@checked_record
@dataclass(frozen=True, kw_only=True)
class Controller(Record):
    """A control law by its name, on one coordinate; see the module for what the kinds do.

    `rate` (Hz) is its own clock, with a tick at t = 0. `constants`: gains, limits and delays by key, in SI units; `sigma`: their prior
    standard deviations, where they are to be estimated. `motor`: the name of the motor that it drives by a current loop of `current_rate`
    (Hz), by default that of the law.
    """

    name: str
    kind: ControllerKind
    on: str
    rate: float
    constants: Mapping[str, float]
    feedforward: Feedforward = "none"
    anti_windup: AntiWindup = "clamp"
    motor: str = ""
    current_rate: float | None = None
    sigma: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        order = {c.key: k for k, c in enumerate(self.allowed)}
        for part in ("constants", "sigma"):
            ranked = sorted(getattr(self, part).items(), key=lambda item: order.get(item[0], len(order)))
            object.__setattr__(self, part, MappingProxyType({str(k): float(v) for k, v in ranked}))

    @property
    def allowed(self) -> tuple[ConstantKind, ...]:
        """The constants that it may have, in order."""
        return (*CONTROLLER_KINDS.get(self.kind, ()), *(CURRENT if self.motor else ()))

    @property
    def integrates(self) -> bool:
        """Whether it has an integral: without ki there is none."""
        return "ki" in self.constants

    @property
    def rubs(self) -> bool:
        """Whether friction of its gear grows with its force."""
        return any(self.constants.get(kind.key, 0.0) != 0.0 for kind in LOAD)

    @property
    def current_ticks(self) -> int:
        """How many ticks of the current loop there are for each of the law."""
        return 1 if self.current_rate is None else round(self.current_rate / self.rate)

    def constant(self, key: str) -> float:
        """A constant as given, or its default."""
        found = next((c.default for c in self.allowed if c.key == key), NAN)
        return self.constants.get(key, found)


@dataclass(frozen=True, kw_only=True)
class ControllerConstant:
    """A constant of a control law: `name` is "controller.key"; its value lies strictly between `low` and `high`.

    `sigma` is its prior standard deviation, NaN where none is given.
    """

    name: str
    value: float
    unit: str
    low: float
    high: float
    sigma: float
    controller: str
    key: str


class Controlled(ABC):
    """What a machine has besides because of its controllers."""

    name: str
    controllers: tuple[Controller, ...]

    @property
    @abstractmethod
    def kinds(self) -> Mapping[str, str]:
        """Coordinate → "turning" or "sliding"."""

    @cached_property
    def controller_constants(self) -> tuple[ControllerConstant, ...]:
        """The constants that its controllers give, in order."""
        return tuple(
            ControllerConstant(
                name=f"{c.name}.{k.key}",
                value=c.constants[k.key],
                unit=k.turning if self.kinds[c.on] == "turning" else k.sliding,
                low=k.low,
                high=k.high,
                sigma=c.sigma.get(k.key, NAN),
                controller=c.name,
                key=k.key,
            )
            for c in self.controllers
            for k in c.allowed
            if k.key in c.constants
        )

    def with_controller_constants(self, values: Mapping[str, float]) -> Self:
        """The same machine with other constants of its controllers, by name ("shoulder.kp")."""
        known, faults = {c.name: c for c in self.controller_constants}, Faults()
        for name, value in values.items():
            if name not in known:
                hint = did_you_mean(name, [*known])
                faults.add(f"there is no constant '{name}' of a controller.", where=self.name, hint=hint)
            elif not (math.isfinite(value) and known[name].low < value < known[name].high):
                c = known[name]
                expected = f"between {max(c.low, 0.0):g} and {c.high:g} {c.unit}"
                faults.add("the value is out of bounds.", where=f"'{name}'", expected=expected, found=f"{value:g}")
        faults.raise_if_any(ModelError)
        own = {
            c.name: {known[n].key: float(v) for n, v in values.items() if known[n].controller == c.name}
            for c in self.controllers
        }
        return replace(
            self,  # pyright: ignore[reportArgumentType]
            controllers=tuple(replace(c, constants={**c.constants, **own[c.name]}) for c in self.controllers),
        )


def check_controllers(
    controllers: Sequence[Controller],
    coordinates: Iterable[str],
    actuated: Iterable[str],
    elements: Sequence[Element] = (),
    prescribed: Sequence[str] = (),
) -> list[Fault]:
    """Every fault of the controllers of a machine with these coordinates, some of them actuated, and these elements."""
    faults, names, driven = Faults(), list(coordinates), set(actuated)
    for name, times in Counter(c.name for c in controllers).items():
        if times > 1:
            faults.add(f"the name is used {times} times.", where=part_at("controller", name))
    for on, times in Counter(c.on for c in controllers).items():
        if times > 1:
            first = next(c for c in controllers if c.on == on)
            faults.add(f"{times} controllers move '{on}'.", where=part_at("controller", first.name), expected="one")
    for c in controllers:
        where = part_at("controller", c.name)
        if c.on not in names:
            faults.add(f"there is no coordinate '{c.on}'.", where=where, hint=did_you_mean(c.on, names))
        elif c.on in prescribed:
            faults.add(f"'{c.on}' is prescribed: its motion is an input.", where=where, hint="Drop one of the two.")
        elif c.on not in driven:
            hint = "Mark the joint actuated, or leave the controller out."
            faults.add(f"'{c.on}' is a passive joint: no motor moves it.", where=where, hint=hint)
        _check_words(c, where, faults)
        if c.kind in CONTROLLER_KINDS:
            _check_constants(c, where, faults)
        if c.rubs:
            _check_load(c, elements, where, faults)
        if c.motor:
            _check_motor(c, elements, where, faults)
        elif c.current_rate is not None:
            faults.add("only a controller with a motor has a current_rate.", where=where, hint="Name the motor.")
    return faults.found


def _check_words(c: Controller, where: str, faults: Faults) -> None:
    chosen = {"kind": (c.kind, [*CONTROLLER_KINDS]), "feedforward": (c.feedforward, FEEDFORWARDS)}
    chosen["anti_windup"] = (c.anti_windup, ANTI_WINDUPS)
    for key, (word, allowed) in chosen.items():
        if word not in allowed:
            faults.add(f"{key} cannot be '{word}'.", where=where, expected=", ".join(allowed))
    if c.kind == "computed_torque" and c.feedforward != "none":
        hint = "Leave feedforward out: computed torque has gravity and inertia of the model already."
        faults.add("a computed torque has no feedforward.", where=where, found=c.feedforward, hint=hint)
    if not (math.isfinite(c.rate) and c.rate > 0.0):
        faults.add("its rate is not above zero.", where=where, expected="Hz, such as 1000", found=f"{c.rate:g}")
    if c.anti_windup == "back_calculation" and "tracking_time" not in c.constants:
        hint = "A tenth to the whole of kp/ki is usual."
        faults.add("back_calculation needs tracking_time.", where=where, expected="seconds above zero", hint=hint)


def _check_constants(c: Controller, where: str, faults: Faults) -> None:
    allowed = {k.key: k for k in c.allowed}
    for key, value in c.constants.items():
        if key not in allowed:
            owners = [kind for kind, own in CONTROLLER_KINDS.items() if any(k.key == key for k in own)]
            hint = f"Constants of {c.kind} are {', '.join(allowed)}."
            found = f"a constant of {', '.join(owners) or 'a motor'}" if key in CONTROLLER_CONSTANTS else ""
            faults.add(f"a controller of kind {c.kind} has no '{key}'.", where=where, found=found, hint=hint)
        elif not allowed[key].allows(value):
            expected = "zero or more" if allowed[key].low == BELOW_ZERO else "above zero"
            faults.add(f"{key} is {allowed[key].doc}, and cannot be {value:g}.", where=where, expected=expected)
    for key, kind in allowed.items():
        if kind.required and key not in c.constants:
            faults.add(f"{key} is missing: {kind.doc}.", where=where)
    for key, value in c.sigma.items():
        if key not in c.constants:
            faults.add(f"sigma is given for '{key}', which has no value.", where=where, hint=f"Add {key}.")
        elif not (math.isfinite(value) and value > 0.0):
            faults.add(f"the standard deviation of {key} is not above zero.", where=where, found=f"{value:g}")


def _check_load(c: Controller, elements: Sequence[Element], where: str, faults: Faults) -> None:
    if c.constant("load_friction") + c.constant("backdrive_friction") < 0.0:
        faults.add(
            "its gear would push where the load drives the motor.",
            where=where,
            expected="backdrive_friction of at least −load_friction",
            found=f"{c.constant('backdrive_friction'):g}",
        )
    if not any(e.kind in DRY and dict(e.on) == {c.on: 1.0} for e in elements):
        hint = f"Add an element of kind coulomb on '{c.on}'."
        faults.add("load_friction adds to dry friction of its joint, which has none.", where=where, hint=hint)
    if c.motor:
        faults.add("friction that grows with load is that of a force, and its motor has a current loop.", where=where)


def _check_motor(c: Controller, elements: Sequence[Element], where: str, faults: Faults) -> None:
    motors = {e.parameter_name: e for e in elements if e.kind == MOTOR}
    if c.motor not in motors:
        hint = did_you_mean(c.motor, [*motors]) or f"Add an element of kind {MOTOR}."
        faults.add(f"there is no motor '{c.motor}'.", where=where, hint=hint)
    else:
        motor = motors[c.motor]
        if [*motor.on] != [c.on]:
            faults.add(f"'{c.motor}' does not act on '{c.on}' alone.", where=where, found=", ".join(motor.on))
        if not (math.isfinite(motor.value) and motor.value * motor.on.get(c.on, 0.0) != 0.0):
            what = f"the current of a force cannot be computed: the torque constant of '{c.motor}' is {motor.value:g}."
            faults.add(what, where=where, expected="a number other than zero")
    if c.current_rate is None or not c.rate > 0.0:
        return
    ratio = c.current_rate / c.rate
    if not (ratio >= 1.0 and abs(ratio - round(ratio)) <= MULTIPLE_TOLERANCE * ratio):
        faults.add(
            "its current loop does not tick with it.",
            where=where,
            expected=f"current_rate a whole multiple of rate, {c.rate:g} Hz",
            found=f"{c.current_rate:g} Hz",
        )
