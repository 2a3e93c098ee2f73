"""The models that a study of the car compares, the ways in which signals become equations, and how far an identified car may be off.

There are three ways. `as_printed` is that of paper 000, VI.B: everything through 3.125 Hz except the clearances, central differences,
signals as the instruments give them. `one_filter` passes columns and measurements of all rows through the same 3.125 Hz, in parallel.
`corrected` has one filter for each row: 3.125 Hz for the chassis, which the driveline's modes at 3.9 to 5.5 Hz disturb, and 20 Hz for the
suspensions, which need the wheel's hop at 12.7 Hz; and it projects the suspensions' rows on the wheels' paths.

The deviation of an identified car, by where it comes from:

    σ² = σ²(noise) + σ²(drives) + σ²(zeros) + σ²(carriers) + σ²(tables) + σ²(bands) + σ²(places) + σ²(lengths) + σ²(air)

Noise: the sandwich of :mod:`veridyn.identify.estimators.coloured` on the model that is reported, whose residuals hold its model error too,
with a memory of a second. Drives: what varies between drives beyond that (:mod:`veridyn.identify.fleet`). Zeros: what is left of each
instrument's zero, from its data sheet. The others are handed-in knowledge (:mod:`veridyn.papers.car.knowledge`): each piece is moved by
its standard deviation, the residuals answer with Δr, and the estimates to first order with

    Δx = J (WᵀW)⁻¹ Wᵀ Δr,     W and r weighted, J the secants of :mod:`veridyn.papers.car.bent`.

Nothing of this needs the truth. Gains of the instruments are taken as exact, and so is what no drive and no residual shows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataWarning
from veridyn.identify.regression.equation_plan import EquationPlan, Job
from veridyn.identify.regression.observation import stream
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import predicted
from veridyn.model.elements.element import drag, offset
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.papers.car.bent import SuspensionFit
from veridyn.papers.car.drive import ENDS, Campaign
from veridyn.papers.car.knowledge import CarKnown, paths
from veridyn.papers.car.machine import TEN_ROWS, estimated_33
from veridyn.papers.car.simulator.description import WheelCarrier
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.conditioning import derivative
from veridyn.signals.motion import Signals
from veridyn.spatial.inertia import INERTIAL

ZERO = "zero_fx"
CHASSIS = TEN_ROWS[:6]
SLOW, FAST = (
    Butterworth(3.125),
    Butterworth(20.0),
)  # paper 000, VI.B; above the wheel's hop, V.A's band of the clearances
KEPT = 5  # of so many samples at 500 Hz, one
TRIM = 100  # samples at each end
CARRIER_SYMBOLS = tuple(s for s in INERTIAL if s != "M")
OTHER_AIR = {"Cy": "fy", "Cz": "fz", "Cl": "mx", "Cm": "my", "Cn": "mz"}
PART_S = 10.0  # s of each drive, in which the answer to knowledge and zeros is looked for: a property of the manoeuvre, not of its length
FROM_LOGS = ("tables", "bands")  # knowledge with which a log is read; the others enter behind it
UNINSPECTED = Signals(lowpass=None, trim=ENDS, inspection="off")  # a log that was looked at before
SOME = 4  # one equation in so many is asked what a zero does to it
MIRROR = {"XY": -1.0, "YZ": -1.0, "MY": -1.0}  # what a mirror image changes the sign of


def thirty_three(machine: Machine) -> Machine:
    """The 33 of Table II, and the zero of the force along x: without it a zero of the instruments would be taken for drag."""
    return estimated_33(machine).with_elements([offset("chassis.fx", 0.0, ZERO)])


def asking(machine: Machine, names: Iterable[str]) -> Machine:
    """The same machine with these parameters estimated as well."""
    p = machine.parameters
    wanted = set(names)
    states = tuple("estimated" if n in wanted else s for n, s in zip(p.names, p.states, strict=True))
    return machine.with_parameters(replace(p, states=states))


def with_unsprung(machine: Machine) -> Machine:
    """The 33 and the nine other inertial parameters of each unsprung body."""
    return asking(thirty_three(machine), (f"{s}{i}" for s in INERTIAL for i in range(1, 5)))


def with_carriers(machine: Machine, carriers: tuple[WheelCarrier, WheelCarrier]) -> Machine:
    """The machine with the nine inertial parameters beside the mass of each unsprung body known from a drawing."""
    values = {
        f"{symbol}{i + 1}": x
        for i in range(4)
        for symbol, x in zip(INERTIAL, carriers[i // 2].ten(right=bool(i % 2)), strict=True)
        if symbol in CARRIER_SYMBOLS
    }
    return machine.with_parameters(machine.parameters.replacing(values))


def every_standard(machine: Machine) -> Machine:
    """All of VI: 50 inertial parameters, suspensions, bars, and six components of the air; and the zero along x."""
    six = [drag(f"chassis.{row}", 0.0, name) for name, row in OTHER_AIR.items()]
    return with_unsprung(machine).with_elements(replace(e, typical=0.1) for e in six)


def corrected(machine: Machine) -> Sampling:
    return Sampling(filter=FAST, filters=dict.fromkeys(CHASSIS, SLOW), along=paths(machine), decimate=KEPT, trim=TRIM)


def plain_rows(machine: Machine) -> Sampling:
    """The corrected filters with the rows of the clearances alone, as the paper has them."""
    return replace(corrected(machine), along={})


def one_filter(machine: Machine) -> Sampling:
    return Sampling(filter=SLOW, decimate=KEPT, trim=TRIM)


def as_printed(machine: Machine) -> Sampling:
    """No filter of the equations: the signals of :func:`printed_motion` have passed theirs."""
    return Sampling(decimate=KEPT, trim=TRIM)


def printed_motion(made: Campaign, machine: Machine, name: str) -> Motion:
    """A drive through the filters of VI.B: all but clearances at 3.125 Hz, and central differences, whose bias is part of the "
    "comparison."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        m = made.motion(machine, name, common=None, signals=Signals(lowpass=None, derivative="central", trim=ENDS))
    rate = 1.0 / float(np.median(np.diff(m.t)))

    def low(x: Array) -> Array:
        return zero_phase(x, rate, SLOW)

    assert m.base is not None and m.base.velocity is not None  # a car's
    omega = low(m.base.omega)
    turning = derivative(omega, rate, 1, "central")
    base = BaseMotion(omega, turning, low(m.base.acceleration), low(m.base.velocity))
    others = [k for k, c in enumerate(machine.coordinates) if not c.startswith("z") or c.startswith("zt")]
    q, qd, qdd = m.q.copy(), m.qd.copy(), m.qdd.copy()
    for x in (q, qd, qdd):
        x[:, others] = low(x[:, others])
    wrenches = {body: low(w) for body, w in m.wrenches.items()}
    return replace(m, q=q, qd=qd, qdd=qdd, base=base, wrenches=wrenches)


def held(m: Motion, machine: Machine, families: Iterable[str]) -> Motion:
    """The motion with some of a wheel's coordinates held at zero: "dl" stands for dl1 to dl4. Steering is left as it is."""
    wheels = ("3", "4") if "beta" in families else ("1", "2", "3", "4")
    still = [machine.coordinates.index(f"{f}{i}") for f in families for i in wheels]
    q, qd, qdd = m.q.copy(), m.qd.copy(), m.qdd.copy()
    for x in (q, qd, qdd):
        x[:, still] = 0.0
    return replace(m, q=q, qd=qd, qdd=qdd)


@dataclass(frozen=True, eq=False)
class Budget:
    """Standard deviations of the parameters of a fit by where they come from, each (p,), and all together."""

    names: tuple[str, ...]
    parts: Mapping[str, Array]

    @property
    def total(self) -> Array:
        return np.sqrt(np.sum([x**2 for x in self.parts.values()], axis=0))

    def of(self, name: str) -> dict[str, float]:
        """Source → standard deviation of one parameter."""
        k = self.names.index(name)
        return {source: float(x[k]) for source, x in self.parts.items()}


@dataclass(frozen=True, eq=False)
class Weighted:
    """The weighted equations of a fit: W (n, p), columns of others (n, m), where each row of each motion stands, deviations of rows."""

    W: Array
    more: Array
    more_names: tuple[str, ...]
    places: Mapping[tuple[int, str], tuple[slice, NDArray[np.intp]]]
    sigma: Mapping[str, float]

    def moved(self, change: Array) -> Array:
        """How the parameters answer to changes (n, m) of the weighted measurements, (p, m); NaN: equations that are not asked."""
        asked = np.isfinite(change).all(axis=1)
        if asked.all():
            return self._inverse @ change
        return np.asarray(np.linalg.lstsq(self.W[asked], change[asked])[0], dtype=np.float64)

    @cached_property
    def _inverse(self) -> Array:
        """W⁺ (p, n), which a budget asks once for each piece of what is handed in."""
        return np.asarray(np.linalg.pinv(self.W), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Answers:
    """How the reported parameters of a fit answer to one standard deviation of what is handed in, (p, m) for m pieces of it.

    `motions`: the first PART_S seconds of the drives `names`; `residuals` those of the fit there.
    """

    found: SuspensionFit
    made: Campaign
    names: tuple[str, ...]
    how: Sampling
    motions: tuple[Motion, ...]
    equations: Weighted
    residuals: Array

    @classmethod
    def of(cls, found: SuspensionFit, made: Campaign, names: Sequence[str], how: Sampling) -> Answers:
        model, short = found.model, made.part(PART_S)
        motions = model.prepared([short.motion(model.straight, name) for name in names])
        equations = weighted(found, model.machine, motions, how)
        start = filtered_residuals(found, motions, how, equations)
        return cls(found, short, tuple(names), how, motions, equations, start)

    def to_item(self, group: str, item: str) -> Array:
        """To a piece of knowledge with which motions are made."""
        known, model = self.made.known, self.found.model
        other = known.moved({item: 1.0})
        if group in FROM_LOGS:
            fresh = [
                self.made.motion(model.straight, name, other, signals=UNINSPECTED, noise=False) for name in self.names
            ]
        else:
            fresh = [other.instead_of(known, m, model.straight) for m in self.motions]
        moved = filtered_residuals(self.found, model.prepared(fresh), self.how, self.equations)
        return self.found.secants @ self.equations.moved((moved - self.residuals)[:, None])

    def to_zeros(self, biases: Mapping[str, float]) -> Array:
        """To the zero of each instrument. `biases`: kind of instrument → deviation of its zero."""
        changes = np.column_stack(_zero_changes(self.found, self.motions, self.how, self.equations, biases))
        return self.found.secants @ self.equations.moved(changes)

    def to_carriers(self) -> Array:
        """To each inertial parameter of a carrier beside its mass, left and right being mirror images."""
        return self.found.secants @ np.column_stack(list(_carriers(self.made.known, self.equations)))


def budget(
    found: SuspensionFit,
    drives: Array,
    made: Campaign,
    names: Sequence[str],
    how: Sampling,
    progress: Progress = silent,
) -> Budget:
    """The deviations of a fit of the drives `names`. `drives` (p,): what varies between them beyond noise."""

    def size(answers: Sequence[Array]) -> Array:
        return np.sqrt(np.square(np.hstack(answers)).sum(axis=1))

    asked = Answers.of(found, made, names, how)
    parts = {"noise": found.sigma, "drives": drives, "zeros": size([asked.to_zeros(made.sensors.biases)])}
    parts["carriers"] = size([asked.to_carriers()])
    moving = {group: items for group, items in made.known.groups.items() if group != "carriers"}
    total, done = float(sum(len(items) for items in moving.values())), 0.0
    for group, items in moving.items():
        answers = []
        for item in items:
            progress("sensitivities to known values", done, total)
            done += 1.0
            answers.append(asked.to_item(group, item))
        parts[group] = size(answers)
    progress("sensitivities to known values", total, total)
    return Budget(found.names, parts)


def _kept(plan: EquationPlan, job: Job) -> list[tuple[NDArray[np.intp], list[Array]]]:
    return [(b.numbers, [A.copy() for A in b.equations]) for b in plan.blocks(job)]


def weighted(found: SuspensionFit, machine: Machine, motions: Sequence[Motion], sampling: Sampling) -> Weighted:
    """All equations at once, divided by the deviations of their rows; carriers' inertia, which is known, among the other columns."""
    fit = found.fit
    rows = [r.row for r in fit.rows]
    sigma = {r.row: r.sigma for r in fit.rows}
    wide = asking(machine, (f"{s}{i}" for s in CARRIER_SYMBOLS for i in range(1, 5)))
    samples = stream(wide, motions[0], rows, IdentifySettings(sampling=sampling))
    p = wide.parameters
    mine = [p.index(fit.described.parameters.names[c]) for c in fit.base.columns]
    others = [c for c in p.select("estimated") if c not in mine]
    W, more, places, first = [], [], {}, 0
    for k, motion in enumerate(motions):
        parts = [part for job in replace(samples, motions=(motion,)).each(_kept) for part in job]
        numbers = np.concatenate([n for n, _ in parts])
        numbers = numbers[(numbers >= sampling.trim) & (numbers < len(motion) - sampling.trim)]
        for j, row in enumerate(rows):
            A = np.concatenate([equations[j] for _, equations in parts]) / sigma[row]
            every = np.zeros((len(A), len(p)))
            every[:, list(samples.plan.columns[j])] = A[:, :-1]
            W.append(every[:, mine])
            more.append(every[:, others])
            places[k, row] = (slice(first, first + len(A)), numbers)
            first += len(A)
    return Weighted(np.vstack(W), np.vstack(more), tuple(p.names[c] for c in others), places, sigma)


def _carriers(known: CarKnown, equations: Weighted) -> Iterator[Array]:
    """What more of a carrier's inertia, which is known and on the measured side, does to the parameters, for each symbol and axle."""
    answer = dict(zip(equations.more_names, equations.moved(equations.more).T, strict=True))
    for k, (left, right) in enumerate((("1", "2"), ("3", "4"))):
        sizes = known.carrier_sizes(k)
        for symbol in CARRIER_SYMBOLS:
            if f"{symbol}{left}" in answer:
                yield -sizes[symbol] * (
                    answer[f"{symbol}{left}"] + MIRROR.get(symbol, 1.0) * answer[f"{symbol}{right}"]
                )


def filtered_residuals(found: SuspensionFit, motions: Sequence[Motion], how: Sampling, equations: Weighted) -> Array:
    """The weighted residuals (n,) of the fit at its equations, each row through its filter."""
    out = np.empty(len(equations.W))
    for k, motion in enumerate(motions):
        rate = 1.0 / float(np.median(np.diff(motion.t)))
        names, measured, model = predicted(found.fit, motion, sampling=how)
        for j, row in enumerate(names):
            at, numbers = equations.places[k, row]
            low = how.filters.get(row, how.filter)
            residual = measured[:, j] - model[:, j]
            out[at] = (residual if low is None else zero_phase(residual, rate, low))[numbers] / equations.sigma[row]
    return out


def _zero_changes(
    found: SuspensionFit, motions: Sequence[Motion], how: Sampling, equations: Weighted, zeros: Mapping[str, float]
) -> list[Array]:
    """The weighted change of one equation in `SOME`, NaN elsewhere, for one deviation of each instrument's zero.

    A zero is slow, so that filters let it pass and some of the equations tell as much as all.
    """
    fit = found.fit
    changes: list[Array] = []
    for k, motion in enumerate(motions):
        step = SOME * how.decimate
        thin = motion[::step]
        variants = [thin, *(found.model.prepared([m])[0] for m in _zeros(fit.described, thin, zeros))]
        _, measured, model = predicted(fit, _behind_each_other(variants), sampling=how)
        residual = (measured - model).reshape(len(variants), len(thin), -1)
        changes = changes or [np.full(len(equations.W), np.nan) for _ in variants[1:]]
        for change, moved in zip(changes, residual[1:] - residual[0], strict=True):
            for j, r in enumerate(fit.rows):
                at, numbers = equations.places[k, r.row]
                taken = numbers % step == 0
                change[at][taken] = moved[numbers[taken] // step, j] / equations.sigma[r.row]
    return changes


def _behind_each_other(motions: Sequence[Motion]) -> Motion:
    """Motions of one machine as one, on a clock that only counts."""

    def every(of: str) -> Array:
        return np.concatenate([getattr(m, of) for m in motions])

    bases = [m.base for m in motions if m.base is not None]
    base = BaseMotion(
        *(np.concatenate([getattr(b, f) for b in bases]) for f in ("omega", "omega_dot", "acceleration", "velocity"))
    )
    return Motion(
        np.arange(sum(len(m) for m in motions), dtype=np.float64),
        every("q"),
        every("qd"),
        every("qdd"),
        base,
        wrenches={b: np.concatenate([m.wrenches[b] for m in motions]) for b in motions[0].wrenches},
        signals={s: np.concatenate([m.signals[s] for m in motions]) for s in motions[0].signals},
    )


def _zeros(machine: Machine, m: Motion, size: Mapping[str, float]) -> list[Motion]:
    """The motion as it would be with the zero of one instrument after the other off by its deviation."""
    base = m.base
    assert base is not None  # of a free chassis

    def with_base(**fields: Array) -> Motion:
        old = {"omega": base.omega, "omega_dot": base.omega_dot, "acceleration": base.acceleration}
        return replace(m, base=BaseMotion(**{**old, "velocity": base.velocity, **fields}))

    out = []
    for k in range(3):
        step = np.eye(3)[k]
        out.append(with_base(omega=base.omega + size["gyro"] * step))
        out.append(with_base(acceleration=base.acceleration + size["accelerometer"] * step))
        if k < 2 and base.velocity is not None:
            out.append(with_base(velocity=base.velocity + size["speed"] * step))
    kinds = {"z": "clearance", "beta": "steering", "camber": "steering"}
    for c, name in enumerate(machine.coordinates):
        kind = kinds.get(name[:-1])
        if kind is not None:
            q = m.q.copy()
            q[:, c] += size[kind]
            out.append(replace(m, q=q))
    for body, wrench in m.wrenches.items():
        for k in range(6) if body.startswith("unsprung") else ():
            shifted = wrench.copy()
            shifted[:, k] += size["force" if k < 3 else "moment"]
            out.append(replace(m, wrenches={**m.wrenches, body: shifted}))
    return out
