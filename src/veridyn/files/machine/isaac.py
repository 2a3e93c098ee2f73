"""Drives of a machine as a configuration of actuators for Isaac Lab, with ranges for domain randomisation. Isaac Lab itself is not needed.

Joints that a control law of kind pd moves become an actuator that computes τ = kp (r − q) + kd (ṙ − q̇), delayed where the law's command is;
other joints one without gains. Friction is as PhysX has it: a force at rest, a force that slides, and a part that grows with speed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, ModelError, part_at, warn
from veridyn.files.access import refuse_to_replace, write_atomic
from veridyn.files.machine.mjcf_parts import Carried, with_rigid_friction
from veridyn.identify.result import Fit
from veridyn.model.controller import Controller
from veridyn.model.machine import Machine

WORDS = {
    "armature": "armature",
    "frictionloss": "friction",
    "damping": "viscous_friction",
}  # of a joint's law, of Isaac Lab
LOW, HIGH = 0.05, 0.95  # shares of the draws between which a range lies
WIDE = 110  # characters of a line


@checked
def save_isaac(
    machine: Machine | Fit,
    path: str | Path,
    step: float = 0.005,
    draws: Sequence[Array] | Array | None = None,
    overwrite: bool = False,
) -> None:
    """Write the drives of a machine as Python that configures actuators of Isaac Lab 2.3.

    Parameters
    ----------
    machine : Machine or Fit
        Its joints are named as in the robot of the simulation; of a fit, the identified machine.
    path : str or path
        The file, which defines ``ACTUATORS`` and, where draws are given, ``RANGES``.
    step : float above 0
        The physics step of the simulation in s, in which it counts delays.
    draws : (n, parameters), or None
        Parameter sets of the same machine, as ``fit.draws`` gives them: ``RANGES`` are from the 5th to the 95th of a hundred.
    overwrite : bool
        Replace a file that exists; it is left alone by default.

    Returns
    -------
    None

    Raises
    ------
    ModelError
        Where armature or friction is below zero, or has no value.

    Warns
    -----
    DataWarning
        For each kind of thing that this configuration has no place for.
    """
    if not step > 0.0:
        raise DataError("a physics step is above zero.", where="step", found=f"{step:g}")
    refuse_to_replace(Path(path), overwrite)
    machine, softened = with_rigid_friction(machine.valued if isinstance(machine, Fit) else machine)
    text = isaac_text(machine, step, () if draws is None else draws)
    write_atomic(path, text.encode("utf-8"), overwrite)
    for sentence in (*_left_out(machine), *softened):
        warn(DataWarning, Fault(f"{Path(path).name}: {sentence}"))


def isaac_text(machine: Machine, step: float, draws: Iterable[Array] = ()) -> str:
    """The text of such a file."""
    laws = Carried.of(machine).joints
    _check(machine)
    driving = {c.on: c for c in machine.controllers if _is_servo(c)}
    delayed = [c for c, law in driving.items() if law.constant("command_delay") > 0.0]
    groups = {
        "delayed_servos": ("DelayedPDActuatorCfg", delayed),
        "servos": ("IdealPDActuatorCfg", [c for c in driving if c not in delayed]),
        "joints": ("ImplicitActuatorCfg", [c for c in machine.coordinates if c not in driving]),
    }
    used = {name: (kind, own) for name, (kind, own) in groups.items() if own}
    imports = ", ".join(sorted({kind for kind, _ in used.values()}))
    lines = [
        f'"""Actuators of {_plain(machine.name)} for Isaac Lab 2.3, written by veridyn. SI units; delays in steps of {step:g} s."""',
        "",
        f"from isaaclab.actuators import {imports}",
        "",
        "ACTUATORS = {",
    ]
    for name, (kind, own) in used.items():
        lines += [f'    "{name}": {kind}(', *_listed("joint_names_expr", [_pattern(c) for c in own])]
        for key, values in _gains(own, driving).items():
            lines += _table(key, values)
        for word, key in WORDS.items():
            lines += _table(key, {c: getattr(laws[c], word) for c in own})
        lines += _table("dynamic_friction", {c: laws[c].frictionloss for c in own})
        if own is delayed:
            ages = [driving[c].constant("command_delay") / step for c in own]
            lines.append(f"        min_delay={math.floor(min(ages) + 1e-9)},")
            lines.append(f"        max_delay={math.ceil(max(ages) - 1e-9)},")
        lines.append("    ),")
    lines.append("}")
    ranges = _ranges(machine, draws)
    if ranges:
        lines += ["", "# From the 5th to the 95th of a hundred machines drawn from the fit.", "RANGES = {"]
        for key, own in ranges.items():
            lines.append(f'    "{key}": {{')
            lines += [f'        "{_pattern(c)}": ({low!r}, {high!r}),' for c, (low, high) in own.items()]
            lines.append("    },")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _is_servo(c: Controller) -> bool:
    return c.kind == "pd" and not c.motor


def _gains(own: Sequence[str], driving: Mapping[str, Controller]) -> dict[str, dict[str, float]]:
    """Gains and limits of a group; none where no control law moves its joints."""
    if not own or own[0] not in driving:
        return {"stiffness": dict.fromkeys(own, 0.0), "damping": dict.fromkeys(own, 0.0)}
    found = {
        "stiffness": {c: driving[c].constant("kp") for c in own},
        "damping": {c: driving[c].constant("kd") for c in own},
    }
    limits = {c: driving[c].constant("limit") for c in own}
    if any(math.isfinite(x) for x in limits.values()):
        found["effort_limit"] = {c: x for c, x in limits.items() if math.isfinite(x)}
    return found


def _ranges(machine: Machine, draws: Iterable[Array]) -> dict[str, dict[str, tuple[float, float]]]:
    """For each word of Isaac Lab the range of each joint whose value differs from draw to draw."""
    drawn = [Carried.of(machine.with_parameters(phi)).joints for phi in draws]
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for word, key in WORDS.items() if drawn else ():
        for c in machine.coordinates:
            values = np.array([getattr(laws[c], word) for laws in drawn])
            if np.ptp(values) > 0.0:
                low, high = np.quantile(values, (LOW, HIGH))
                found.setdefault(key, {})[c] = float(low), float(high)
    return found


def _check(machine: Machine) -> None:
    faults = Faults()
    for c, law in Carried.of(machine).joints.items():
        for word in WORDS:
            value = float(getattr(law, word))
            if not value >= 0.0:
                what = f"its {word} has no value." if math.isnan(value) else f"its {word} is below zero."
                hint = "Identify it, or give a value." if math.isnan(value) else "Estimate with 'consistent'."
                faults.add(what, where=part_at("coordinate", c), found=f"{value:g}", hint=hint)
    faults.raise_if_any(ModelError, machine.name)


def _left_out(machine: Machine) -> list[str]:
    """One sentence for each kind of thing that these actuators do not have."""
    carried = Carried.of(machine)
    found = [
        f"there is no place for elements of the kind '{kind}', left out: {', '.join(names)}."
        for kind, names in carried.left_out.items()
    ]
    for word, what in (("stiffness", "springs"), ("bias", "constant forces")):
        own = [c for c, law in carried.joints.items() if getattr(law, word) != 0.0]
        if own:
            found.append(f"there is no place for {what}, left out: {', '.join(own)}.")
    if carried.tendons:
        found.append(f"there is no place for what acts on combinations of joints: {len(carried.tendons)} left out.")
    others = [f"{c.name} ({c.kind})" for c in machine.controllers if not _is_servo(c)]
    if others:
        found.append(f"control laws that are no PD of a force are left out: {', '.join(others)}.")
    rubbing = [c.name for c in machine.controllers if _is_servo(c) and c.rubs]
    if rubbing:
        found.append(f"there is no place for friction that grows with load, left out: {', '.join(rubbing)}.")
    return found


def _plain(name: str) -> str:
    """A name that can stand in a docstring."""
    return re.sub(r'["\\\n\r]', "'", name)


def _pattern(coordinate: str) -> str:
    """A regular expression for one joint, as the text between quotation marks."""
    return re.escape(coordinate).replace("\\_", "_").replace("\\-", "-").replace("\\", "\\\\").replace('"', '\\"')


def _listed(key: str, names: Sequence[str]) -> list[str]:
    whole = f"        {key}=[" + ", ".join(f'"{n}"' for n in names) + "],"
    return (
        [whole] if len(whole) <= WIDE else [f"        {key}=[", *(f'            "{n}",' for n in names), "        ],"]
    )


def _table(key: str, values: Mapping[str, float]) -> list[str]:
    """A number where all joints have it, else one for each joint."""
    numbers = {float(v) for v in values.values()}
    if len(numbers) == 1:
        return [f"        {key}={numbers.pop()!r},"]
    return [
        f"        {key}={{",
        *(f'            "{_pattern(c)}": {float(v)!r},' for c, v in values.items()),
        "        },",
    ]
