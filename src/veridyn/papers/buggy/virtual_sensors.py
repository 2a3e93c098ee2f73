"""What no sensor of the buggy measures: forces and slips of its tyres, and travels of its suspensions, with bands, beside the truth.

    y = g(x)          σ² = diag(G P Gᵀ),   G = ∂g/∂x by central differences in the filter's own changes of state

at the samples whose covariance a track keeps. g is that of the observer's own model, with its tyres; the truth has its own. Travel is the
height of a wheel's centre in the axes of the chassis. A filter that leaves the suspensions to its model, as the thesis' errorEKF does,
states no deviation of what they do: the bands then have the rest of the state alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.ground.tyres import tyre_of
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import state_of
from veridyn.mechanics.tree.recursion.newton_euler import outward
from veridyn.mechanics.tree.steps.model import TreeModel, tree_model
from veridyn.model.motion import BaseMotion, Motion
from veridyn.papers.buggy.drive import RATE, BuggyTruth
from veridyn.papers.buggy.machine import CORNERS
from veridyn.papers.buggy.tracking import NEES_EVERY, SKIP, BuggyTrack
from veridyn.spatial.algebra import ARRAYS
from veridyn.spatial.rotations import matrix_of

UNITS = {"load": "N", "fx": "N", "fy": "N", "slip": "", "slip_angle": "rad", "travel": "m"}
CHANGE = 1e-5  # of each state, in its unit: small beside what any g bends over, large beside rounding
EVERY = 4  # kept covariances from one sample to the next
BAND = 2.0  # deviations


def quantities(model: TreeModel, q: Array, qd: Array, tyres: Mapping[str, Array]) -> dict[str, Array]:
    """Of every wheel (N, 4), in the order of CORNERS: load, forces along and across, lagging slips, and travel.

    `q` (N, 7 + n) and `qd` (N, 6 + n) with the base first, its velocity in the ground's axes; `tyres`: states by name (N,).
    """
    tree = model.tree
    R, zero = matrix_of(q[:, 3:7]), np.zeros((len(q), 3))
    velocity = np.einsum("nji,nj->ni", R, qd[:, :3])
    base = BaseMotion(qd[:, 3:6], zero, zero, velocity, position=q[:, :3], quaternion=q[:, 3:7])
    joints = q[:, 7:]
    motion = Motion(
        np.arange(len(q), dtype=np.float64), joints, qd[:, 6:], np.zeros_like(joints), base=base, signals=dict(tyres)
    )
    state = state_of(tree, motion)
    o = outward(tree, state, ARRAYS, velocity=True)
    found: dict[str, list[Array]] = {name: [] for name in UNITS}
    elements = {e.parameter_name: e for e in tree.wheels}
    for corner in CORNERS:
        t = tyre_of(tree, elements[f"tyre_{corner}"], state, o, motion.signals, ARRAYS)
        kappa, side = t.slips
        above = np.stack([np.broadcast_to(x, len(q)) for x in t.wheel.pose[1]], axis=-1) - q[:, :3]
        travel = np.einsum("nj,nj->n", R[:, :, 2], above)
        every = (t.load, *t.forces, kappa, np.arctan(side), travel)
        for name, values in zip(UNITS, every, strict=True):
            found[name].append(np.broadcast_to(np.asarray(values, dtype=np.float64), len(q)))
    return {name: np.stack(columns, axis=-1) for name, columns in found.items()}


@dataclass(frozen=True, eq=False)
class VirtualSensors:
    """Along a track at times t (M,): estimates, deviations and truth by quantity, each (M, 4)."""

    t: Array
    values: Mapping[str, Array]
    sigma: Mapping[str, Array]
    truth: Mapping[str, Array]

    def rms(self, name: str) -> float:
        """Error of the worst wheel."""
        return float(np.sqrt(np.mean((self.values[name] - self.truth[name]) ** 2, axis=0)).max())

    def inside(self, name: str) -> float:
        """The share of samples and wheels whose truth lies within BAND deviations."""
        off = np.abs(self.values[name] - self.truth[name])
        return float(np.mean(off <= BAND * self.sigma[name]))

    def changes(self, name: str) -> float:
        """How much the quantity itself moves: the deviation of the truth in time, of the wheel that moves most."""
        return float(self.truth[name].std(axis=0).max())


def virtual_sensors(track: BuggyTrack, truth: BuggyTruth) -> VirtualSensors:
    """Of a track, at every EVERY-th sample whose covariance it keeps."""
    kept = np.arange(SKIP, len(track.t), NEES_EVERY)[::EVERY]
    x, P = track.x[kept], track.some[::EVERY]
    values, slopes = _with_slopes(track, x)
    sigma = {name: np.sqrt(np.maximum(np.einsum("mkn,mnp,mkp->mk", G, P, G), 0.0)) for name, G in slopes.items()}
    at = np.rint(track.t[kept] * RATE).astype(int)
    tyres = dict(zip(_tyre_states(track), truth.tyres[at].T, strict=True))  # the same tyres in the same order
    true = quantities(tree_model(tree_of(truth.machine)), truth.q[at], truth.qd[at], tyres)
    return VirtualSensors(track.t[kept], values, sigma, true)


def _with_slopes(track: BuggyTrack, x: Array) -> tuple[dict[str, Array], dict[str, Array]]:
    """Quantities (M, 4) at states (M, N), and their derivatives (M, 4, n) by changes of state."""
    system, n = track.system, len(track.system.states)
    changes = CHANGE * np.concatenate([np.zeros((1, n)), np.eye(n), -np.eye(n)])
    every = np.concatenate([system.add(one, changes) for one in x])  # (M (1 + 2n), N)
    q, qd, u, _ = system.split(every)
    first = 2 * system.f
    places = [system.states.index(f"state.{name}") - first for name in _tyre_states(track)]
    tyres = {name: u[:, k] for name, k in zip(_tyre_states(track), places, strict=True)}
    assert isinstance(system.model, TreeModel)
    found = quantities(system.model, q, qd, tyres)
    shaped = {name: y.reshape(len(x), 1 + 2 * n, len(CORNERS)) for name, y in found.items()}
    values = {name: y[:, 0] for name, y in shaped.items()}
    slopes = {name: (y[:, 1 : 1 + n] - y[:, 1 + n :]) / (2.0 * CHANGE) for name, y in shaped.items()}
    return values, {name: np.moveaxis(G, 1, 2) for name, G in slopes.items()}


def _tyre_states(track: BuggyTrack) -> list[str]:
    return [name.removeprefix("state.") for name in track.system.states if name.startswith("state.tyre_")]


def virtual_figures(found: VirtualSensors, name: str) -> dict[str, float]:
    """Error, share inside the band, and how much each quantity moves, by quantity, of an observer."""
    figures = {}
    for quantity in UNITS:
        figures[f"virtual_rms_{quantity}_{name}"] = found.rms(quantity)
        figures[f"virtual_inside_{quantity}_{name}"] = found.inside(quantity)
        figures[f"virtual_changes_{quantity}"] = found.changes(quantity)
    return figures
