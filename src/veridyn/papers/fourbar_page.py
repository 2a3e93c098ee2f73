"""The report of observers on the four-bar linkage: estimates beside the truth and the uncorrected model, errors, innovations, consistency.

Last stands what the thesis' correction (58) costs as it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.inference.verdict import Verdict
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.model.point_parts import MechanismParts
from veridyn.observe.filters.methods import ErrorEKF
from veridyn.observe.observation import Observation, Virtual
from veridyn.observe.pipeline import observe_with
from veridyn.papers.fourbar import SHOWN_SAMPLES, FilterScore, ObservationStudy
from veridyn.papers.requirements import Requirement, reasons_of
from veridyn.report import FILTER_WORDS, number, unit_text
from veridyn.report.blocks import Animation, Block, Figure, Key, Listing, Section, Table, Text
from veridyn.report.motion import animation_of_layers
from veridyn.report.page import page
from veridyn.report.plots import Series, curves
from veridyn.report.spectra import whiteness_figures
from veridyn.report.traces import consistency_plot, estimate_plot, innovation_plots
from veridyn.studies.result import Result
from veridyn.view.scene import mechanism_layer

OBSERVABILITY_SAMPLES = 200  # samples that observability looks at
OTHER = 3  # the colour of another observer


def observation_page(
    study: ObservationStudy,
    result: Result,
    command: str,
    title: str,
    settings: Mapping[str, str] | None = None,
    more: Sequence[Section] = (),
) -> str:
    """The whole page; `more` are sections that only this machine has."""
    note = f"Mean over {study.logs} logs that differ by their noise, from sample {study.skip + 1} on."
    sections = [
        Section(
            "Motion",
            [_animation(study), *_estimates(study)],
            "The observer's estimate, beside the true machine and the model left to itself. "
            "Everything shown is of the first log; the shaded zone is the observer's own 95 % band.",
        ),
        Section("Errors", [_errors(study), _filters(study)], note),
        Section("Innovations", _innovations(study), "Readings minus their predictions."),
        Section("Consistency", _consistency(study), "Whether the filters know how wrong they are."),
        Section("Unmeasured quantities", _virtual(study), "Virtual sensors of the chosen filter, with 95 % bands."),
        Section("Can it be seen, does it hold", _trust(study), "Observability, stability, energy and constraints."),
        *more,
    ]
    return page(title, observation_verdict(study), _keys(study), sections, result, command, settings or {})


def observation_verdict(study: ObservationStudy) -> Verdict:
    """Good when the chosen filter is white, consistent, and better than the model by itself."""
    s = study.best
    first = next(iter(study.labels))
    k = study.column(first)
    gain = study.plain_rms(first) / float(s.rms[k])
    consistent = 0.75 <= s.nees <= 1.25
    white = s.share_white >= 0.9
    requirements = (
        Requirement(gain > 1.0, f"In {first} the model left to itself is no worse.", "poor"),
        Requirement(consistent, "Its bands are not those of its errors."),
        Requirement(white, f"Innovations are coloured on {100.0 * (1.0 - s.share_white):.0f} % of the logs."),
    )
    name = FILTER_WORDS.get(s.name, s.name)
    findings = [
        f"The model left to itself is wrong by {number(study.plain_rms(first), 3)} m rms in {first}; "
        f"with the {name} it is wrong by {number(float(s.rms[k]), 3)} m.",
        f"Innovations are white on {100 * s.share_white:.0f} % of the logs.",
        f"Squared errors are {number(s.nees, 3)} times what the filter states for them (NEES per state, ideal 1).",
    ]
    may = ("Reading its bands as they stand.",) if consistent else ()
    not_ = (
        ()
        if consistent
        else (
            "Reading its bands as they stand: they are "
            + ("too narrow." if s.nees > 1.25 else "wider than they need to be."),
        )
    )
    headline = f"{name}: the observer's errors {'match' if consistent else 'do not match'} its stated bands."
    return Verdict("good", headline, tuple(findings), may, not_).with_reasons(reasons_of(requirements))


def _keys(study: ObservationStudy) -> list[Key]:
    s = study.best
    keys = [Key(f"{number(float(s.rms[study.column(l)]), 2)}", f"rms of {l}") for l in list(study.labels)[:2]]
    return [
        *keys,
        Key(number(s.nees, 3), "NEES per state (ideal 1)"),
        Key(f"{100 * s.share_white:.0f} %", "logs with white innovations"),
        Key(f"{s.step_microseconds:.0f} µs", "a step of the observer"),
    ]


def _estimates(study: ObservationStudy) -> list[Block]:
    """Coordinates, then rates, each estimate beside truth and model above its errors, with those of the thesis' filter: Figs. 14 to 21."""
    notes = (
        "The model alone leaves the picture where it turns further than the machine.",
        "Below: errors; shaded: what the filter says of itself, ±1.96 σ.",
    )
    return [_traced(study, False, "Estimates and errors", " ".join(notes)), _traced(study, True, "Rates", notes[1])]


def _traced(study: ObservationStudy, rate: bool, title: str, caption: str) -> Figure:
    t, thesis = study.truth.t, study.scores.get("error_ekf")
    true, plain = (m.qd if rate else m.q for m in (study.truth, study.plain))
    other = None if thesis is None or thesis is study.best else thesis.example
    above, below = [], []
    for label, name in study.labels.items():
        k = study.column(label)
        reading = study.best.example.virtual(Virtual(label, "rate" if rate else "coordinate", name))[label]
        value, sigma, unit = reading.values[:, 0], reading.sigma[:, 0], unit_text(reading.units[0])
        bounds, word = _range(true[:, k]), f"{label}{' rate' if rate else ''}"
        lines = [
            Series("model alone", t, _inside(plain[:, k], bounds), colour="plain"),
            Series("observer", t, value, style="thick", colour="estimate"),
            Series("truth", t, true[:, k], style="dashed", colour="truth"),
        ]
        above.append(curves(word, lines, "time, s", unit, y_range=bounds))
        errors = [Series("observer", t, value - true[:, k], band=(-1.96 * sigma, 1.96 * sigma), colour="estimate")]
        if other is not None:
            off = (other.qd if rate else other.q)[:, k] - true[:, k]
            errors.insert(0, Series("errorEKF, as in the thesis", t, off, colour=OTHER))
        size = 3.0 * max(float(np.quantile(np.abs(np.asarray(e.y)[study.skip :]), 0.99)) for e in errors)
        below.append(curves(f"error of {word}", errors, "time, s", unit, y_range=(-size, size), low=True))
    return Figure(above, title, caption, below)


def _inside(x: Array, bounds: tuple[float, float]) -> Array:
    return np.where((x >= bounds[0]) & (x <= bounds[1]), x, np.nan)


def _range(x: Array) -> tuple[float, float]:
    half = max(0.75 * float(np.ptp(x)), 1e-6)
    middle = 0.5 * float(x.max() + x.min())
    return middle - half, middle + half


def _errors(study: ObservationStudy) -> Table:
    s, rows = study.best, []
    for rate in (False, True):
        rms, largest = (s.rms_rate, s.largest_rate) if rate else (s.rms, s.largest)
        for label in study.labels:
            k = study.column(label)
            rows.append(
                (
                    f"{label}{' rate' if rate else ''}",
                    number(float(largest[k]), 3),
                    number(study.plain_largest(label, rate), 3),
                    number(float(rms[k]), 3),
                    number(study.plain_rms(label, rate), 3),
                )
            )
    return Table(
        ("coordinate", "largest, observer", "largest, model", "rms, observer", "rms, model"),
        rows,
        f"{FILTER_WORDS.get(s.name, s.name)}, in the form of the thesis' Table 2 (whose own numbers are a copy of its Table 7). SI units.",
        strong=(3,),
    )


def _filters(study: ObservationStudy) -> Table:
    labels = list(study.labels)
    rows = [
        (
            FILTER_WORDS.get(s.name, s.name),
            *(number(float(s.rms[study.column(l)]), 2) for l in labels),
            number(float(s.rms_rate[study.column(labels[-1])]), 2),
            number(s.nis, 3),
            number(s.nees, 3),
            f"{100 * s.share_white:.0f} %",
            f"{s.step_microseconds:.0f}",
        )
        for s in study.scores.values()
    ]
    columns = ("filter", *(f"rms {l}" for l in labels), f"rms {labels[-1]} rate", "NIS", "NEES", "white", "µs a step")
    return Table(
        columns,
        rows,
        "All filters on the same logs. NIS and NEES per dimension: ideal 1; above, too sure; below, too cautious. "
        "The smoother's innovations are those of the filter it goes back over.",
    )


def _innovations(study: ObservationStudy) -> list[Block]:
    tests = {
        f"{FILTER_WORDS.get(s.name, s.name)}: {output}": w
        for s in study.scores.values()
        if s.name != "smoother"
        for output, w in s.example.whiteness(study.skip).items()
    }
    own = f"Innovations, {FILTER_WORDS.get(study.chosen, study.chosen)}"
    return [*whiteness_figures(tests, "innovations"), Figure(innovation_plots(study.best.example), own)]


def _consistency(study: ObservationStudy) -> list[Block]:
    rows = [_consistent(s) for s in study.scores.values()]
    table = Table(
        ("filter", "NIS", "NEES", "logs inside their 95 % band", "NEES of the first log", "its band"),
        rows,
        "NEES of the independent coordinates and their rates. A band counts only the errors of a log that are independent of each other, "
        "as the gains of the filter, or of the smoother, leave them.",
    )
    s = study.best
    nees = s.example.nees(study.truth.q, study.truth.qd, study.skip)
    t = study.truth.t[study.skip :]
    plot = consistency_plot("NEES per state over time", t, nees.values / nees.dof)
    return [table, Figure([plot])]


def _consistent(s: FilterScore) -> tuple[str, ...]:
    low, high = s.nees_bands[0]
    return (
        FILTER_WORDS.get(s.name, s.name),
        number(s.nis, 3),
        number(s.nees, 3),
        f"{100 * s.share_inside:.0f} %",
        number(float(s.nees_logs[0]), 3),
        f"{number(float(low), 3)} to {number(float(high), 3)}",
    )


def _virtual(study: ObservationStudy) -> list[Block]:
    o, parts = study.best.example, mechanism_of(study.machine)
    point = next(p.name for p in parts.points if not p.fixed)
    wanted = [Virtual(f"acceleration of {point}", "acceleration", point)]
    wanted += [Virtual(s.name, "spring", s.name) for s in (*parts.springs, *parts.dampers)][:2]
    wanted += _joint(parts)
    t = study.truth.t[study.skip :]
    shown = [
        (component, reading.units[j], reading.values[:, j], reading.sigma[:, j])
        for reading in o.virtual(*wanted).values()
        for j, component in enumerate(reading.components)
    ]
    own = list(enumerate(zip(o.states, o.units, strict=True)))[2 * o.system.f :]
    shown += [(name, unit, o.reduced[:, j], o.sigma[:, j]) for j, (name, unit) in own]
    return [Figure([estimate_plot(name, unit, t, x[study.skip :], s[study.skip :]) for name, unit, x, s in shown])]


def _joint(parts: MechanismParts) -> list[Virtual]:
    """A pin between two bodies that nothing else is attached to, or a joint."""
    if parts.joints:
        return [Virtual(f"reaction of {parts.joints[0].name}", "reaction", parts.joints[0].name)]
    fixed = {p.name for p in parts.points if p.fixed}
    for b in parts.bodies:
        for p in b.points:
            if p not in fixed and not b.vectors and sum(p in other.points for other in parts.bodies) > 1:
                return [Virtual(f"pin {p} on {b.name}", "reaction", (b.name, p))]
    return []


def _trust(study: ObservationStudy) -> list[Block]:
    o = study.best.example
    seen = o.observability(part=slice(study.skip, study.skip + OBSERVABILITY_SAMPLES))
    loop = o.stability(study.skip)
    energy = o.energy()
    t = study.truth.t
    plots = [
        curves(
            "energy of the estimate",
            [
                Series("kinetic", t, energy[:, 0]),
                Series("of gravity", t, energy[:, 1]),
                Series("total", t, energy.sum(axis=1), style="thick"),
            ],
            "time, s",
            "J",
        ),
        curves(
            "constraints of the estimate",
            [
                Series(n, t, np.maximum(c, 1e-18))
                for n, c in zip(("position", "velocity", "acceleration"), o.constraint_errors().T)
            ],
            "time, s",
            "largest residual",
            log_y=True,
            levels={"1e-9": 1e-9},
        ),
        curves(
            "largest pole of each step",
            [Series("|eigenvalue|", t[: len(loop.radius)], loop.radius[: len(t)])],
            "time, s",
            "1",
            levels={"stable below": 1.0},
        ),
    ]
    listed = [str(e) for e in o.episodes()] or ["Every reading was used."]
    return [
        Listing(seen.summary().splitlines()),
        Text(f"Closed loop of the {FILTER_WORDS.get(study.chosen, study.chosen)}: {loop.summary()}."),
        Listing(listed),
        *(Figure([plot], plot.title.capitalize()) for plot in plots),
    ]


def _animation(study: ObservationStudy) -> Animation:
    o, system = study.best.example, natural_system(study.machine)
    layers = [
        mechanism_layer("model alone", system, study.plain.q, False, "plain"),
        mechanism_layer("truth", system, study.truth.q, False, "truth"),
        mechanism_layer("observer", system, o.q, True, "estimate"),
    ]
    return animation_of_layers(system, study.truth.t, study.truth.q, layers)


@dataclass(frozen=True, eq=False)
class PrintedCorrection:
    """The errorEKF with its corrections closed and as printed: largest |Φ| after each correction (N,), and errors of coordinates (N, n)."""

    open_closed: Array
    open_printed: Array
    error_closed: Array
    error_printed: Array


def printed_correction(study: ObservationStudy) -> PrintedCorrection:
    """The first samples of the study's first log, by the thesis' errorEKF with both corrections."""
    score = study.scores["error_ekf"]
    assert score.example.made_by is not None
    readings = score.example.made_by.readings.between(0, SHOWN_SAMPLES)
    closed, printed = (
        observe_with(replace(score.setup, method=ErrorEKF(gate=None, correction=how)), study.machine, readings)
        for how in ("closed", "velocity")
    )
    true = study.truth.q[:SHOWN_SAMPLES]
    return PrintedCorrection(_opening(closed), _opening(printed), closed.q - true, printed.q - true)


def _opening(found: Observation) -> Array:
    """The largest constraint error (N,) of positions."""
    return found.constraint_errors()[:, 0]


def fourbar_page(study: ObservationStudy, result: Result, command: str) -> str:
    """The whole page."""
    lead = (
        f"The errorEKF on the first {SHOWN_SAMPLES} samples of the first log. Equation 58 corrects dependent coordinates by the velocity "
        "problem alone; here positions are solved first."
    )
    section = Section("Correction as printed (58)", _printed_blocks(study), lead)
    return observation_page(study, result, command, "Observers on a four-bar linkage", more=[section])


def _printed_blocks(study: ObservationStudy) -> list[Block]:
    found = printed_correction(study)
    rows = [
        ("largest constraint error, m²", *(number(float(x.max()), 3) for x in (found.open_closed, found.open_printed)))
    ]
    for label in study.labels:
        k = study.column(label)
        worst = (np.abs(error[:, k]).max() for error in (found.error_closed, found.error_printed))
        rows.append(
            (f"largest error of {label}, {'rad' if label == 'phi' else 'm'}", *(number(float(x), 3) for x in worst))
        )
    last = float(np.median(found.open_printed[-SHOWN_SAMPLES // 4 :]))
    said = (
        "Once the start is forgotten corrections are small: as printed they leave constraints open by "
        f"{number(last, 2)} m² (median of the last quarter)."
    )
    return [Table(("", "positions solved", "as printed"), rows), Text(said)]
