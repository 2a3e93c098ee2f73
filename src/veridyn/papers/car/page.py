"""Everything about the car in one go, and its report.

Manoeuvres are ranked, drives made, spectra taken, and the studies of 2006 and of 2002 run. The report has both papers' tables for a
simulated car, what they rest on, what they cannot say, and the drive as a picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.files.machine.write import model_text
from veridyn.identify.settings import TWO_SIGMA_BELOW_TEN
from veridyn.inference.verdict import Verdict
from veridyn.papers.car.bent import CURVED, STRAIGHT
from veridyn.papers.car.check import Spectra, car_modes, spectra
from veridyn.papers.car.drive import (
    TRAINING,
    VALIDATION,
    Campaign,
    Excitation,
    campaign,
    campaign_2002,
    drives_2006,
    ranked,
)
from veridyn.papers.car.knowledge import CarKnown
from veridyn.papers.car.known_2002 import drawn_2002
from veridyn.papers.car.machine import TABLE_II, TEN_ROWS, car_38
from veridyn.papers.car.page_sections import (
    degrees_section,
    manoeuvres_section,
    reduction_section,
    schemes_section,
    second_section,
    spectra_section,
)
from veridyn.papers.car.sensors import sensors_2002, sensors_2006
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.run import VehicleRun
from veridyn.papers.car.study import NAMES, CarStudy, car_study
from veridyn.papers.car.study_2002 import Study2002, study_2002
from veridyn.papers.requirements import Requirement, held_out_reasons, reasons_of
from veridyn.progress import Progress, silent, staged
from veridyn.report import like, listed, number, percent, unit_text
from veridyn.report.blocks import Animation, Block, Figure, Key, Section, Table, Text
from veridyn.report.budget import budget_blocks
from veridyn.report.page import page
from veridyn.report.parameters import QuantityLine, quantity_table
from veridyn.report.plots import Series, curves
from veridyn.spatial.rotations import rot_x, rot_y, rot_z
from veridyn.studies.result import Result, fingerprint
from veridyn.view.meshes import hull
from veridyn.view.scene import CarriedSolid, Layer, Scene, scene

WHY = {
    "noise": "noise: these drives move it too little",
    "drives": "it differs from drive to drive",
    "zeros": "zeros of the instruments",
    "carriers": "inertia of the unsprung bodies, known from a drawing, looks the same",
    "tables": "the axles' tables",
    "bands": "the instruments' bands",
    "places": "the instruments' places",
    "lengths": "track and wheelbase",
    "air": "the air's other components",
}
TITLES = {
    "mx": "Roll torque mx (Fig. 6)",
    "my": "Pitch torque my (Fig. 7)",
    "mz": "Yaw torque mz (Fig. 8)",
    "fx": "Longitudinal force fx (Fig. 9)",
    "fy": "Lateral force fy (Fig. 10)",
    "fz": "Vertical force fz (Fig. 11)",
    "z1": "Suspension front left (Fig. 12)",
    "z2": "Suspension front right",
    "z3": "Suspension rear left",
    "z4": "Suspension rear right",
}
CORNERS = 10  # of either side of a wheel: few enough that it is seen to turn
WHEEL_WIDTH = 0.2  # m
FRAMES = 200


@dataclass(frozen=True, eq=False)
class CarDemonstration:
    """The studies of both papers on a simulated car. `shown` is the drive that a report animates."""

    study: CarStudy
    second: Study2002
    spectra: Spectra
    excitations: tuple[Excitation, ...]
    shown: VehicleRun
    inputs: Mapping[str, str]
    quick: bool

    @property
    def figures(self) -> dict[str, float]:
        return self.study.figures | self.second.figures

    def result(self, name: str, seed: int | None) -> Result:
        return self.study.result(name, seed=seed, quick=self.quick, inputs=self.inputs, more=self.second.figures)


def car_demonstration(rng: np.random.Generator, quick: bool = False, progress: Progress = silent) -> CarDemonstration:
    """Rank manoeuvres, drive, identify, validate. What is handed in of the car is wrong by its deviations. `quick`: shorter drives."""
    car, sensors = Vehicle(), sensors_2006()
    given = CarKnown.of(car, sensors).drawn(rng)
    made = campaign(rng, drives_2006(rng, quick), car, sensors, staged(progress, "paper of 2006"), given)
    excitations = ranked(rng, made.vehicle, 5.0 if quick else 11.0, progress)
    study = car_study(made, made.truth(TRAINING), progress=progress)
    found = spectra(made.drives[VALIDATION].log, car_modes(made.vehicle))
    then = drawn_2002(CarKnown.of(car, sensors_2002()), rng)
    older = campaign_2002(rng, quick, made.vehicle, staged(progress, "paper of 2002"), then)
    second = study_2002(older, progress)
    return CarDemonstration(study, second, found, excitations, made.drives[VALIDATION].run, _inputs(made, older), quick)


def _inputs(*campaigns: Campaign) -> dict[str, str]:
    logs = {f"log: {name}": fingerprint(d.log) for made in campaigns for name, d in made.drives.items()}
    return {"model": fingerprint(model_text(car_38()))} | logs


def car_verdict(made: CarDemonstration) -> Verdict:
    """In words: what was found, and what it is good for."""
    s, f = made.study, made.figures
    worst, published = f["worst_cross_validation_std_percent"], f["worst_cross_validation_percent"]
    share = f.get("share_inside_two_sigma", 1.0)
    inside = f"{100.0 * share:.0f} % of the true values lie within two of the stated deviations."
    reasons = reasons_of([Requirement(share >= 0.9, inside)])
    weak = [p.name for p in s.parameters if p.sigma_percent >= 10.0]
    found = Verdict(
        "good",
        f"{int(f['well_identified'])} of {int(f['parameters_estimated'])} parameters are known within 10 %, model error included.",
        (
            f"On a drive not used for the fit, the model predicts every row within {percent(worst)} % of its standard deviation "
            f"({percent(published)} % by ‖r‖/‖y‖, the measure of the papers).",
            inside,
            f"Chassis mass within {percent(f['mass_error_percent'])} %, moments of inertia within "
            f"{percent(f['inertia_error_percent'])} %, stiffnesses within {percent(f['stiffness_error_percent'])} %.",
        ),
        (
            "Predicting chassis forces up to 3 Hz and suspension forces up to 20 Hz, in drives like these.",
            "Comparing configurations of this car: load, springs, bars.",
        ),
        (
            f"Reading meaning into {listed(weak)}: their deviations are too large."
            if weak
            else "Nothing is excluded by deviations.",
            "Dampers and springs far outside the travel of these drives: the numbers are secants.",
        ),
    )
    return found.with_reasons([*reasons, *held_out_reasons(s.selected.chosen.fit, s.check)])


def car_page(made: CarDemonstration, result: Result, command: str) -> str:
    """One HTML file."""
    f = result.figures
    keys = (
        Key(
            f"{int(f['well_identified'])} / {int(f['parameters_estimated'])}",
            "parameters with σ below 10 %, model error included",
        ),
        Key(
            f"{percent(f['worst_cross_validation_std_percent'])} %",
            f"of the standard deviation: worst row on the other drive ({percent(f['worst_cross_validation_percent'])} % by ‖r‖/‖y‖)",
        ),
        Key(f"{percent(f['mass_error_percent'])} %", "error of the chassis mass"),
        Key(f"{100.0 * f['share_inside_two_sigma']:.0f} %", "of the true values lie within 2σ"),
        Key(f"{f['real_time_factor']:.0f} ×", "faster than real time: the simulator"),
    )
    sections = (
        _drive(made),
        _forces(made.study),
        _table_ii(made.study),
        _budget(made.study),
        reduction_section(made.study),
        spectra_section(made.spectra),
        schemes_section(made.study),
        degrees_section(made.study),
        manoeuvres_section(made.excitations),
        second_section(made.second),
    )
    settings = {
        "chassis rows": "zero-phase Butterworth, 3.125 Hz, columns and measurements alike",
        "suspension rows": "the same at 20 Hz, projected on the wheels' paths",
        "instruments": "each one's own band divided out, one band of 40 Hz for all",
        "deviations": "noise with memory, drive to drive, zeros of instruments, and every known value that is given",
    }
    return page("Identification of a car", car_verdict(made), keys, sections, result, command, settings)


def _drive(made: CarDemonstration) -> Section:
    moving = car_scene(made.shown, f"The drive it is checked on: {made.shown.manoeuvre}")
    text = (
        "A detailed car is simulated: nonlinear springs, dampers and bars, wheels on curved paths, an engine on soft mounts, tyres by the "
        "Magic Formula, air with six components, a rough road of class C. It shares no equations with the models that are identified."
    )
    return Section("The drive", (Animation(moving, "Turn it with the mouse or a finger."), Text(text)))


def _forces(s: CarStudy) -> Section:
    t = s.traces["validation"]
    plots = []
    for row, title in TITLES.items():
        k = t.rows.index(row)
        used = t.used[:, k]
        x, y, e = t.t[used], t.measured[used, k], t.residual[used, k]
        series = [
            Series("measured", x, y, colour="measured"),
            Series("measured less predicted", x, e, "dashed", colour=1),
        ]
        plots.append(curves(title, series, "time, s", unit_text(t.units[k])))
    blocks: list[Block] = [
        Figure(plots[:6], "The six rows of the chassis"),
        Figure(plots[6:], "The four rows of the suspensions"),
    ]
    rows = [
        (
            row,
            number(s.check[row].measured_rms, 4),
            number(s.check[row].measured_std, 3),
            number(s.check[row].rms, 3),
            percent(100.0 * s.check[row].std_error),
            percent(100.0 * s.check[row].relative_error),
            percent(100.0 * s.plain.check[row].relative_error),
            percent(100.0 * s.reduced.check[row].relative_error),
            percent(100.0 * s.schemes[0].check[row].relative_error),
        )
        for row in TEN_ROWS
    ]
    head = (
        "row",
        "measured rms",
        "std",
        "rms error",
        "% of std",
        "‖r‖/‖y‖ %",
        "paper's rows, 38 dof",
        "20 dof",
        "paper's filters",
    )
    note = (
        "All rows on that drive, N and N·m. The suspensions carry the car, so ‖r‖/‖y‖, the measure of the paper, divides by a static load; "
        "the share of the standard deviation does not. The last three columns are ‖r‖/‖y‖ in percent."
    )
    table = Table(head, rows, note, strong=(4,))
    intro = f"Cross-validation as in Figures 6 to 12 of the 2006 paper, on {VALIDATION} at 110 km/h over another road."
    return Section("Forces on a drive not used for the fit", (table, *blocks), intro)


def _table_ii(s: CarStudy) -> Section:
    rows = [
        QuantityLine(
            *(p.name, p.unit, p.value, p.sigma, TABLE_II[p.name].a_priori),
            truth=p.truth,
            more=(like(s.plain.values[p.name], p.sigma), like(s.reduced.values[p.name], p.sigma)),
        )
        for p in s.parameters
    ]
    caption = "Tables II and IV in one: a priori, 38 and 20 degrees of freedom."
    more = ("38 dof, paper's rows", "20 dof")
    accepted, strict = len(s.accepted()), len(s.accepted(TWO_SIGMA_BELOW_TEN))
    gone = f" Zero would serve as well for {listed(s.inessential)}." if s.inessential else ""
    text = (
        f"{accepted} parameters pass σ % < 10, the rule of section VII.A; {strict} pass 2σ % < 10, that of IV.B; the paper has 26 and "
        f"23.{gone} The truth of a spring, damper or bar that is not straight is its best straight line over the travel of the drives."
    )
    weak = [p for p in s.parameters if p.sigma_percent >= 10.0]
    why = [(p.name, percent(p.sigma_percent), _why(s, p.name)) for p in weak]
    blocks: list[Block] = [
        quantity_table(rows, caption=caption, percents=True, value="38 dof", more=more),
        Text(text),
    ]
    if why:
        blocks.append(Table(("parameter", "σ %", "why"), why, "What could not be identified, and why.", left=(2,)))
    return Section("The parameters", blocks)


def _why(s: CarStudy, name: str) -> str:
    parts = s.budget.of(name)
    most = max(parts, key=lambda source: parts[source])
    typical = float(s.fit.described.parameters.typical[s.fit.described.parameters.index(name)])
    small = abs(s.value(name)) < 0.1 * typical
    return f"{WHY[most]}" + ("; and the value itself is small" if small else "")


def _budget(s: CarStudy) -> Section:
    straight = s.selected.of(curved=False)
    rows = []
    for name in NAMES:
        size, sigma = abs(s.value(name)) or 1.0, s.sigma(name)
        parts = (*s.budget.of(name).values(), sigma)
        other = like(float(straight.values[straight.names.index(name)]), sigma)
        rows.append(
            (name, *(percent(100.0 * x / size) for x in parts), other, like(s.truth.get(name, math.nan), sigma))
        )
    errors = s.selected.errors
    variation = ", ".join(f"{kind} {ratio:.1f}" for kind, ratio in s.selected.takes.ratio.items())
    text = (
        f"Suspensions as curves predict a training drive that they did not learn from to {percent(100.0 * errors[CURVED])} % of the "
        f"standard deviation of its rows, straight ones to {percent(100.0 * errors[STRAIGHT])} %: the {s.selected.name} model is reported, "
        "its parameters being the straight lines nearest to the curves, and the other one is the comparison. The drive of the validation "
        "took no part in this choice. Noise allows for residuals with a memory of a second. Drives: what differs between the drives beyond "
        f"it (estimates differ by so many of their stated deviations: {variation}). Zeros: what is left of every instrument's zero, "
        "from its data sheet. The others are known values, each with a standard deviation and, in this simulation, each wrong by about as "
        "much: tables of the axles 5 %, their compliance 20 %, bands of the instruments 2 %, places 5 to 10 mm, lengths 2 mm, the "
        "air 10 %, a carrier's centre 20 mm and moments 30 %. None of this uses the truth."
    )
    head = ("parameter", *s.budget.parts, "all", "straight model", "truth")
    names = [n for n in NAMES if n in s.budget.names]
    at = [s.budget.names.index(n) for n in names]
    bars = budget_blocks(names, {source: x[at] for source, x in s.budget.parts.items()})
    table = Table(
        head, rows, "Standard deviations in percent of the value, by where they come from.", strong=(len(head) - 3,)
    )
    return Section("How far the numbers may be off", (Text(text), *bars, table))


def car_scene(run: VehicleRun, title: str, frames: int = FRAMES) -> Scene:
    """A drive, seen from beside the car; the ground below the chassis origin leaves a trail on its way."""
    kept = np.unique(np.linspace(0, len(run) - 1, frames).astype(int))
    R, p = run.attitude[kept], run.position[kept]
    places, solids = [np.broadcast_to([0.0, 0.0, -0.6], p.shape)], []
    for corners, faces in _body(run):
        middle = corners.mean(axis=0)
        solids.append(CarriedSolid(len(places), corners - middle, faces, R))
        places.append(np.broadcast_to(middle, p.shape))
    turn = 2.0 * np.pi * np.arange(CORNERS) / CORNERS
    side = np.array([0.0, 0.5 * WHEEL_WIDTH, 0.0])
    for i in range(4):
        centre, W = _wheel(run, kept, i)
        radius = float(run.vehicle.packed().tyres.radius[i])
        ring = radius * np.column_stack([np.sin(turn), np.zeros(CORNERS), np.cos(turn)])
        wheel = hull("wheel", np.concatenate([ring + side, ring - side]))
        assert wheel is not None  # a ring has an extent
        solids.append(CarriedSolid(len(places), wheel.vertices, wheel.faces, R @ W))
        places.append(centre)
    points = p[:, None] + np.einsum("nij,nkj->nki", R, np.stack(places, axis=1))
    layer = Layer("car", points, (), trails=[0], solids=solids)
    return scene(run.t[kept], [layer], title, len(kept), follow=True, view=(-50.0, 18.0))


def _body(run: VehicleRun) -> list[tuple[Array, NDArray[np.int64]]]:
    """Body and cabin in slices across the car: corners (12, 3) in the chassis frame, and the faces that are seen from outside.

    A player draws faces by the depth of their middle, which those of short slices have right.
    """
    half, low, high, roof, L = 0.86, -0.15, 0.35, 0.85, run.vehicle.wheelbase
    tops = [(-0.9, 0.75, high), (-0.4, 0.75, high), (0.2, 0.6, roof), (0.9, 0.6, roof), (1.55, 0.6, roof)]
    tops += [(2.25, 0.75, high), (L + 0.85, 0.75, high)]
    outlines = [
        [(x, y, z) for y, z in ((half, low), (half, high), (w, top), (-w, top), (-half, high), (-half, low))]
        for x, w, top in tops
    ]
    around = [(k, (k + 1) % 6) for k in range(6)]
    side = [face for a, b in around for face in ((a, b, b + 6), (a, b + 6, a + 6))]
    back = [(0, k + 1, k) for k in range(1, 5)]
    front = [(6, k + 6, k + 7) for k in range(1, 5)]
    slices = []
    for k, pair in enumerate(pairwise(outlines)):
        faces = side + (back if k == 0 else []) + (front if k == len(outlines) - 2 else [])
        slices.append((np.array([*pair[0], *pair[1]]), np.array(faces, dtype=np.int64)))
    return slices


def _wheel(run: VehicleRun, kept: NDArray[np.intp], i: int) -> tuple[Array, Array]:
    """Centre (n, 3) of wheel i in the chassis frame, and its rotation Rz Rx Ry (n, 3, 3) by steering, camber and its own angle."""
    x, y = run.vehicle.places()[i]
    place, z = run.wheel_place[0][kept, i], run.clearance[0][kept, i]
    centre = np.stack([x + place[:, 1], y + place[:, 0], z], axis=1)
    toe, camber = place[:, 2], place[:, 3]
    turns = np.array(
        [
            rot_z(a) @ rot_x(b) @ rot_y(c)
            for a, b, c in zip(toe.tolist(), camber.tolist(), run.wheel_angle[0][kept, i].tolist(), strict=True)
        ]
    )
    return centre, turns
