"""Why is this parameter not identifiable? The combination it hides in, and the motion that would separate it.

What to record next is asked of a fit, which holds the information C⁻¹ of what was recorded. A further recording with regressor D adds Dᵀ
S⁻² D, S the deviation of each row, so its effect on every deviation is known before anything is recorded: σ' = √diag((C⁻¹ + Dᵀ S⁻² D)⁻¹).
Candidates stay within what the recorded motion already did, but for speed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.base import BaseParameters, base_parameters
from veridyn.identify.diagnosis.columns import DIFFERENCE
from veridyn.identify.diagnosis.evidence import SAMPLES
from veridyn.identify.diagnosis.plausible import CONFIGURATIONS
from veridyn.identify.logged import given_motion
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.loops.assembly import splitting
from veridyn.mechanics.tree.loops.closure import closed_or_none
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.mechanics.tree.rules import freedom_of
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion

MIN_SIGMA_RATIO = 1.5  # times smaller: below this a deviation does not count as sharpened
SINGLE_FREQUENCIES = (1.0, 2.0, 3.0)  # frequencies of a coordinate that moves alone, relative to one another


@dataclass(frozen=True)
class Explanation:
    """`verdict`: "identifiable", "grouped" or "without effect", for the parameter `name`; str() gives it as a sentence.

    `combinations` are the relations it takes part in; `motions` what would separate it, empty where nothing can.
    """

    name: str
    verdict: str
    combinations: tuple[str, ...]
    motions: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


@takes_machine
def explain(machine: Machine, name: str, motion: Motion | None = None, *, rows: Rows = "all") -> Explanation:
    """Whether one parameter is identifiable, by some motion or by the one given, and what would help."""
    k = machine.parameters.index(name)
    tie = machine.parameters.ties.get(name)
    if tie is not None:
        text = f"{name} is tied: it is {tie.factor:g} times {tie.to}. Ask about {tie.to}."
        return Explanation(name, "tied", (), (), text)
    if machine.parameters.states[k] == "known":
        return Explanation(
            name,
            "known",
            (),
            (),
            f"{name} is known ({machine.parameters[name]:g} {machine.parameters.units[k]}) and not estimated.",
        )
    ideal = base_parameters(machine, rows=rows)
    fate = ideal.fate(name)
    if fate == "dead":
        return Explanation(
            name, "without effect", (), (), f"{name} has no effect on these equations: {_stillness(machine, k)}"
        )
    if motion is None or fate == "grouped":
        return _by_structure(name, fate, ideal)
    actual = base_parameters(machine, motion, rows=rows)
    fate = actual.fate(name)
    if fate == "alone":
        return Explanation(name, "identifiable", (), (), f"{name} is identifiable by itself in this motion.")
    hidden = null_vectors(actual, k)
    found = tuple(label for label, moved in enriched(machine, motion) if _all_affected(machine, moved, hidden, rows))
    remedy = (
        f"A motion would separate it in which, besides, {_either(found)}."
        if found
        else "No single coordinate moved besides would separate it: move several at once, in ways unrelated to each other."
    )
    if fate == "dead":
        text = f"{name} has no effect in this motion. {remedy}"
        return Explanation(name, "without effect", (), found, text)
    lines = tuple(actual.groups_of(name))
    text = f"{name} enters this motion only in {_joined(lines)}. {remedy}"
    return Explanation(name, "grouped", lines, found, text)


def null_vectors(base: BaseParameters, k: int) -> Array:
    """Directions in the space of parameters that this base cannot see and that involve parameter k, as rows."""
    p = len(base.parameters)
    if k in base.dead:
        return np.eye(p)[[k]]
    dependent = [d for d in range(p) if d not in base.columns and base.matrix[:, d].any()]
    if k not in base.columns:
        involved = [k]
    else:
        involved = [d for d in dependent if base.matrix[base.columns.index(k), d] != 0.0]
    rows = np.zeros((len(involved), p))
    for row, d in zip(rows, involved, strict=True):
        row[d] = 1.0
        row[list(base.columns)] -= base.matrix[:, d]
    return rows


def enriched(machine: Machine, motion: Motion) -> list[tuple[str, Motion]]:
    """The motion, thinned, with one thing more moving in each: every coordinate by itself, and the base about and along its axes.

    Loops are closed again, with smaller steps where larger ones are out of reach.
    """
    rng = np.random.default_rng(0)  # any values unrelated to the motion serve
    part = motion[:: max(1, len(motion) // CONFIGURATIONS)][:CONFIGURATIONS]
    N = len(part)
    out: list[tuple[str, Motion]] = []
    for c in machine.independent:
        extra = np.zeros((3, N, machine.n))
        extra[:, :, c] = rng.normal(size=(3, N))
        for size in (1.0, 0.1, 0.01) if machine.closed else (1.0,):
            moved = replace(part, q=part.q + size * extra[0], qd=part.qd + extra[1], qdd=part.qdd + extra[2])
            closed = closed_again(machine, moved)
            if closed is not None:
                out.append((f"{machine.coordinates[c]} moves by itself", closed))
                break
    if part.base is None:
        return out
    b = part.base
    for axis, label in enumerate("xyz"):
        turn, push = np.zeros((2, N, 3)), np.zeros((N, 3))
        turn[:, :, axis] = rng.normal(size=(2, N))
        push[:, axis] = 5.0 * rng.normal(size=N)
        out.append(
            (
                f"the base turns about {label}",
                replace(part, base=replace(b, omega=b.omega + turn[0], omega_dot=b.omega_dot + turn[1])),
            )
        )
        out.append(
            (f"the base accelerates along {label}", replace(part, base=replace(b, acceleration=b.acceleration + push)))
        )
    if b.velocity is not None:
        fast = BaseMotion(b.omega, b.omega_dot, b.acceleration, b.velocity * (1.0 + 0.3 * rng.normal(size=(N, 1))))
        out.append(("the speed varies", replace(part, base=fast)))
    return out


def closed_again(machine: Machine, m: Motion) -> Motion | None:
    """A motion whose independent coordinates have been changed, with its loops closed; None where they cannot be."""
    if not machine.closed:
        return m
    split = splitting(tree_of(machine))
    whole = closed_or_none(split, given_motion(split, m), m.q)
    return None if whole is None else replace(m, q=whole.q, qd=whole.qd, qdd=whole.qdd)


def _all_affected(machine: Machine, motion: Motion, hidden: Array, rows: Rows) -> bool:
    D = regressor(machine, motion, rows) @ machine.parameters.estimated_matrix()
    A = D.reshape(-1, D.shape[2])
    sizes = np.linalg.norm(A, axis=0)
    return all(np.linalg.norm(A @ v) > DIFFERENCE * (sizes @ np.abs(v)) for v in hidden)


def _by_structure(name: str, fate: str, ideal: BaseParameters) -> Explanation:
    if fate == "alone":
        return Explanation(
            name, "identifiable", (), (), f"{name} is identifiable by itself, given a motion that excites it."
        )
    lines = tuple(ideal.groups_of(name))
    text = (
        f"{name} enters the dynamics only in {_joined(lines)}: no motion separates it. "
        "Fix the other members with known values, or measure a force inside the machine."
    )
    return Explanation(name, "grouped", lines, (), text)


def _stillness(machine: Machine, k: int) -> str:
    body, _ = machine.columns[k]
    if not body:
        return "its element acts on none of these rows."
    freedom = freedom_of(machine, body)
    if freedom.turns == "not":
        return f"body '{body}' never turns."
    if freedom.turns == "one" and freedom.direction is not None:
        axis = ", ".join(f"{x:.3g}" for x in freedom.direction)
        still = "" if freedom.shifts else " and no acceleration acts across it at the body's origin"
        return (
            f"body '{body}' turns about one direction only, ({axis}) in its frame{still}. "
            "A joint before it, or a free base, would be needed."
        )
    return f"body '{body}' does not affect these rows, or what it does cancels on its way to the ground."


def _joined(lines: tuple[str, ...]) -> str:
    return " and ".join(lines)


def _either(found: tuple[str, ...]) -> str:
    return found[0] if len(found) == 1 else ", or ".join(found[:6])


@dataclass(frozen=True)
class Advice:
    """One more recording as long as the last: in words, what it would do to σ (name → σ now, σ then), and the gain over all of them."""

    motion: str
    sharpened: dict[str, tuple[float, float]]
    gain: float

    def __str__(self) -> str:
        best = sorted(self.sharpened.items(), key=lambda item: item[1][1] / item[1][0])[:4]
        listed = ", ".join(f"σ of {name} from {a:.2g} to {b:.2g}" for name, (a, b) in best)
        more = len(self.sharpened) - len(best)
        return f"One more recording as long as this one in which {self.motion}: {listed}" + (
            f", and {more} more." if more > 0 else "."
        )


def what_next(fit: Fit, motion: Motion, poor: float = 10.0) -> tuple[Advice, ...]:
    """Candidates that would sharpen parameters with σ % above `poor`, the best first; empty where none would, or none is poor.

    The gain of a candidate is the mean of ln(σ now / σ then) over the poor parameters, times how many they are. Parameters that are
    small beside their typical size are not called poor for that: σ is taken relative to the larger of value and typical size.
    """
    size = np.maximum(np.abs(fit.values), np.abs(fit.base.parameters.typical[list(fit.base.columns)]))
    weak = np.flatnonzero(100.0 * fit.sigma > poor * size)
    if not len(weak) or not np.isfinite(fit.covariance).all():
        return ()
    scale = fit.sigma
    known = np.linalg.inv(fit.covariance / np.outer(scale, scale))
    rows = [r.row for r in fit.rows if r.samples and r.rms > 0.0]
    spread = np.array([r.rms for r in fit.rows if r.samples and r.rms > 0.0])
    length = np.array([r.samples for r in fit.rows if r.samples and r.rms > 0.0])
    found = []
    for label, other in candidates(fit.described, motion):
        D = regressor(fit.described, other, rows) @ fit.base.parameters.estimated_matrix()
        W = D[:, :, list(fit.base.columns)] * (np.sqrt(length / len(other)) / spread)[:, None] * scale
        W = W.reshape(-1, W.shape[2])
        later = scale * np.sqrt(np.diag(np.linalg.inv(known + W.T @ W)))
        ratio = fit.sigma[weak] / later[weak]
        better = {
            fit.names[k]: (float(fit.sigma[k]), float(later[k]))
            for k, r in zip(weak, ratio, strict=True)
            if r > MIN_SIGMA_RATIO
        }
        if better:
            found.append(Advice(label, better, float(np.log(ratio).sum())))
    return tuple(sorted(found, key=lambda a: -a.gain))


def candidates(machine: Machine, motion: Motion) -> list[tuple[str, Motion]]:
    """Motions to consider, with words for them.

    A machine on a fixed base: the same motion faster and slower, and each coordinate alone over its range, as fast as it has been. On a
    free base: the recorded motion with one thing more moving. Of a machine with loops, each coordinate with an equation of its own,
    where the loops let it go its way alone.
    """
    part = motion[np.unique(np.linspace(0, len(motion) - 1, SAMPLES).astype(int))]
    if part.base is not None:
        return [(label, _bare(m)) for label, m in enriched(machine, motion)]
    out = [
        ("the same motion runs 1.5 times as fast", _at_speed(part, 1.5)),
        ("the same motion runs at half the speed", _at_speed(part, 0.5)),
    ]
    alone = (
        (f"{machine.coordinates[c]} moves alone over its range", closed_again(machine, _alone(part, c)))
        for c in machine.independent
    )
    return out + [(label, moved) for label, moved in alone if moved is not None]


def _at_speed(m: Motion, s: float) -> Motion:
    return _bare(replace(m, t=m.t / s, qd=s * m.qd, qdd=s * s * m.qdd))


def _alone(m: Motion, c: int) -> Motion:
    """Coordinate c in three sines within the range, the speed and the acceleration it has had; the others stay in their middle."""
    q, qd, qdd = (np.zeros_like(m.q) for _ in range(3))
    q[:] = m.q.mean(axis=0)
    reach = float(np.ptp(m.q[:, c])) / 2.0
    fast, hard = float(np.abs(m.qd[:, c]).max()), float(np.abs(m.qdd[:, c]).max())
    phase = np.linspace(0.0, 2.0 * np.pi, len(m.t), endpoint=False)
    k = np.array(SINGLE_FREQUENCIES)[:, None]
    angle = k * phase + k * k
    shape, rate, bend = (
        (f / len(SINGLE_FREQUENCIES)).sum(axis=0) for f in (np.sin(angle) / k, np.cos(angle), -k * np.sin(angle))
    )
    a = reach / float(np.abs(shape).max() or 1.0)
    w = min(fast / (a * float(np.abs(rate).max()) or 1.0), np.sqrt(hard / (a * float(np.abs(bend).max()) or 1.0)))
    q[:, c] = (m.q[:, c].max() + m.q[:, c].min()) / 2.0 + a * shape
    qd[:, c], qdd[:, c] = w * a * rate, w * w * a * bend
    return _bare(replace(m, q=q, qd=qd, qdd=qdd))


def _bare(m: Motion) -> Motion:
    """Without the forces and wrenches, which belong to what was recorded; the signals of drive gains are kept."""
    return replace(m, forces=None, wrenches={})
