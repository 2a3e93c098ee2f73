"""Forces of so few levels that the force of the fit, which follows them, cannot show what their rounding does.

A switched force has few levels, too, as up, off and down. It differs from the force of a right model by much less than a step. What
rounding leaves is q/√12 rms of a step q, and the fit of such a force leaves as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.diagnosis.causes import Cause, Damage
from veridyn.identify.diagnosis.drives import coupled_drives
from veridyn.identify.diagnosis.likelihood import NoisyEquations
from veridyn.identify.diagnosis.structure import IN_STEPS, level_step
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.motion import Motion
from veridyn.signals.findings import MIN_LEVELS

LEAST_SHARE = 0.5  # of what rounding leaves, q/√12: a switched force is followed to less


def few_levels(
    fit: Fit, motions: Sequence[Motion], rows: Sequence[str], causes: Sequence[Cause], model: NoisyEquations
) -> list[Damage]:
    """Forces that are rounded to fewer than `MIN_LEVELS` values; their harm: how far an offset of what rounding leaves moves parameters."""
    found: list[Damage] = []
    for place, measured, predicted in _forces(fit, motions, rows):
        q, turns = _step(measured), int(np.count_nonzero(np.diff(measured)))
        share = float(np.sqrt(12.0 * np.mean((measured - predicted) ** 2))) / q
        offset = next((c for c in causes if c.kind == "force offset" and c.where == place), None)
        if share < LEAST_SHARE or offset is None:
            continue
        effects = model.plain.effects(offset.columns * model.weight[:, :, None])[:, 0]
        shifts = np.abs(effects) * q / np.sqrt(12.0) / np.where(fit.sigma > 0.0, fit.sigma, np.inf)
        sigma = share / np.sqrt(2.0 * max(turns, 1))
        worst = int(shifts.argmax())
        found.append(
            Damage(
                kind=IN_STEPS,
                where=place,
                size=share,
                sigma=sigma,
                z=share / sigma,
                shift=float(shifts[worst]),
                moved=fit.names[worst],
            )
        )
    return found


def _step(x: Array) -> float:
    """The step of a force of a few equally spaced levels; zero where it has more, or but one."""
    q = level_step(x)
    return q if q and len(np.unique(np.round((x - x.min()) / q))) < MIN_LEVELS else 0.0


def _forces(fit: Fit, motions: Sequence[Motion], rows: Sequence[str]) -> Iterator[tuple[str, Array, Array]]:
    """Place, measured forces and those of the fit, of rows and of motors that turn with several joints; of those with few levels at first
    sight alone, because that is rare and the forces of the fit take time."""
    machine, at = fit.described, [fit.described.coordinates.index(row) for row in rows]
    places = [(row, np.eye(len(rows))[k]) for k, row in enumerate(rows)]
    places += [(d.name, d.moves[at]) for d in coupled_drives(machine) if d.rows(machine, tuple(rows)) is not None]
    given = [m.forces[:, at] for m in motions if m.forces is not None]
    if len(given) < len(motions):
        return
    measured = np.concatenate(given)
    seen = []
    for place, weights in places:
        there = np.isfinite(measured[:, weights != 0.0]).all(axis=1)
        x = measured[there][:, weights != 0.0] @ weights[weights != 0.0]
        if _step(x):
            seen.append((place, weights, there, x))
    if not seen:
        return
    predicted = np.concatenate(
        [inverse_dynamics(machine, m, list(rows), fit.standard, engine="numpy") for m in motions]
    )
    for place, weights, there, x in seen:
        yield place, x, (predicted @ weights)[there]
