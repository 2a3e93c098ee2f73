"""The report of observers on a mechanism: estimates beside the truth and the uncorrected model, errors, innovations, consistency.

The page of an observation of one log is common to all machines; :class:`ObservedParts` is what each kind gives to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.natural.equations.system import NaturalSystem, natural_system
from veridyn.model.point_parts import MechanismParts
from veridyn.observe.observation import Observation, Virtual
from veridyn.report.blocks import Animation, Block, Figure, Key, Listing, Section, Table, Text, Verdict
from veridyn.report.page import page
from veridyn.report.plots import Plot, Series, curves
from veridyn.report.words import number, unit_text
from veridyn.signals.spectrum import Whiteness
from veridyn.studies.observation import FilterScore, ObservationStudy
from veridyn.studies.result import Result
from veridyn.view.scene import Layer, mechanism_layer, rail_ends, scene, with_rails

WORDS = {
    "linear": "linear Kalman",
    "error_ekf": "errorEKF",
    "error_ekf_force": "errorEKF with forces",
    "ekf": "EKF, exact derivatives",
    "ukf": "UKF",
    "smoother": "smoother (RTS)",
}
MAX_CURVE_POINTS = 1500  # points of a curve
OBSERVABILITY_SAMPLES = 200  # samples that observability looks at


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
    grade = "good" if consistent and white and gain > 1.0 else "fair" if gain > 1.0 else "poor"
    name = WORDS.get(s.name, s.name)
    findings = [
        f"The model left to itself is wrong by {number(study.plain_rms(first), 3)} m rms in {first}; "
        f"with the {name} it is wrong by {number(float(s.rms[k]), 3)} m.",
        f"Innovations are white on {100 * s.share_white:.0f} % of the logs.",
        f"Squared errors are {number(s.nees, 3)} times what the filter states for them (NEES per state, ideal 1).",
    ]
    may = ("Its bands may be taken as they stand.",) if consistent else ()
    not_ = (
        () if consistent else ("Its bands are " + ("too narrow." if s.nees > 1.25 else "wider than they need to be."),)
    )
    headline = f"{name}: the observer's errors {'match' if consistent else 'do not match'} its stated bands."
    return Verdict(grade, headline, tuple(findings), may, not_)


def _keys(study: ObservationStudy) -> list[Key]:
    s = study.best
    keys = [Key(f"{number(float(s.rms[study.column(l)]), 2)}", f"rms of {l}") for l in list(study.labels)[:2]]
    return [
        *keys,
        Key(number(s.nees, 3), "NEES per state (ideal 1)"),
        Key(f"{100 * s.share_white:.0f} %", "logs with white innovations"),
        Key(f"{s.step_microseconds:.0f} µs", "a step of the observer"),
    ]


def thin(x: Array) -> Array:
    """At most about as many samples as a curve needs."""
    return x[:: max(1, len(x) // MAX_CURVE_POINTS)]


def _estimates(study: ObservationStudy) -> list[Block]:
    o, t = study.best.example, thin(study.truth.t)
    plots, errors = [], []
    for label, name in study.labels.items():
        k = study.column(label)
        value, sigma = o.coordinate(name)
        plots.append(
            curves(
                label,
                [
                    Series(
                        "model alone",
                        t,
                        _inside(thin(study.plain.q[:, k]), _range(study.truth.q[:, k])),
                        colour="plain",
                    ),
                    Series("observer", t, thin(value), style="thick", colour="estimate"),
                    Series("truth", t, thin(study.truth.q[:, k]), style="dashed", colour="truth"),
                ],
                "time, s",
                label,
                y_range=_range(study.truth.q[:, k]),
            )
        )
        off = value - study.truth.q[:, k]
        band = (thin(-1.96 * sigma), thin(1.96 * sigma))
        size = float(3.0 * np.quantile(np.abs(off[study.skip :]), 0.99))
        errors.append(
            curves(
                f"error of {label}",
                [Series("observer", t, thin(off), band=band, colour="estimate")],
                "time, s",
                label,
                y_range=(-size, size),
                low=True,
            )
        )
    return [
        Figure(plots, "Estimates", "The model alone leaves the picture where it turns further than the machine."),
        Figure(errors, "Errors of the estimate", "Shaded: what the filter says of itself, ±1.96 σ."),
    ]


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
        f"{WORDS.get(s.name, s.name)}, in the form of the thesis' Table 2 (whose own numbers are a copy of its Table 7). SI units.",
        strong=(3,),
    )


def _filters(study: ObservationStudy) -> Table:
    labels = list(study.labels)
    rows = [
        (
            WORDS.get(s.name, s.name),
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
    blocks: list[Block] = []
    plots = []
    for s in study.scores.values():
        if s.name == "smoother":
            continue
        for output, w in s.example.whiteness(study.skip).items():
            plots.append(whiteness_plot(f"{WORDS.get(s.name, s.name)}: {output}", w))
    blocks.append(
        Figure(
            plots,
            "Are they white?",
            "Shaded: the band of Kolmogorov and Smirnov, 95 %. Outside, the model's errors have a colour.",
        )
    )
    drawn = innovation_plots(study.best.example)
    blocks.append(Figure(drawn, f"Innovations, {WORDS.get(study.chosen, study.chosen)}"))
    return blocks


def whiteness_plot(title: str, w: Whiteness) -> Plot:
    """The cumulative periodogram with the band that white noise stays in."""
    zone = (w.expected - w.band, w.expected + w.band)
    return curves(
        title,
        [
            Series("cumulative periodogram", w.frequency, w.cumulative, colour=0),
            Series("white", w.frequency, w.expected, style="dashed", colour=1, band=zone),
        ],
        "frequency, Hz",
        "share of power",
        y_range=(-0.1, 1.1),
    )


def innovation_plots(o: Observation) -> list[Plot]:
    """The innovations of each output that was heard, with the band that the filter expects of them."""
    e, drawn = o.estimates, []
    table = getattr(o.system, "table", None)  # of sensors; one's own equations have none, and no units
    units = dict(zip(table.names, table.units, strict=True)) if table is not None else {}
    for j, output in enumerate(e.outputs):
        sigma = np.sqrt(e.innovation_variances[:, j])
        if not np.isfinite(sigma).any():
            continue
        band = (thin(-1.96 * sigma), thin(1.96 * sigma))
        size = 6.0 * float(np.nanmedian(sigma))
        seen = Series("innovation", thin(e.t), thin(e.innovations[:, j]), style="dots", colour=0, band=band)
        drawn.append(curves(output, [seen], "time, s", unit_text(units.get(output, "")), y_range=(-size, size)))
    return drawn


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
    t = thin(study.truth.t[study.skip :])
    plot = curves(
        "NEES per state over time",
        [Series("NEES", t, thin(np.maximum(nees.values / nees.dof, 1e-4)), colour=0)],
        "time, s",
        "NEES",
        log_y=True,
        levels={"ideal": 1.0},
    )
    return [table, Figure([plot])]


def _consistent(s: FilterScore) -> tuple[str, ...]:
    low, high = s.nees_bands[0]
    return (
        WORDS.get(s.name, s.name),
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
    t, plots = thin(study.truth.t[study.skip :]), []
    for reading in o.virtual(*wanted).values():
        for j, component in enumerate(reading.components):
            low, high = (thin(b[study.skip :, j]) for b in reading.band())
            plots.append(
                curves(
                    component,
                    [Series("estimate", t, thin(reading.values[study.skip :, j]), band=(low, high), colour="estimate")],
                    "time, s",
                    unit_text(reading.units[j]),
                )
            )
    for j, name in list(enumerate(o.states))[2 * o.system.f :]:
        value, sigma = o.reduced[study.skip :, j], o.sigma[study.skip :, j]
        band = (thin(value - 1.96 * sigma), thin(value + 1.96 * sigma))
        plots.append(
            curves(
                name,
                [Series("estimate", t, thin(value), band=band, colour="estimate")],
                "time, s",
                unit_text(o.units[j]),
            )
        )
    return [Figure(plots)]


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
    t = thin(study.truth.t)
    plots = [
        curves(
            "energy of the estimate",
            [
                Series("kinetic", t, thin(energy[:, 0])),
                Series("of gravity", t, thin(energy[:, 1])),
                Series("total", t, thin(energy.sum(axis=1)), style="thick"),
            ],
            "time, s",
            "J",
        ),
        curves(
            "constraints of the estimate",
            [
                Series(n, t, thin(np.maximum(c, 1e-18)))
                for n, c in zip(("position", "velocity", "acceleration"), o.constraint_errors().T)
            ],
            "time, s",
            "largest residual",
            log_y=True,
            levels={"1e-9": 1e-9},
        ),
        curves(
            "largest pole of each step",
            [Series("|eigenvalue|", t[: len(thin(loop.radius))], thin(loop.radius)[: len(t)])],
            "time, s",
            "1",
            levels={"stable below": 1.0},
        ),
    ]
    listed = [str(e) for e in o.episodes()] or ["Every reading was used."]
    return [
        Listing(seen.summary().splitlines()),
        Text(f"Closed loop of the {WORDS.get(study.chosen, study.chosen)}: {loop.summary()}."),
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
    return _moving(system, study.truth.t, study.truth.q, layers)


def mechanism_animation(machine: NaturalSystem, t: Array, q: Array, label: str) -> Animation:
    """One motion of a mechanism."""
    return _moving(machine, t, q, [mechanism_layer(label, machine, q, False)])


def _moving(machine: NaturalSystem, t: Array, q: Array, layers: Sequence[Layer]) -> Animation:
    plane = machine.mechanism.dimension == 2
    up, view = ("y", (0.0, 0.0)) if plane else ("z", (-60.0, 20.0))
    rails = rail_ends(machine, q, 0.25 * float(np.ptp(layers[0].points[0], axis=0).max()))
    drawn = [with_rails(layers[0], rails), *layers[1:]]
    caption = "Cubes: bodies of a single point, their volumes as their masses." if layers[0].solids else ""
    return Animation(scene(t, drawn, machine.mechanism.name, up=up, view=view), caption)


class ObservedParts(NamedTuple):
    """What a page of an observation is made of beside limits, innovations and consistency, which all have: sections `before` and `after`
    those, key figures, settings, and the observation, if there is one, from sample `skip` on."""

    name: str
    observation: Observation | None
    skip: int
    keys: list[Key]
    before: list[Section]
    after: list[Section]
    settings: dict[str, str]
