"""The car of paper 001 beyond its printed model: what its maker knows, and suspensions that bend.

The printed model has wheels that rise straight up on massless carriers, and no air. None of this is a parameter of Table 4, and all of it
can be handed in (:mod:`veridyn.papers.car.knowledge`) as wrenches and forces beside the equations, with a standard deviation each:

- The carrier of a wheel stands where the axle's tables put it: its centre beside the model's by half track and wheelbase, turned by
  toe, camber and kingpin angle. The dynamometer's wrench is carried from there to the model's frame.
- A carrier has weight and inertia: −m (a − g) at its centre, from the inertial unit and the clearance.
- The suspension's force is in balance along the path of the wheel (:mod:`veridyn.papers.car.knowledge`): the work of that wrench along
  half track, wheelbase, toe, camber and kingpin angle, F · ∂q/∂z, enters the row of the clearance as the known signal ``path.q7``.
- The air acts on the chassis, by its table of six coefficients.

The model of 2002 has off + ks q + h q̇ along each clearance and nothing between two wheels. The curved one adds columns that are linear
in their parameters: an anti-roll bar for each axle, q² and q³ beside each spring, d³ beside each bar, and sign q̇, |q̇| and q̇|q̇| beside
each damper. The sixteen that are reported are the straight model's: of each wheel the three numbers with which off + ks q + h q̇ is
nearest to all these forces over the drives, which are linear in the parameters, x_reported = J x. Over ramps of steering, where the car
rolls, ks is then k + 2 k_ar.

Ramps go to one side each, so neither alone can stand for the other. Both models are fitted to every other stretch of both ramps and
predict the stretches between; the one that predicts better is reported. Braking, the check of the paper, takes no part in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import validate
from veridyn.model.elements.element import WRENCH_ROWS, Element, coulomb, drive_gain, spring
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.bent import (
    BAR_CUBE,
    KINDS,
    Selected,
    SuspensionFit,
    bend,
    bend_columns,
    better,
    coordinates_of,
    fitted,
    with_bends,
)
from veridyn.papers.car.knowledge import AXLES, CarKnown, air, slopes
from veridyn.papers.car.log import (
    CLEARANCE,
    FRAME_6,
    CarRecord,
    channels_2002,
    chassis_motion,
    rack_angle,
    record,
    wrench_channels,
)
from veridyn.papers.car.machine import WHEELS_2002
from veridyn.papers.car.simulator.run import VehicleRun
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.conditioning import derivative
from veridyn.signals.motion import Signals, motion

DRIVEN = (
    0,
    1,
)  # wheels on shafts, through which the moment about their axis goes: their kingpin angle has no share in the path
CARRIER_MASS = 0.5  # kg, deviation of a carrier on the scales: chosen; section 6.2 has its masses to 0.1 kg
OWN_BANDS = ("height", "camera")  # instruments that the car of 2006 does without
OWN_DEVIATIONS = {
    "bands": tuple(f"band {kind}" for kind in OWN_BANDS),
    "air": ("air Cx",),
    "carriers": tuple(f"{axle} carrier mass" for axle in AXLES),
}
SPRINGS = (
    "13",
    "17",
    "7",
    "10",
)  # by wheel, in the order of the simulator: front left, front right, rear left, rear right
BARS = {"arf": ("13", "17"), "arr": ("7", "10")}
TEN_ROWS_2002 = ("q1", "q2", "q3", "q4", "q5", "q6", "q7", "q10", "q13", "q17")
SUSPENSIONS = TEN_ROWS_2002[6:]
SIXTEEN = ("MX6", "MY6", "MZ6", "M6", *(f"{s}{j}" for j in (7, 10, 13, 17) for s in ("off", "ks", "h")))  # Table 4
STRETCH_S = 2.0  # s, of which one in two is left out: twice the memory of residuals that deviations allow for


def groups_2002(known: CarKnown) -> dict[str, tuple[str, ...]]:
    """Kind of knowledge → its items, as of a :class:`CarKnown`, and what this model needs beside them.

    Drag is handed in and not estimated; a carrier's moments of inertia are not used.
    """
    found = {group: items + OWN_DEVIATIONS.get(group, ()) for group, items in known.groups.items()}
    found["carriers"] = tuple(item for item in found["carriers"] if item.split()[-1] in ("MX", "MY", "MZ", "mass"))
    return found


def moved_2002(known: CarKnown, by: Mapping[str, float]) -> CarKnown:
    """The same with items of :func:`groups_2002` off by so many of their standard deviations."""
    own = {item for items in OWN_DEVIATIONS.values() for item in items}
    every = [item for items in groups_2002(known).values() for item in items]
    for name in by:
        if name not in every:
            raise DataError(f"no known value is called '{name}'.", where="car of 2002", hint=did_you_mean(name, every))
    made = known.moved({item: z for item, z in by.items() if item not in own})
    d, s = known.deviations, made.sensors
    bands = {
        kind: replace(s.kinds[kind], cutoff=s.kinds[kind].cutoff * (1.0 + d.band * by.get(f"band {kind}", 0.0)))
        for kind in OWN_BANDS
        if kind in s.kinds
    }
    drag = 1.0 + d.air * by.get("air Cx", 0.0)
    coefficients = tuple((drag * row[0], *row[1:]) for row in made.aerodynamics.coefficients)
    carriers = tuple(
        replace(c, mass=c.mass + CARRIER_MASS * by.get(f"{axle} carrier mass", 0.0))
        for c, axle in zip(made.carriers, AXLES, strict=True)
    )
    return replace(
        made,
        sensors=replace(s, **bands),
        aerodynamics=replace(made.aerodynamics, coefficients=coefficients),
        carriers=carriers,  # pyright: ignore[reportArgumentType]
    )


def drawn_2002(known: CarKnown, rng: np.random.Generator) -> CarKnown:
    """What a maker hands in: every item off by a normal error of its deviation."""
    items = [item for every in groups_2002(known).values() for item in every]
    return moved_2002(known, dict(zip(items, rng.standard_normal(len(items)).tolist(), strict=True)))


def informed_2002(machine: Machine) -> Machine:
    """The car of 2002 with the work along the wheels' paths as known forces, and carriers whose weight is among the wrenches."""
    work = [drive_gain(q, f"path.{q}", 1.0, f"path_{q}") for q in CLEARANCE]
    made = machine.with_elements(work)
    fixed = {f"path_{q}": 1.0 for q in CLEARANCE} | {f"M{j}": 0.0 for j in WHEELS_2002}
    return made.with_parameters(made.parameters.known(fixed))


def informed_motion(
    machine: Machine, log: Experiment, known: CarKnown, common: Butterworth, signals: Signals
) -> Motion:
    """A log as the motion of :func:`informed_2002`'s machine, with what is handed in."""
    return motion(machine, informed_channels(machine, record(machine, log, known.sensors, common), known), signals)


def informed_channels(machine: Machine, seen: CarRecord, known: CarKnown) -> Experiment:
    """What instruments recorded, in one band, as channels of the coordinates, wrenches and signals of :func:`informed_2002`'s machine."""
    kinematics, sensors = known.kinematics, known.sensors
    z, omega = seen.four("clearance"), seen.three("inertial.omega")
    beside = z - np.array(kinematics.design)
    forces = seen.wrench[:, :, [0, 1, 5]]
    toe = np.column_stack([seen["steering.1"], seen["steering.2"]])
    place = kinematics.tables.at(beside, rack_angle(toe, beside, kinematics, forces), forces)
    place[:, :2, 2] = toe
    wrench = _on_chassis_axes(seen, known, place, z, omega)
    carried = _carried(wrench, place, known)
    dynamometers = {f"dynamometer.{i + 1}.{r}": carried[:, i, k] for i in range(4) for k, r in enumerate(WRENCH_ROWS)}
    made = channels_2002(machine, replace(seen, channels=seen.channels | dynamometers), kinematics, sensors)
    slope = slopes(kinematics, z)
    for i, q in enumerate(CLEARANCE):
        made[f"signal.path.{q}"] = (_work(wrench[:, i], place[:, i], slope[:, i], i in DRIVEN), "N")
    velocity, _ = chassis_motion(seen, sensors, omega, np.zeros(3))
    made |= wrench_channels("6", _air_on_6(known, velocity))
    channels = {name: Channel(name, seen.t, values, unit) for name, (values, unit) in made.items()}
    return Experiment(channels, seen.name, seen.notes)


def _on_chassis_axes(seen: CarRecord, known: CarKnown, place: Array, z: Array, omega: Array) -> Array:
    """Of each wheel (N, 4, 6): the dynamometer's wrench less what the carrier's mass takes of it, at the wheel centre, in chassis axes."""
    out = np.empty((len(z), 4, 6))
    measured = seen.wrench
    zd, zdd = (derivative(z, seen.rate, order, where="clearance") for order in (1, 2))
    up = np.array([0.0, 0.0, 1.0])
    for i in range(4):
        at = np.array([*known.kinematics.places[i], known.kinematics.design[i]])
        _, felt = chassis_motion(seen, known.sensors, omega, at)
        felt = felt + zdd[:, i, None] * up + 2.0 * np.cross(omega, zd[:, i, None] * up)
        carrier, R = known.carriers[i // 2], _turned(place[:, i])
        centre = R @ (np.array(carrier.centre) * (1.0, -1.0 if i % 2 else 1.0, 1.0))
        out[:, i, :3] = _times(R, measured[:, i, :3]) - carrier.mass * felt
        out[:, i, 3:] = _times(R, measured[:, i, 3:]) - carrier.mass * np.cross(centre, felt)
    return out


def _times(R: Array, x: Array) -> Array:
    return np.einsum("nij,nj->ni", R, x)


def _turned(place: Array) -> Array:
    """From the carrier's axes to the chassis', (N, 3, 3): about z by toe, about x by camber, about y by the kingpin angle."""
    return _about(2, place[:, 2]) @ _about(0, place[:, 3]) @ _about(1, place[:, 4])


def _about(axis: int, angle: Array) -> Array:
    j, k = (axis + 1) % 3, (axis + 2) % 3
    R = np.zeros((len(angle), 3, 3))
    R[:, axis, axis] = 1.0
    R[:, j, j] = R[:, k, k] = np.cos(angle)
    R[:, k, j], R[:, j, k] = np.sin(angle), -np.sin(angle)
    return R


def _carried(wrench: Array, place: Array, known: CarKnown) -> Array:
    """The wrenches (N, 4, 6) in the frames of the model, whose wheels stand at their design place and only steer."""
    out = np.empty_like(wrench)
    for i in range(4):
        side = -1.0 if i % 2 else 1.0
        shift = np.zeros((len(wrench), 3))
        shift[:, 0] = place[:, i, 1] + (known.wheelbase if i < 2 else 0.0)
        shift[:, 1] = place[:, i, 0] + side * known.half_tracks[i // 2]
        force = wrench[:, i, :3]
        moment = wrench[:, i, 3:] + np.cross(shift, force)
        back = _about(2, -place[:, i, 2] if i < 2 else np.zeros(len(wrench)))
        out[:, i, :3], out[:, i, 3:] = _times(back, force), _times(back, moment)
    return out


def _work(wrench: Array, place: Array, slope: Array, driven: bool) -> Array:
    """What a wheel's wrench does along its path per metre of rise beyond lifting, (N,): F · ∂(place)/∂z + M · ∂(angles)/∂z."""
    force, moment, toe, camber = wrench[:, :3], wrench[:, 3:], place[:, 2], place[:, 3]
    flat = np.zeros_like(toe)
    axes = (  # of toe, camber and kingpin angle, in the chassis' axes
        np.column_stack([flat, flat, np.ones_like(toe)]),
        np.column_stack([np.cos(toe), np.sin(toe), flat]),
        np.column_stack([-np.sin(toe) * np.cos(camber), np.cos(toe) * np.cos(camber), np.sin(camber)]),
    )
    work = slope[:, 0] * force[:, 1] + slope[:, 1] * force[:, 0]
    for k in range(2 if driven else 3):
        work = work + slope[:, 2 + k] * (axes[k] * moment).sum(axis=1)
    return work


def _air_on_6(known: CarKnown, velocity: Array) -> Array:
    """The wrench of the air on body 6 at its origin, in its frame (N, 6), drag included."""
    aero = known.aerodynamics
    wrench = air(aero, velocity)
    speed = np.linalg.norm(velocity, axis=1)
    wrench[:, 0] = -np.interp(speed, aero.speeds, [row[0] for row in aero.coefficients]) * speed**2
    above = np.array([0.0, 0.0, -float(np.mean(known.kinematics.design[2:]))])  # from O6 to the chassis origin
    moment = wrench[:, 3:] + np.cross(above, wrench[:, :3])
    return np.hstack([wrench[:, :3] @ FRAME_6, moment @ FRAME_6])


@dataclass(frozen=True, eq=False)
class Model2002:
    """A machine with straight suspensions, or the same with curves and bars."""

    straight: Machine
    curved: bool
    rows: tuple[str, ...] = TEN_ROWS_2002

    @property
    def machine(self) -> Machine:
        return self.straight.with_elements(_elements()) if self.curved else self.straight

    def prepared(self, motions: Sequence[Motion]) -> tuple[Motion, ...]:
        """The motions with the columns of the curves as signals."""
        return tuple(with_bends(m, _bends(*_clearances(m, self.straight))) if self.curved else m for m in motions)

    def secants(self, names: Sequence[str], motions: Sequence[Motion]) -> tuple[tuple[str, ...], Array]:
        """The sixteen, and J: the line nearest to the forces of all columns along each clearance over the motions."""
        J = np.zeros((len(SIXTEEN), len(names)))
        for k, name in enumerate(SIXTEEN):
            J[k, names.index(name)] = 1.0
        if self.curved:
            q, qd = (np.concatenate(x) for x in zip(*(_clearances(m, self.straight) for m in motions), strict=True))
            for i, j in enumerate(SPRINGS):
                for name, force in _forces_on(i, q, qd).items():
                    line = nearest(q[:, i], qd[:, i], force)
                    for symbol, value in zip(("off", "ks", "h"), line, strict=True):
                        J[SIXTEEN.index(f"{symbol}{j}"), names.index(name)] += value
        return SIXTEEN, J


def nearest(q: Array, qd: Array, force: Array) -> tuple[float, float, float]:
    """off, ks and h with which off + ks q + h q̇ is nearest to a force (N,)."""
    columns = np.stack([np.ones_like(q), q, qd], axis=1)
    scale = np.abs(columns).max(axis=0)
    found = np.linalg.lstsq(columns / scale, force)[0] / scale
    return float(found[0]), float(found[1]), float(found[2])


def true_lines(run: VehicleRun) -> dict[str, float]:
    """off, ks and h of each wheel that are nearest to what spring, stops, bar, damper and friction of the simulated car do in a run."""
    s = run.vehicle.suspension
    z, zd, _ = run.clearance
    out: dict[str, float] = {}
    for i, j in enumerate(SPRINGS):
        axle, other = i // 2, i + 1 - 2 * (i % 2)
        d = z[:, i] - z[:, other]
        force = s.spring(i, z[:, i]) + s.damper(i, zd[:, i]) + s.bar[axle] * d + s.bar_cube[axle] * d**3
        line = nearest(z[:, i] - s.design[i], zd[:, i], force)
        out |= {f"{symbol}{j}": value for symbol, value in zip(("off", "ks", "h"), line, strict=True)}
    return out


def _elements() -> list[Element]:
    made: list[Element] = []
    for j in SPRINGS:
        made += [bend({f"q{j}": 1.0}, f"{kind}_{j}", *size) for kind, size in KINDS.items()]
        made.append(replace(coulomb(f"q{j}", 0.0, f"fs_{j}"), typical=20.0))
    for bar, (left, right) in BARS.items():
        on = {f"q{left}": 1.0, f"q{right}": -1.0}
        made.append(replace(spring(on, 0.0, f"k_{bar}"), typical=2e4))
        made.append(bend(on, f"k3_{bar}", *BAR_CUBE))
    return made


def _clearances(m: Motion, machine: Machine) -> tuple[Array, Array]:
    return coordinates_of(m, machine, [f"q{j}" for j in SPRINGS])


def _bends(q: Array, qd: Array) -> dict[str, Array]:
    return bend_columns(SPRINGS, BARS, q, qd, np.zeros(len(SPRINGS)))


def _forces_on(i: int, q: Array, qd: Array) -> dict[str, Array]:
    """Name of each further column that acts along the clearance of wheel i → its force with a parameter of 1."""
    j, axle, other = SPRINGS[i], tuple(BARS)[i // 2], i + 1 - 2 * (i % 2)
    bends = _bends(q, qd)
    d = q[:, i] - q[:, other]
    own = {f"{kind}_{j}": bends[f"{kind}_{j}"] for kind in KINDS} | {f"fs_{j}": np.sign(qd[:, i])}
    return own | {f"k_{axle}": d, f"k3_{axle}": d**3}


def kind_2002(name: str) -> str:
    """The group of a parameter of Table 4."""
    return "chassis" if name.startswith("M") else "dampers" if name.startswith("h") else "springs"


def stretches(motions: Sequence[Motion], rows: Sequence[str], part: int) -> dict[str, NDArray[np.bool_]]:
    """Row → mask over the samples of all motions that leaves out every other stretch: those with even numbers, or odd ones."""
    mask = np.concatenate([np.floor((m.t - m.t[0]) / STRETCH_S).astype(int) % 2 == part for m in motions])
    return dict.fromkeys(rows, mask)


def selected_2002(machine: Machine, motions: Sequence[Motion], how: Sampling) -> Selected:
    """Fit both models to both ramps, and to every other stretch of them; report the one that predicts the stretches between better."""
    halves = [replace(how, drop=stretches(motions, TEN_ROWS_2002, part)) for part in range(2)]

    def squares(singles: Sequence[SuspensionFit]) -> list[float]:
        found = []
        for single, other in zip(singles, halves[::-1], strict=True):
            check = validate(single.fit, list(single.motions), settings=IdentifySettings(sampling=other))
            found += [check[row].std_error ** 2 for row in SUSPENSIONS]  # the chassis' rows are the same in both models
        return found

    models = [Model2002(machine, curved) for curved in (False, True)]
    return better(models, motions, how, lambda model: [fitted(model, motions, h) for h in halves], squares, kind_2002)
