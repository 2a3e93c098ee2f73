"""One state a call, as a controller in Python asks for it: veridyn's evaluator beside Pinocchio's Python binding, on one machine."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from benchmarks.clock import best_of
from benchmarks.subjects import PinModel, arm
from veridyn.mechanics.tree.dynamics.evaluator import Evaluator


def single_state() -> str:
    """One line: microseconds of each call on the 7-joint arm, veridyn's and Pinocchio's, checked to agree to 1e-10."""
    machine = arm()
    theirs, ours = PinModel(machine), Evaluator(machine)
    model, data = theirs.model, theirs.data
    q, qd, qdd = (np.array(x) for x in np.random.default_rng(0).normal(size=(3, machine.n)))
    force = ours.inverse_dynamics(q, qd, qdd).copy()
    pairs = {
        "inverse dynamics": (lambda: ours.inverse_dynamics(q, qd, qdd), lambda: pin.rnea(model, data, q, qd, qdd)),
        "forward dynamics": (lambda: ours.forward_dynamics(q, qd, force), lambda: pin.aba(model, data, q, qd, force)),
        "mass matrix": (lambda: ours.mass_matrix(q), lambda: _whole(pin.crba(model, data, q))),
    }
    for what, (own, other) in pairs.items():
        if not np.allclose(own(), other(), rtol=1e-9, atol=1e-9):
            raise AssertionError(f"{what} of one state differs from Pinocchio's")
    pairs["mass matrix"] = (pairs["mass matrix"][0], lambda: pin.crba(model, data, q))
    pairs["regressor"] = (
        lambda: ours.regressor(q, qd, qdd),
        lambda: pin.computeJointTorqueRegressor(model, data, q, qd, qdd),
    )
    found = []
    for what, (own, other) in pairs.items():
        mine, peer = best_of(own).cpu, best_of(other).cpu
        found.append(f"{what} {1e6 * mine:.2f} µs ({peer / mine:.1f} times as fast)")
    return (
        f"- One state a call of the 7-joint arm from Python, beside Pinocchio's binding: {', '.join(found)}. Both write into "
        "memory that they keep."
    )


def _whole(upper: np.ndarray) -> np.ndarray:
    """Pinocchio fills the upper triangle."""
    return np.triu(upper) + np.triu(upper, 1).T
