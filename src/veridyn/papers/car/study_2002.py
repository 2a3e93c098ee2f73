"""The study of paper 001: two ramps of steering, one behind the other, sixteen parameters, a weight, and braking as the check.

The model has no anti-roll bars, and ramps make the car roll: each ks is therefore the stiffness in roll, k + 2 k_ar, which is how the
60 to 71 kN/m of the paper's Table 4 go together with the 26 to 32 kN/m, and bars of 22 to 24 kN/m, that paper 000 finds.

Twice identified: as printed, and with what a maker knows beside the sixteen (:mod:`veridyn.papers.car.known_2002`), with suspensions of
which the better predicting model is reported (:mod:`veridyn.papers.car.known_2002`). The latter is Table 4 with its whole deviation; the
former is the comparison, and the steps between them are in tests/papers/car/ladder_2002.py. How far Table 4 may be off, by where it comes
from:

    σ² = σ²(noise) + σ²(stretches) + σ²(zeros) + σ²(tables) + σ²(bands) + σ²(places) + σ²(lengths) + σ²(air) + σ²(carriers)

Noise: the sandwich with a memory of a second on the residuals of the model that is reported, its model error included. Stretches: what
differs between every other stretch of the ramps beyond that (:mod:`veridyn.identify.fleet`). Zeros: what is left of each instrument's
zero. The others are handed-in knowledge (:mod:`veridyn.papers.car.known_2002`). Each channel's zero and each piece of knowledge is
moved by its standard deviation, the motion is made again, and the estimates answer to first order, J (WᵀW)⁻¹ Wᵀ Δr + ΔJ x. What was
recorded is brought to one band anew for another band alone: a zero passes all of them. Nothing of this needs the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, IdentificationWarning, warn
from veridyn.identify.estimate import identify
from veridyn.identify.pipeline.identified import Trace, trace
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import validate
from veridyn.identify.validation import Validation
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.car.bent import Selected, SuspensionFit
from veridyn.papers.car.budget import Budget, Weighted, asking, filtered_residuals, weighted
from veridyn.papers.car.drive import BRAKING, ENDS, RAMPS, STANDING, Campaign, inner, joined
from veridyn.papers.car.knowledge import CarKnown
from veridyn.papers.car.known_2002 import (
    SIXTEEN,
    TEN_ROWS_2002,
    groups_2002,
    informed_2002,
    informed_channels,
    informed_motion,
    moved_2002,
    selected_2002,
    true_lines,
)
from veridyn.papers.car.log import CarRecord, from_log, needed, record
from veridyn.papers.car.machine import WHEELS_2002, WeightCheck, car_2002, weight_check
from veridyn.papers.car.sensors import kind_of
from veridyn.papers.car.simulator.description import CHASSIS, Vehicle
from veridyn.progress import Progress, silent
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, prepare
from veridyn.spatial.algebra import Mat
from veridyn.spatial.inertia import INERTIAL

Record = Callable[[Experiment, CarKnown], CarRecord]
Read = Callable[[CarRecord, CarKnown], Motion]
TASK = "sensitivities to known values, paper of 2002"
CHASSIS_ROWS = TEN_ROWS_2002[:6]
COMMON = Butterworth(15.0)  # one band for all instruments, at 62.5 samples a second
LOW = Butterworth(3.125)  # of the equations: a smooth road, and nothing above the chassis' modes to be learned
HOW = Sampling(filter=LOW, trim=30)
CUT = Signals(lowpass=None, trim=ENDS)
AGAIN = replace(CUT, inspection="off")  # of a log that was looked at before
FAR_OFF = 3.0  # whole deviations beyond which an estimate is named: one in 370 by chance
FRAME_6: Mat = ((0.0, 0.0, 1.0), (-1.0, 0.0, 0.0), (0.0, -1.0, 0.0))


@dataclass(frozen=True, eq=False)
class Answers2002:
    """How the sixteen of a fit of `logs` answer to one standard deviation of what is handed in, (16,).

    `record`: log → what its instruments recorded, in one band, of which `records` are those of the fit; `read`: record → motion.
    """

    found: SuspensionFit
    logs: tuple[Experiment, ...]
    known: CarKnown
    record: Record
    read: Read
    how: Sampling
    equations: Weighted
    residuals: Array
    records: tuple[CarRecord, ...]

    @classmethod
    def of(
        cls,
        found: SuspensionFit,
        logs: Sequence[Experiment],
        known: CarKnown,
        record: Record,
        read: Read,
        how: Sampling,
    ) -> Answers2002:
        equations = weighted(found, found.model.machine, found.motions, how)
        start = filtered_residuals(found, found.motions, how, equations)
        records = tuple(record(log, known) for log in logs)
        return cls(found, tuple(logs), known, record, read, how, equations, start, records)

    @property
    def channels(self) -> tuple[str, ...]:
        """Those that the motion is made of and whose zeros may be off."""
        sensors = self.known.sensors
        return tuple(c for c in needed(self.found.model.straight) if sensors.biases[kind_of(c)] > 0.0)

    def to_zero(self, channel: str) -> Array:
        """To the zero of an instrument's channel."""
        size = self.known.sensors.biases[kind_of(channel)]
        return self._to([seen.shifted(channel, size) for seen in self.records], self.known)

    def to_item(self, item: str) -> Array:
        """To a piece of knowledge."""
        other = moved_2002(self.known, {item: 1.0})
        same = other.sensors.kinds == self.known.sensors.kinds
        return self._to(self.records if same else [self.record(log, other) for log in self.logs], other)

    def _to(self, records: Sequence[CarRecord], known: CarKnown) -> Array:
        found, model = self.found, self.found.model
        motions = [self.read(seen, known) for seen in records]
        change = filtered_residuals(found, model.prepared(motions), self.how, self.equations) - self.residuals
        _, secants = model.secants(
            found.fit.names, motions
        )  # a clearance with another zero has another line through the same force
        return (
            found.secants @ self.equations.moved(change[:, None])[:, 0] + (secants - found.secants) @ found.fit.values
        )


def budget_2002(asked: Answers2002, stretches: Array, progress: Progress = silent) -> Budget:
    """The deviations of a fit. `stretches` (16,): what varies between parts of its drives beyond noise."""
    groups = groups_2002(asked.known)
    total, done = float(len(asked.channels) + sum(len(items) for items in groups.values())), 0.0
    parts = {"noise": asked.found.sigma, "stretches": stretches}
    for group, items in {"zeros": asked.channels, **groups}.items():
        answers = []
        for item in items:
            progress(TASK, done, total)
            done += 1.0
            answers.append(asked.to_zero(item) if group == "zeros" else asked.to_item(item))
        parts[group] = np.sqrt(np.square(answers).reshape(-1, len(stretches)).sum(axis=0))
    progress(TASK, total, total)
    return Budget(asked.found.names, parts)


@dataclass(frozen=True, eq=False)
class Study2002:
    """Table 4 of paper 001 for the simulated car.

    `selected` has the model that is reported and `budget` its deviations; `printed` is the fit as the paper has it. `simple` and `cross`
    are the validations of the reported model on the ramps and on braking, `printed_cross` that of the other on braking. `traces`: drive →
    measured and predicted rows of the reported model. `truth`: of each of the sixteen.
    """

    selected: Selected
    budget: Budget
    printed: Fit
    simple: Validation
    cross: Validation
    printed_cross: Validation
    traces: Mapping[str, Trace]
    weight: WeightCheck
    truth: Mapping[str, float]

    @property
    def values(self) -> dict[str, float]:
        found = self.selected.chosen
        return {n: float(x) for n, x in zip(found.names, found.values, strict=True)}

    @property
    def sigma(self) -> dict[str, float]:
        return {n: float(s) for n, s in zip(self.budget.names, self.budget.total, strict=True)}

    @property
    def deviations(self) -> dict[str, float]:
        """Errors of the sixteen over their whole deviations."""
        values, sigma = self.values, self.sigma
        return {name: (values[name] - self.truth[name]) / sigma[name] for name in SIXTEEN}

    @property
    def printed_errors(self) -> dict[str, float]:
        """Errors of the fit as printed over the deviations of noise with memory, which were all it had."""
        f = self.printed
        return {
            n: float((x - self.truth[n]) / s)
            for n, x, s in zip(f.names, f.values, f.sigma, strict=True)
            if n in self.truth
        }

    @property
    def figures(self) -> dict[str, float]:
        z = np.abs(list(self.deviations.values()))
        chassis = {r: e for r, e in carrying(self.cross).items() if r in CHASSIS_ROWS}
        out = {
            "parameters_2002": float(len(z)),
            "share_inside_one_sigma_2002": float(np.mean(z <= 1.0)),
            "share_inside_two_sigma_2002": float(np.mean(z <= 2.0)),
            "largest_error_over_sigma_2002": float(z.max()),
            "largest_error_over_sigma_printed_2002": max(map(abs, self.printed_errors.values())),
            "selected_curved_2002": float(self.selected.chosen.model.curved),
            "weight_difference_percent": 100.0 * abs(self.weight.difference),
            "mass_error_2002_percent": 100.0 * abs(self.values["M6"] / self.truth["M6"] - 1.0),
            "cross_validation_chassis_2002_percent": 100.0 * max(chassis.values()),
        }
        for name, check in (("", self.cross), ("_printed", self.printed_cross)):
            out[f"cross_validation_suspension{name}_2002_std_percent"] = 100.0 * max(
                check[r].std_error for r in TEN_ROWS_2002[6:]
            )
            out[f"cross_validation_suspension{name}_2002_percent"] = 100.0 * max(
                check[r].relative_error for r in TEN_ROWS_2002[6:]
            )
        return out | {f"selection_{n}_2002_std_percent": 100.0 * e for n, e in self.selected.errors.items()}


def carrying(check: Validation) -> dict[str, float]:
    """Row → relative error, of the rows that carry signal: at least a hundredth of the largest force or moment."""
    rows = {r.row: r for r in check.rows}
    largest = max(r.measured_rms for r in check.rows)
    return {name: r.relative_error for name, r in rows.items() if r.measured_rms > 0.01 * largest}


def sixteen(known: CarKnown) -> Machine:
    """The car of 2002 with the sixteen of Table 4 estimated, and what was left out of it known: moments of inertia, and unsprung masses.

    Dynamometers stand between wheel and carrier, so what turns beyond them has no weight here, and bodies 9 to 20 are the carriers. Moments
    of inertia are those of paper 000, a priori.
    """
    machine = car_2002()
    p = machine.parameters
    fixed = {name: 0.0 for name in p.names if name not in SIXTEEN}
    ten = chassis_in_6(CHASSIS, float(np.mean(known.kinematics.design[2:])))
    fixed |= {f"{s}6": x for s, x in zip(INERTIAL, ten, strict=True) if f"{s}6" not in SIXTEEN}
    masses = (known.carriers[1].mass,) * 2 + (known.carriers[0].mass,) * 2
    fixed |= {f"M{j}": m for j, m in zip(WHEELS_2002, masses, strict=True)}
    return machine.with_parameters(p.known(fixed))


def with_knowledge(machine: Machine) -> Machine:
    """The car of 2002 as it is reported: the work along the wheels' paths known, the chassis' moments of inertia estimated as well."""
    return asking(informed_2002(machine), (f"{s}6" for s in INERTIAL[:6]))


def chassis_in_6(ten: tuple[float, ...], height: float) -> tuple[float, ...]:
    """Ten numbers of the chassis about its origin in frame 6: at the `height` of the rear axle, x to the right, y down, z forward."""
    XX, XY, XZ, YY, YZ, ZZ, *first, m = ten
    c = np.array(first) / m
    J = np.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]) - m * (c @ c * np.eye(3) - np.outer(c, c))
    c = c - np.array([0.0, 0.0, height])
    J = J + m * (c @ c * np.eye(3) - np.outer(c, c))
    R = np.array(FRAME_6)
    J, s = R.T @ J @ R, m * (R.T @ c)
    return (J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2], *(float(x) for x in s), m)


def true_sixteen(made: Campaign) -> dict[str, float]:
    """First moments and mass in frame 6; of each suspension off, ks and h nearest to its force over both ramps."""
    car: Vehicle = made.vehicle
    ten = dict(zip(INERTIAL, chassis_in_6(car.chassis, float(np.mean(car.suspension.design[2:]))), strict=True))
    return {f"{s}6": float(ten[s]) for s in ("MX", "MY", "MZ", "M")} | true_lines(
        joined([inner(made.drives[name].run) for name in RAMPS])
    )


def motion_2002(made: Campaign, machine: Machine, name: str) -> Motion:
    """A drive as the sixteen coordinates of the paper, sensor by joint (5.1)."""
    return from_log(machine, made.drives[name].log, made.kinematics, made.sensors, common=COMMON, signals=CUT)


def study_2002(made: Campaign, progress: Progress = silent) -> Study2002:
    """Identify from both ramps, weigh at standstill, validate on the ramps and on braking; drives named as in ``drives_2002``."""
    plain = sixteen(made.known)
    printed = identify(
        plain,
        [motion_2002(made, plain, name) for name in RAMPS],
        rows=TEN_ROWS_2002,
        settings=IdentifySettings(sampling=HOW, covariance="hac"),
        diagnose="off",
    )
    machine = with_knowledge(plain)

    def seen(log: Experiment, known: CarKnown) -> CarRecord:
        return record(machine, log, known.sensors, COMMON)

    def again(what: CarRecord, known: CarKnown) -> Motion:
        return prepare(machine, informed_channels(machine, what, known), AGAIN).motion(noise=False)

    logs = {name: made.drives[name].log for name in (*RAMPS, BRAKING)}
    motions = {name: informed_motion(machine, log, made.known, COMMON, CUT) for name, log in logs.items()}
    found = selected_2002(machine, [motions[name] for name in RAMPS], HOW)
    best = found.chosen
    asked = Answers2002.of(best, [logs[name] for name in RAMPS], made.known, seen, again, HOW)
    deviations = budget_2002(asked, found.takes.sigma, progress)
    (braking,) = best.model.prepared([motions[BRAKING]])
    driven = dict(zip((*RAMPS, BRAKING), (*best.motions, braking), strict=True))
    standing = made.drives[STANDING].log
    loads = [float(standing[f"dynamometer.{n}.fz"].values.mean()) for n in "3412"]
    unsprung = 2.0 * (made.known.carriers[0].mass + made.known.carriers[1].mass)
    mass = float(best.values[best.names.index("M6")])
    study = Study2002(
        found,
        deviations,
        printed,
        validate(best.fit, list(best.motions), settings=IdentifySettings(sampling=HOW)),
        validate(best.fit, braking, settings=IdentifySettings(sampling=HOW)),
        validate(printed, motion_2002(made, plain, BRAKING), settings=IdentifySettings(sampling=HOW)),
        {name: trace(best.fit, m, HOW) for name, m in driven.items()},
        weight_check(mass, loads, unsprung, made.vehicle.gravity),
        true_sixteen(made),
    )
    warn_of_errors(study)
    return study


def warn_of_errors(found: Study2002) -> None:
    """Name the parameters of Table 4 that are farther from the truth than FAR_OFF of their whole deviations."""
    off = {name: z for name, z in found.deviations.items() if abs(z) > FAR_OFF}
    if off:
        listed = ", ".join(f"{name} {z:+.1f}" for name, z in sorted(off.items(), key=lambda item: -abs(item[1])))
        what = "parameters of Table 4 are off by more than their deviations."
        expected = f"within {FAR_OFF:g} stated deviations of the truth"
        shown = f"{listed}; the weight at standstill differs by {100.0 * found.weight.difference:+.2f} %"
        hint = "Rely on the model of paper 000, whose budget has more terms."
        warn(IdentificationWarning, Fault(what, "paper 001: " + ", ".join(off), expected, shown, hint))
