"""An arm, its logs, and its equations as one dense matrix, from the reference that streams nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from strangers.random_trees import random_inertia
from veridyn.identify.estimators.least_squares import Solution
from veridyn.identify.regression.factor import RowFactors
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.model.elements.element import coulomb, damper, motor_inertia, offset, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import Tie
from veridyn.spatial.rotations import MDH

RIGHT = np.pi / 2


NOISE = np.array([0.05, 0.4, 0.1])


@cache
def arm() -> Machine:
    """Three joints with friction, a rotor and an offset; ZZ2 known and fs_q3 tied to fs_q2, so that every path is walked."""
    rng = np.random.default_rng(7)
    bodies = [
        Body("1"),
        Body("2", "1", placement=MDH(alpha=RIGHT, d=0.1)),
        Body("3", "2", "sliding", MDH(alpha=RIGHT, d=0.3, theta=0.2)),
    ]
    elements = [
        coulomb("q1", 0.3),
        damper("q1", 0.6),
        coulomb("q2", 0.4),
        motor_inertia("q2", 0.05),
        coulomb("q3", 0.8),
        offset({"q3": 1.0}, 0.2),
    ]
    machine = Machine.of_bodies(bodies, inertia={b.name: random_inertia(rng) for b in bodies}, elements=elements)
    return machine.with_parameters(machine.parameters.known(["ZZ2"]).tied({"fs_q3": Tie("fs_q2", 2.0)}))


def log(samples: int, seed: int = 0, rate: float = 200.0, wrenches: bool = True) -> Motion:
    """A smooth motion at `rate` Hz with noisy forces and a wrench on the last body."""
    machine, rng = arm(), np.random.default_rng(seed)
    t = np.arange(samples) / rate
    w = rng.uniform(1.0, 9.0, (4, 3))
    a, phase = rng.normal(size=(4, 3)) / w, rng.uniform(0, 6, (4, 3))
    x = t[:, None, None] * w + phase
    q, qd, qdd = ((a * f).sum(axis=1) for f in (np.sin(x), w * np.cos(x), -(w**2) * np.sin(x)))
    felt = {"3": np.column_stack([np.sin((k + 1) * t) for k in range(6)])} if wrenches else {}
    motion = Motion(t, q, qd, qdd, wrenches=felt)
    forces = inverse_dynamics(machine, motion) + NOISE * rng.normal(size=(samples, 3))
    return replace(motion, forces=forces)


def suspended(known: float | None = None, actuated: bool = False) -> Machine:
    """A mass on a vertical slide: a spring of known stiffness, or none and a motor that stands for it."""
    elements = [damper("q1", name="h")] + ([spring("q1", known, "k")] if known else [])
    machine = Machine.of_bodies([Body("1", joint="sliding", actuated=actuated)], elements=elements)
    p = machine.parameters.known(dict.fromkeys(machine.parameters.names[:9], 0.0))
    return machine.with_parameters(p.known(["k"]) if known else p)


Tables = list[tuple[np.ndarray, np.ndarray]]


def dense(machine: Machine, motion: Motion, rows: Sequence[str]) -> Tables:
    """W_j (N, parameters) and Y_j (N,) of each row from the whole regressor: ties added, known values taken off."""
    p = machine.parameters
    D = regressor(machine, motion, rows)
    T = p.tie_matrix()
    off = list(p.select("known"))
    taken = D @ T[:, off] @ p.values[off]
    T[:, off] = 0.0
    numbers = machine.select_rows(rows)
    outside = external_rows(machine, motion)[:, numbers]
    first = len(machine.rows) - machine.n
    out = []
    for j, r in enumerate(numbers):
        acted = motion.forces[:, r - first] if r >= first and machine.actuated[r - first] else 0.0
        out.append((D[:, j] @ T, acted - outside[:, j] - taken[:, j]))
    return out


def expected(tables: Tables, columns: Sequence[int], typical: np.ndarray) -> tuple[np.ndarray, ...]:
    """Weighted least squares by LAPACK's lstsq on everything at once: values, σ, rms of each row, σ_j."""
    deviations = []
    for W, y in tables:
        S = W * typical
        x, _, rank, _ = np.linalg.lstsq(S, y, rcond=1e-9)
        deviations.append(np.linalg.norm(y - S @ x) / np.sqrt(len(y) - rank))
    A = np.vstack([W[:, list(columns)] / s for (W, _), s in zip(tables, deviations, strict=True)])
    b = np.concatenate([y / s for (_, y), s in zip(tables, deviations, strict=True)])
    values = np.linalg.lstsq(A, b, rcond=None)[0]
    variance = ((b - A @ values) ** 2).sum() / (len(b) - len(values))
    R = np.linalg.qr(A, mode="r")
    inverse = np.linalg.inv(R)
    sigma = np.sqrt(variance * (inverse**2).sum(axis=1))
    rms = [np.sqrt(np.mean((y - W[:, list(columns)] @ values) ** 2)) for W, y in tables]
    return values, sigma, np.array(rms), np.array(deviations)


def check(machine: Machine, s: Solution, tables: Tables, tolerance: float = 1e-10) -> None:
    values, sigma, rms, deviations = expected(tables, s.columns, machine.parameters.typical)
    assert np.abs(s.values - values).max() <= tolerance * np.abs(values).max()
    assert np.sqrt(np.diag(s.covariance)) == pytest.approx(sigma, rel=tolerance * 10)
    assert s.row_sigma == pytest.approx(deviations, rel=tolerance * 10)
    x = np.zeros(len(machine.parameters))
    x[list(s.columns)] = s.values
    found = [f.residual(x[list(f.columns)]) / np.sqrt(f.samples) for f in s.observation.rows]
    assert found == pytest.approx(rms, rel=tolerance * 10)


def gram(o: RowFactors) -> list[np.ndarray]:
    return [f.R.T @ f.R for f in o.rows]


def same(a: RowFactors, b: RowFactors, tolerance: float = 1e-12) -> None:
    assert [f.samples for f in a.rows] == [f.samples for f in b.rows]
    for x, y in zip(gram(a), gram(b), strict=True):
        assert np.abs(x - y).max() <= tolerance * np.abs(y).max()
