"""What a machine has and its model lacks: rotors, friction of other kinds, flexible gears, a payload, another direction of gravity, gears.

A kind of structure first makes a world and a model that agree (`prepare`: the model without the rotor of a joint, on a machine without it),
and then records a log of the world with the structure of a size. The joint is drawn; where several joints are named, all of them have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import veridyn as vd
from benchmarks.calibration_foreign import RATE
from benchmarks.damage.kinds import TURNED, Table
from benchmarks.damage.world import World, rigid_torques, without_laws
from benchmarks.damage.wrist import coupled_motors, gear_reversed, without_coupling
from veridyn.model.machine import Machine

Array = NDArray[np.float64]
Joints = tuple[int, ...]
Size = float | Array  # of every joint, where it is an array (n,)
STRIBECK_SPEED = 0.3  # rad/s or m/s, at which a third of the additional friction is left
WARM_UP = 1.0 / 3.0  # of the log: time constant of friction that falls as it warms up
PAYLOAD_AT = (0.08, 0.05, -0.1)  # m, in the last body's frame
TILT = np.radians(5.0)


def rotor(w: World, size: Size, joints: Joints, quiet: bool) -> Table:
    """Rotors of inertia `size` kg m², as seen from the joints."""
    return w.log(added=size * _at(joints, w) * w.accelerations, quiet=quiet)


def load_friction(w: World, size: Size, joints: Joints, quiet: bool) -> Table:
    """Dry friction of `size` times the load of the gear."""
    return w.log(added=size * _at(joints, w) * np.abs(w.load()) * np.sign(w.speeds), quiet=quiet)


def flexible(w: World, size: Size, joints: Joints, quiet: bool) -> Table:
    """Gears that yield by `size` rad a N*m between motor and link; rotors, friction, encoders and torques are at the motors.

    The links follow the motion, so a motor is at φ = A q + c l(t), and gives l + Ia φ̈ + h φ̇ + fs sign(φ̇): the equations of a flexible
    joint solved backwards, without integrating them. Derivatives of the load are central differences over five samples.
    """
    step = 1.0 / RATE
    t = np.concatenate([w.t[0] + step * np.array([-2, -1]), w.t, w.t[-1] + step * np.array([1, 2])])
    load = w.load(rigid_torques(w.model, *w.along.at(t)))
    a, b, c, d, e = (load[k : k + len(w.t)] for k in range(5))
    own = size * _at(joints, w)
    rate = own * (a - 8.0 * b + 8.0 * d - e) / (12.0 * step)
    second = own * (-a + 16.0 * b - 30.0 * c + 16.0 * d - e) / (12.0 * step**2)
    dry = w.law("fs") * (np.sign(w.speeds + rate) - np.sign(w.speeds))
    return w.log(added=w.law("Ia") * second + w.law("h") * rate + dry, twist=own * c, quiet=quiet)


def warm_up(w: World, size: Size, joints: Joints, quiet: bool) -> Table:
    """Friction that is 1 + size times its later value at first, and falls to it as e^(−t/τ)."""
    t = w.t - w.t[0]
    return w.log(added=size * _at(joints, w) * np.exp(-t / (WARM_UP * t[-1]))[:, None] * w.friction, quiet=quiet)


def asymmetric(w: World, size: Size, joints: Joints, quiet: bool) -> Table:
    """Friction, dry and viscous, of 1 ± size times its value in the two directions."""
    return w.log(added=size * _at(joints, w) * np.sign(w.speeds) * w.friction, quiet=quiet)


def stribeck(w: World, size: Size, joints: Joints, quiet: bool) -> Table:
    """Dry friction of 1 + size times its value at the slowest, falling as e^(−(v/v_s)²)."""
    more = np.exp(-((w.speeds / STRIBECK_SPEED) ** 2)) * np.sign(w.speeds)
    return w.log(added=size * _at(joints, w) * w.law("fs") * more, quiet=quiet)


def payload(w: World, size: Size, _joints: Joints, quiet: bool) -> Table:
    """A mass of `size` kg, on the last body from the middle of the log on."""
    model = w.subject.pin_model(w.values)
    last = len(w.subject.joints)
    model.appendBodyToJoint(
        last, pin.Inertia(float(size), np.zeros(3), np.zeros((3, 3))), pin.SE3(np.eye(3), np.array(PAYLOAD_AT))
    )
    loaded = (w.t - w.t[0] >= 0.5 * (w.t[-1] - w.t[0]))[:, None]
    return w.log(rigid=np.where(loaded, rigid_torques(model, *w.states), w.rigid), quiet=quiet)


def tilted(w: World, size: Size, joints: Joints, quiet: bool) -> Table:
    """A base that leans by `size` rad; the way it leans goes by the number of the joint that is drawn."""
    way = 2.0 * np.pi * joints[0] / len(w.subject.joints) + 0.5
    angle = float(size)
    g, model = -w.model.gravity.linear[2], w.subject.pin_model(w.values)
    model.gravity.linear = g * np.array([np.sin(angle) * np.cos(way), np.sin(angle) * np.sin(way), -np.cos(angle)])
    return w.log(rigid=rigid_torques(model, *w.states), quiet=quiet)


def as_it_is(w: World, _size: Size, _joints: Joints, quiet: bool) -> Table:
    """The log of the world itself: the model is wrong."""
    return w.log(quiet=quiet)


def _at(joints: Joints, w: World) -> Array:
    """1 at some joints, 0 elsewhere."""
    out = np.zeros(len(w.subject.joints))
    out[list(joints)] = 1.0
    return out


Prepare = Callable[[World, Machine, Joints], tuple[World, Machine]]


def agreed(w: World, machine: Machine, _joints: Joints) -> tuple[World, Machine]:
    """World and model as they are."""
    return w, machine


def without_rotors(w: World, machine: Machine, joints: Joints) -> tuple[World, Machine]:
    """World and model without the rotors of some joints."""
    names = w.subject.names
    none = {names["Ia"][k]: 0.0 for k in joints}
    return w.with_values(none), without_laws(machine, names, "Ia", joints)


@dataclass(frozen=True)
class Structure:
    """`record(world, size, joints, quiet)` is the log; `among(machine)` the joints of which one is drawn, all where it is None.

    `model(machine, joint)` is the model that is said to be the machine's; `causes`, `words` and `sizes` as of a damage. `located`: whether
    a finding has to name the joint; `geared`: whether machines with gears alone can have it.
    """

    name: str
    record: Callable[[World, Size, Joints, bool], Table]
    causes: tuple[str, ...]
    words: tuple[str, ...]
    sizes: tuple[float, float] | None = None
    prepare: Prepare = agreed
    model: Callable[[Machine, int], Machine] | None = None
    among: Callable[[Machine], Sequence[int]] | None = None
    located: bool = True
    geared: bool = False


def separate_rotors(machine: Machine) -> list[int]:
    """Joints whose rotor inertia is not one with the inertia of their body, as those of the first joints are."""
    names = vd.base_parameters(machine).names
    rotors = [e.parameter_name for e in machine.elements if e.kind == "inertia"]
    return [k for k, name in enumerate(rotors) if name in names]


STRUCTURES = (
    Structure("rotor inertia missing", rotor, ("rotor", "motor inertia"), ("rotor", "motor inertia"), (1e-4, 10.0),
              without_rotors, among=separate_rotors),
    Structure("load-dependent friction", load_friction, ("load-dependent",), ("load-dependent",), (1e-4, 1.0)),
    Structure("flexible joint", flexible, ("flexib", "elastic"), ("flexib", "elastic", "yields"), (1e-7, 1.0)),
    Structure("friction that warms up", warm_up, ("warm",), ("warm",), (1e-3, 2.0)),
    Structure("asymmetric friction", asymmetric, ("asymmetric",), ("asymmetric", "each direction"), (1e-3, 0.9)),
    Structure("Stribeck friction", stribeck, ("stribeck",), ("Stribeck",), (1e-2, 3.0)),
    Structure("payload taken up halfway", payload, ("payload", "load taken up"), ("payload", "load taken up"), (1e-3, 10.0), located=False),
    Structure("gravity tilted", tilted, ("gravity",), ("gravity", "tilted"), (1e-4, 0.5), located=False),
    Structure("gravity tilted by 5°", lambda w, _size, joints, quiet: tilted(w, TILT, joints, quiet), ("gravity",),
              ("gravity", "tilted"), located=False),
    Structure("gear sign", as_it_is, TURNED, ("other way", "gear sign", "wrong sign"), model=gear_reversed, geared=True),
    Structure("coupling missing", as_it_is, ("coupling",), ("coupl",), model=lambda m, _k: without_coupling(m),
              among=coupled_motors, geared=True),
)  # fmt: skip
KINDS_BY_NAME = {s.name: s for s in STRUCTURES}
