"""The figures of paper.md: ``make paper``, or ``python paper/figures.py [--logs N] [--out FOLDER]``.

prediction.svg: torque of a joint on a motion that was not used for the fit. calibration.svg: errors of base parameters over their stated
deviations, each log with priors, a motion and noise of its own, beside the standard normal density. Random numbers are seeded.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import veridyn as vd
from veridyn.identify.result import Fit
from veridyn.machines.arm import ArmDemo, demonstration
from veridyn.report.plots import HEIGHT, WIDTH, Axis, axis_over, line

HERE = Path(__file__).parent
SEED = 2026
LEFT, TOP, BELOW = 80.0, 10.0, 50.0  # room for labels, in units of the canvas
INK, BLUE, GREY = "#22262b", "#0b5c8c", "#8d8981"  # those of reports
EDGES = np.linspace(-4.0, 4.0, 33)
ROW = 1  # the second joint, which carries most

Array = NDArray[np.float64]


def fitted(demo: ArmDemo) -> Fit:
    """The arm's parameters from its training log."""
    motion = vd.motion(demo.model, demo.training, demo.signals)
    settings = vd.IdentifySettings(sampling=demo.sampling)
    return vd.identify(demo.model, motion, "wls", settings, rows="all", diagnose="off")


def scores(fit: Fit, truth: vd.Machine) -> Array:
    """Errors of base parameters over their deviations."""
    return (fit.values - fit.base.reduce(truth.parameters.values)) / fit.sigma


def drawing(
    x: Axis, y: Axis, shapes: Sequence[str], x_label: str, y_label: str, legend: Sequence[tuple[str, str]]
) -> str:
    """An SVG of its own: paths of :mod:`veridyn.report.plots` inside axes with labels."""
    text = f'font-family="sans-serif" font-size="16" fill="{INK}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20:g} {TOP + HEIGHT + BELOW:g}">']
    parts.append(f'<rect width="100%" height="100%" fill="#fff"/><g transform="translate({LEFT:g},{TOP:g})" {text}>')
    for tick in y.ticks(5, upwards=True):
        at = HEIGHT * tick.percent / 100.0
        parts.append(f'<path d="M0,{at:.1f}h{WIDTH:g}" stroke="#e2ded6"/>')
        parts.append(f'<text x="-8" y="{at + 5:.1f}" text-anchor="end">{tick.label}</text>')
    for tick in x.ticks(8):
        at = WIDTH * tick.percent / 100.0
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT + 20:g}" text-anchor="middle">{tick.label}</text>')
    parts += shapes
    for k, (label, colour) in enumerate(legend):
        parts.append(f'<path d="M{WIDTH - 190:g},{16 + 22 * k}h24" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{WIDTH - 158:g}" y="{21 + 22 * k}">{label}</text>')
    parts.append(f'<text x="{WIDTH / 2:g}" y="{HEIGHT + 42:g}" text-anchor="middle">{x_label}</text>')
    parts.append(f'<text transform="translate(-58,{HEIGHT / 2:g}) rotate(-90)" text-anchor="middle">{y_label}</text>')
    return "\n".join([*parts, "</g></svg>"]) + "\n"


def curve(x: Array, y: Array, axes: tuple[Axis, Axis], colour: str, width: float) -> str:
    return f'<path d="{line(x, y, *axes)}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>'


def prediction(demo: ArmDemo) -> str:
    """Measured and predicted torque of a joint on the motion that validates."""
    motion = vd.motion(demo.model, demo.validation, demo.signals)
    assert motion.forces is not None  # the demonstration has a torque sensor in every joint
    t, measured = motion.t, motion.forces[:, ROW]
    predicted = fitted(demo).predict(motion)[:, ROW]
    axes = (axis_over(t, margin=0.0), axis_over(measured, predicted, zero=True))
    shapes = [curve(t, measured, axes, GREY, 4.0), curve(t, predicted, axes, BLUE, 1.6)]
    return drawing(*axes, shapes, "time, s", "torque of joint 2, N·m", [("measured", GREY), ("predicted", BLUE)])


def calibration(logs: int) -> tuple[str, Array]:
    """The histogram of the scores of so many logs, and the scores."""
    found = []
    for seed in range(logs):
        demo = demonstration(np.random.default_rng([SEED, seed]), quick=True)
        found.append(scores(fitted(demo), demo.truth))
    z = np.concatenate(found)
    density = np.histogram(np.clip(z, EDGES[0], EDGES[-1]), EDGES, density=True)[0]
    at = np.linspace(EDGES[0], EDGES[-1], 200)
    normal = np.exp(-0.5 * at**2) / np.sqrt(2.0 * np.pi)
    axes = (Axis(EDGES[0], EDGES[-1]), axis_over(density, normal, zero=True))
    steps = curve(np.repeat(EDGES, 2)[1:-1], np.repeat(density, 2), axes, BLUE, 2.5)
    shapes = [curve(at, normal, axes, GREY, 4.0), steps]
    legend = [("standard normal", GREY), (f"{logs} logs", BLUE)]
    return drawing(*axes, shapes, "error over stated deviation", "density", legend), z


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the figures of paper.md.")
    parser.add_argument("--logs", type=int, default=20, help="logs of the calibration")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the figures")
    given = parser.parse_args()
    demo = demonstration(np.random.default_rng(SEED))
    (given.out / "prediction.svg").write_text(prediction(demo), encoding="utf-8")
    text, z = calibration(given.logs)
    (given.out / "calibration.svg").write_text(text, encoding="utf-8")
    inside = [float(np.mean(np.abs(z) < k)) for k in (1, 2)]
    print(f"{len(z)} errors: {inside[0]:.3f} within one deviation, {inside[1]:.3f} within two (normal: .683, .954)")


if __name__ == "__main__":
    main()
