"""Small damages of a log in words: what, where, how much, what it moves, and what to try."""

from __future__ import annotations

from collections.abc import Sequence

from veridyn.errors import Fault
from veridyn.identify.diagnosis.alternatives import Mistake
from veridyn.identify.diagnosis.signatures import Damage, examine
from veridyn.identify.result import Fit
from veridyn.identify.sampling import Sampling
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

PLURAL = {
    "encoder zero": "zeros of the positions",
    "force scale": "scales of the forces",
    "force offset": "offsets of the forces",
    "force drift": "drifts of the forces",
    "late force": "delays of the forces",
    "machine size": "distances between joints",
}


def signature_mistakes(
    fit: Fit,
    motions: Sequence[Motion],
    sampling: Sampling,
    samples: int | None = None,
    untestable: list[str] | None = None,
) -> list[Mistake]:
    """What :func:`~veridyn.identify.diagnosis.signatures.examine` finds, in words; what it cannot test is added to `untestable`."""
    done = examine(fit, motions, sampling, samples)
    if untestable is not None and done.untestable:
        untestable.append(_untestable(done.untestable))
    return [_mistake(fit.described, group) for group in done.found]


def _untestable(names: Sequence[tuple[str, str]]) -> str:
    """Damages that leave no trace on a log, in one sentence."""
    by_kind: dict[str, list[str]] = {}
    for kind, where in names:
        by_kind.setdefault(kind, []).append(f"'{where}'")
    said = [
        PLURAL[kind] + (f" of {', '.join(places)}" if kind != "machine size" else "")
        for kind, places in by_kind.items()
    ]
    return f"{'; '.join(said)}: the parameters take up whatever is wrong there, so no test of this log can show it."


def _mistake(machine: Machine, group: Sequence[Damage]) -> Mistake:
    best, others = group[0], group[1:]
    what, place, expected, size, hint = _words(machine, best)
    moves = f"it moves {best.moved} by {best.shift:.2g} deviations"
    if others:
        listed = "; ".join(f"{w[1]}: {w[0]} ({w[3]})" for w in (_words(machine, d) for d in others))
        hint = f"{hint} These data explain it nearly as well otherwise: {listed}."
    return Mistake(best.kind, Fault(what, place, expected, f"{size}, {abs(best.z):.2g} deviations; {moves}", hint))


def _words(machine: Machine, d: Damage) -> tuple[str, str, str, str, str]:
    """What, where, expected, found, and what to try."""
    if d.kind == "machine size":
        what = "the distances between its joints do not fit this log: these bodies sit elsewhere."
        hint = "Look whether the model is of this machine and of its size, and at lengths in other units."
        found = f"{1.0 + d.size:.4g} ± {d.sigma:.2g} times those of the model"
        return what, f"model '{machine.name}'", "the machine that was recorded", found, hint
    turning = machine.coordinate_kinds[machine.coordinates.index(d.where)] == "turning"
    angle, force = ("rad", "N*m") if turning else ("m", "N")
    place = f"force of '{d.where}'"
    if d.kind == "force scale":
        hint = "Look at its torque constant or gain, its gear ratio and the calibration of its sensor."
        size = f"{1.0 + d.size:.4g} ± {d.sigma:.2g}"
        return "it seems to be off by a factor beside the others.", place, "1", size, hint
    if d.kind == "late force":
        what = "it is late against the positions." if d.size > 0.0 else "it is early: positions are late against it."
        hint = (
            "Look at the clocks and filters of both; a study takes delays out with clock: {delays: correct}. "
            "Friction that yields before it slides looks alike: a dead zone leaves it out."
        )
        return what, place, "channels on one clock", f"{1e3 * d.size:.3g} ± {1e3 * d.sigma:.2g} ms", hint
    if d.kind == "force drift":
        hint = (
            "Warm up the machine and its sensor, take the drift out of the channel, or cut the log into shorter ones."
        )
        found = f"{d.size:.3g} ± {d.sigma:.2g} {force} from the start to the end"
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
