"""Inverse dynamics of a URDF by Pinocchio's own reader and recursion, in the rows of a machine read from the same file."""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

Array = NDArray[np.float64]


def exact_urdf(file: Path) -> str:
    """The text of a URDF file with every quarter turn of a joint's origin that was rounded, or cut off, written in full."""

    def full(word: str) -> str:
        x, decimals = float(word), len(repr(abs(float(word))).partition(".")[2])
        turn = math.pi / 2 * round(x / (math.pi / 2))
        cut = math.copysign(math.floor(abs(turn) * 10**decimals) / 10**decimals, turn)
        single = abs(x - turn) < 1.2e-7 * abs(turn)
        return repr(turn) if single or (turn and decimals > 1 and x in (round(turn, decimals), cut)) else word

    def origin(found: re.Match[str]) -> str:
        words = re.sub(r"(rpy\s*=\s*[\"'])([^\"']*)", lambda m: m[1] + " ".join(map(full, m[2].split())), found[0])
        return str(words)

    def joint(found: re.Match[str]) -> str:
        return re.sub(r"<origin[^>]*>", origin, found[0])

    return re.sub(r"<joint\b.*?</joint>", joint, file.read_text(encoding="utf-8"), flags=re.DOTALL)


def pin_forces(
    model: pin.Model, machine: Machine, motion: Motion, followers: Mapping[str, tuple[str, float, float]] | None = None
) -> Array:
    """Γ of the machine's rows by Pinocchio's model of the same file; joints that follow are joined by the ratios given."""
    data, base = model.createData(), motion.base
    six = 0 if base is None else 6
    model.gravity.linear = np.array(machine.gravity) if base is None else np.zeros(3)
    out = np.zeros((len(motion), len(machine.rows)))
    for k in range(len(motion)):
        q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        S = np.zeros((model.nv, len(machine.rows)))
        S[:six, :six] = np.eye(six)
        if base is not None:
            assert base.velocity is not None
            v[:6] = np.concatenate([base.velocity[k], base.omega[k]])
            a[:6] = np.concatenate([base.acceleration[k] - np.cross(v[3:6], v[:3]), base.omega_dot[k]])
        for name, joint in zip(list(model.names)[1 + six // 6 :], model.joints[1 + six // 6 :]):
            coordinate, ratio, offset = (followers or {}).get(name, (name, 1.0, 0.0))
            c = machine.coordinates.index(coordinate)
            S[joint.idx_v, six + c] = ratio
            x = ratio * motion.q[k, c] + offset
            q[joint.idx_q : joint.idx_q + joint.nq] = x if joint.nq == 1 else (math.cos(x), math.sin(x))
            v[joint.idx_v], a[joint.idx_v] = ratio * motion.qd[k, c], ratio * motion.qdd[k, c]
        out[k] = S.T @ pin.rnea(model, data, q, v, a)
    return out
