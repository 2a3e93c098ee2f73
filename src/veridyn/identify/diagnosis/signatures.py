"""Small damage of a log that fits too well to show in the size of the residual, found by the trace that it leaves in the equations.

A force with another scale, a delay, an offset or a drift, and a position with another zero, each add a column to the equations
(:mod:`veridyn.identify.diagnosis.signature_samples`), which is tested beside the columns of the parameters
(:mod:`veridyn.identify.diagnosis.score_test`). Of several that are significant the one with the largest score is taken into the
regressor, and the others are asked again. A damage that moves no parameter by `MIN_SHIFT_SIGMAS` is reported only beside another of its
coordinate. A damage whose column the parameters explain whole cannot be found by any test; it moves them, and leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Fault
from veridyn.identify.diagnosis.alternatives import Mistake
from veridyn.identify.diagnosis.score_test import Projected, limit_of
from veridyn.identify.diagnosis.signature_samples import Samples, samples_of
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree

Array = NDArray[np.float64]
FALSE_ALARMS = 0.003  # share of logs in order, over all signatures of a log together (chosen)
MIN_SHIFT_SIGMAS = 3.0  # by which a damage must move some parameter to be reported (chosen)
MAX_DAMAGES = 4  # that are looked for in one log
EXACT_SHARE = 1e-5  # of a row's force: a smaller residual is rounding, not noise
INDISTINCT = 9.0  # of z²: signatures that explain that much less than the best are reported beside it (chosen)
LEAST_MEMORY, MOST_MEMORY = 0.1, 0.98  # correlations of neighbouring residuals that are taken out (chosen)
APART = (
    2.0  # rms of a row's residual by which its force, as a column, must differ from what parameters explain (chosen)
)
MIN_SAMPLES_PER_COLUMN = 3.0  # equations for each parameter, below which residuals say little


@dataclass(frozen=True, kw_only=True)
class Damage:
    """What was found: its `size` c with deviation `sigma` and score `z`; it shifts the parameter `moved` by `shift` deviations."""

    kind: str
    where: str
    size: float
    sigma: float
    z: float
    shift: float
    moved: str


def find_damages(fit: Fit, motions: Sequence[Motion], sampling: Sampling) -> list[list[Damage]]:
    """Damages that the residual of a fit shows, the clearest first; each with those that explain it nearly as well."""
    rows = [r.row for r in fit.rows if r.row in fit.tree.coordinates]
    if not rows or not len(fit.values):
        return []
    x = samples_of(fit, motions, rows, sampling)
    every = [(kind, where, column) for kind, where, column in x.signatures(fit.values) if np.any(column[x.used])]
    if (
        not every
        or not x.measured.any()
        or np.count_nonzero(x.used) < MIN_SAMPLES_PER_COLUMN * x.W.shape[2]
        or _exact(fit, x)
    ):
        return []
    made = prepared(fit, x, np.stack([s[2] for s in every], axis=2))
    if made is None:
        return []
    p, S, effects = made
    deviations = np.where(fit.sigma > 0.0, fit.sigma, np.inf)
    limit = limit_of(FALSE_ALARMS, len(every))
    late = np.array([kind == "late force" for kind, _, _ in every])
    # A sensor that averages or holds a step of the clock is off by half of one.
    step = max(float(np.median(np.diff(m.t))) for m in motions)
    found: list[list[Damage]] = []
    for _ in range(MAX_DAMAGES):
        scores = p.tested(S)
        shift = np.abs(effects * scores.sizes) / deviations[:, None]
        most = shift.argmax(axis=0)
        clear = (scores.chance < limit) & (~late | (np.abs(scores.sizes) > step))
        if not clear.any():
            break
        square = np.where(clear, scores.z**2, 0.0)
        order = np.argsort(-square)
        near = [int(k) for k in order if clear[k] and square[k] > square[order[0]] - INDISTINCT]
        found.append(
            [
                Damage(
                    kind=every[k][0],
                    where=every[k][1],
                    size=float(scores.sizes[k]),
                    sigma=float(scores.sigma[k]),
                    z=float(scores.z[k]),
                    shift=float(shift[most[k], k]),
                    moved=fit.names[most[k]],
                )
                for k in near
            ]
        )
        p = p.with_column(S[:, :, order[0]])
    moving = {group[0].where for group in found if group[0].shift > MIN_SHIFT_SIGMAS}
    return [group for group in found if group[0].where in moving]


def _exact(fit: Fit, x: Samples) -> bool:
    """Whether the residual of some row is rounding."""
    residual, forces = (np.where(x.used, v, 0.0) for v in (x.y - x.W @ fit.values, x.forces))
    rms, size = np.linalg.norm(residual, axis=0), np.linalg.norm(forces, axis=0)
    return not bool(np.all((rms > EXACT_SHARE * size) & (rms > 0.0)))


def prepared(fit: Fit, x: Samples, S: Array) -> tuple[Projected, Array, Array] | None:
    """Weighted equations, columns S (N, R, k) as they stand beside them, and by how much one unit of each moves the parameters (p, k).

    Rows are divided by the rms of their residual. Where neighbouring residuals are correlated by a, with all columns in the regressor,
    each row has a times its sample before taken off; what memory remains is left to the long-run variance of the scores (prewhitening
    of Andrews and Monahan, 1992, Econometrica 60(4)). Without it noise with a memory makes scores too large on logs of some thousand
    samples. None where residuals remember so long that they hold less than `MIN_SAMPLES_PER_COLUMN` independent equations for each
    parameter.
    """
    weight = _weight(x.used, x.y - x.W @ fit.values)
    W, y, S = x.W * weight[:, :, None], x.y * weight, S * weight[:, :, None]
    p = Projected.of(W, y)
    effects = p.effects(S)
    r = p.unexplained(S)
    square = np.sum(r**2, axis=0)
    a = np.clip(np.sum(r[1:] * r[:-1], axis=0) / np.where(square > 0.0, square, 1.0), -MOST_MEMORY, MOST_MEMORY)
    if np.abs(a).max() <= LEAST_MEMORY:
        return p, S, effects
    independent = float(np.sum(x.used.sum(axis=0) * (1.0 - np.abs(a)) / (1.0 + np.abs(a))))
    if independent < MIN_SAMPLES_PER_COLUMN * W.shape[2]:
        return None
    used = x.used[1:] & x.used[:-1]
    weight = _weight(used, r[1:] - a * r[:-1])
    W, S = ((v[1:] - a[:, None] * v[:-1]) * weight[:, :, None] for v in (W, S))
    return Projected.of(W, (y[1:] - a * y[:-1]) * weight), S, effects


def _weight(used: NDArray[np.bool_], residual: Array) -> Array:
    """1/rms of each row where a sample is used (N, R)."""
    rms = np.sqrt(np.sum(np.where(used, residual, 0.0) ** 2, axis=0) / np.maximum(used.sum(axis=0), 1))
    return used / np.where(rms > 0.0, rms, np.inf)


def signature_mistakes(fit: Fit, motions: Sequence[Motion], sampling: Sampling) -> list[Mistake]:
    """What :func:`find_damages` finds, in words."""
    return [_mistake(fit.tree, group) for group in find_damages(fit, motions, sampling)]


def _mistake(tree: Tree, group: Sequence[Damage]) -> Mistake:
    best, others = group[0], group[1:]
    what, place, expected, size, hint = _words(tree, best)
    moves = f"it moves {best.moved} by {best.shift:.2g} deviations"
    if others:
        listed = "; ".join(f"{w[1]}: {w[0]} ({w[3]})" for w in (_words(tree, d) for d in others))
        hint = f"{hint} These data explain it nearly as well otherwise: {listed}."
    return Mistake(best.kind, Fault(what, place, expected, f"{size}, {abs(best.z):.2g} deviations; {moves}", hint))


def _words(tree: Tree, d: Damage) -> tuple[str, str, str, str, str]:
    """What, where, expected, found, and what to try."""
    turning = tree.coordinate_kinds[tree.coordinates.index(d.where)] == "turning"
    angle, force = ("rad", "N*m") if turning else ("m", "N")
    place = f"force of '{d.where}'"
    if d.kind == "force scale":
        hint = "Look at its torque constant or gain, its gear ratio and the calibration of its sensor."
        size = f"{1.0 + d.size:.4g} ± {d.sigma:.2g}"
        return "it seems to be off by a factor beside the others.", place, "1", size, hint
    if d.kind == "late force":
        what = "it is late against the positions." if d.size > 0.0 else "it is early: positions are late against it."
        hint = "Look at the clocks and filters of both; a study takes delays out with clock: {delays: correct}."
        return what, place, "channels on one clock", f"{1e3 * d.size:.3g} ± {1e3 * d.sigma:.2g} ms", hint
    if d.kind == "force drift":
        hint = (
            "Warm up the machine and its sensor, take the drift out of the channel, or cut the log into shorter ones."
        )
        found = f"{2.0 * d.size:.3g} ± {2.0 * d.sigma:.2g} {force} from the start to the end"
        return "it seems to drift.", place, "a sensor with a steady zero", found, hint
    if d.kind == "force offset":
        what = "it has an offset that the model does not have: its sensor's zero is off or drifts."
        hint = "Take it out of the channel, or give the model an offset there, as friction that differs with direction needs too."
        return what, place, f"0 {force}", f"{d.size:.3g} ± {d.sigma:.2g} {force}", hint
    hint = (
        "Look at the zero of its encoder, and at that of the model: the angles of its joints and where its bodies sit."
    )
    found = f"{d.size:.3g} ± {d.sigma:.2g} {angle}"
    return (
        "it seems to be measured from another zero than the model's.",
        f"position of '{d.where}'",
        f"0 {angle}",
        found,
        hint,
    )
