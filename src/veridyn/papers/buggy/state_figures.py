"""Figs. 35 to 76 of paper 003: each state's estimate beside the truth and the model left to itself, above the errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from veridyn.arrays import Array
from veridyn.papers.buggy.machine import CORNERS
from veridyn.papers.buggy.observers import UNITS, Scored
from veridyn.report.blocks import Figure
from veridyn.report.plots import Plot, Series, curves

STATES = {  # the fourteen quantities of Tables 5 and 6
    "x": "base.x",
    "y": "base.y",
    "xd": "base.vx",
    "yd": "base.vy",
    **{f"wheel_angle {c}": f"spin_{c}" for c in CORNERS},
    **{f"wheel_speed {c}": f"spin_{c}_dot" for c in CORNERS},
    "yaw": "base.yaw",
    "yaw_rate": "base.wz",
}
OTHER = 3  # the colour of another observer
CURVE_POINTS = 900
CAPTION = "Above: estimate, truth and model left to itself. Below: errors; shaded: what the best observer says of itself, ±1.96 σ."


def state_figure(
    title: str,
    true: Array,
    plain: Scored,
    best: Scored,
    others: Mapping[str, Scored],
    states: Mapping[str, str] = STATES,
    after: float = 0.0,
    caption: str = CAPTION,
) -> Figure:
    """`true`: the states (N, 2f) that `plain` names, at its times. Errors from `after` seconds on decide how high their plots are."""
    above, below = [], []
    for label, state in states.items():
        quantity, _, corner = label.partition(" ")
        above.append(value_plot(true[:, plain.names.index(state)], plain, best, state, quantity, corner))
        below.append(error_plot(best, others, state, quantity, corner, low=True, after=after))
    return Figure(above, title, caption, below)


def value_plot(true: Array, plain: Scored, best: Scored, state: str, quantity: str, corner: str = "") -> Plot:
    """A state (N,) along a drive, by the best observer and by the model left to itself."""
    seen = slice(None, None, max(1, len(plain.t) // CURVE_POINTS))
    whole, off, alone = true, best.of(state)[0], plain.of(state)[0]
    if quantity == "yaw":  # round and round
        whole, alone = np.unwrap(true), np.unwrap(alone)
    along = np.interp(best.t, plain.t, whole) + off
    own = slice(None, None, max(1, len(best.t) // CURVE_POINTS))
    lines = [
        Series("model alone", plain.t[seen], (whole + alone)[seen], colour="plain"),
        Series("best observer", best.t[own], along[own], style="thick", colour="estimate"),
        Series("truth", plain.t[seen], whole[seen], style="dashed", colour="truth"),
    ]
    return curves(_title(quantity, corner), lines, "time, s", UNITS[quantity])


def error_plots(score: Scored, other: Scored, states: Mapping[str, str]) -> list[Plot]:
    """Errors of states by the names of their quantities."""
    parted = [(state, *label.partition(" ")[::2]) for label, state in states.items()]
    return [error_plot(score, {"errorEKF": other}, state, quantity, corner) for state, quantity, corner in parted]


def error_plot(
    score: Scored,
    others: Mapping[str, Scored],
    state: str,
    quantity: str,
    corner: str = "",
    low: bool = False,
    after: float = 0.0,
) -> Plot:
    """The error of a state along a drive: the best observer's with its band, and others' behind it. `corner`: of which wheel it is."""
    error, sigma = score.of(state)
    seen = slice(None, None, max(1, len(score.t) // CURVE_POINTS))
    sizes, lines = [float(np.abs(error[score.t >= after]).max())], []
    for k, (word, other) in enumerate(others.items()):
        rough, _ = other.of(state)
        apart = slice(None, None, max(1, len(other.t) // CURVE_POINTS))
        sizes.append(float(np.quantile(np.abs(rough[other.t >= after]), 0.99)))
        lines.append(Series(word, other.t[apart], rough[apart], colour=OTHER + k))
    size = 1.1 * max(sizes)
    half = np.minimum(1.96 * sigma[seen], size)  # a band that is wider than the picture ends at its edge
    best = Series("best observer", score.t[seen], error[seen], style="thick", band=(-half, half), colour="estimate")
    title = _title(quantity, corner)
    return curves(title, [*lines, best], "time, s", UNITS[quantity], y_range=(-size, size), low=low)


def _title(quantity: str, corner: str) -> str:
    return f"{quantity} {corner}".strip().replace("_", " ")
