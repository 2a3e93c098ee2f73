"""A first study file of kind excite from a model: limits of its file where it has them, guesses marked as guesses elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

from veridyn.errors import ModelError
from veridyn.model.machine import Machine
from veridyn.studies.config.guessed_limits import (
    JointGuess,
    force_sizes,
    guessed_efforts,
    guessed_limits,
    guessed_noise,
)
from veridyn.studies.config.template import beside, urdf_lines
from veridyn.studies.config.text import flow

UNITS = {"turning": "rad", "sliding": "m"}


def excite_template(model: Path, machine: Machine, study: Path, strict: bool = False) -> str:
    """The text of a study file that designs a motion for a machine whose base is held."""
    if machine.base == "free":
        hint = "Take the motion of the machine as it walks or flies, or hold its base: --base fixed."
        raise ModelError(
            "an excitation can be designed for a machine whose base is held.", where=machine.name, hint=hint
        )
    if not machine.n:
        raise ModelError("it has no joint to move.", where=machine.name)
    limits = guessed_limits(machine, model)
    usable, rest = guessed_efforts(machine, model)
    noise = guessed_noise(machine, force_sizes(machine, limits))
    force = {c: x for c, x in usable.items() if c in noise}
    lines = [
        f"# A motion that identifies '{machine.name}'. Written by veridyn new; look at every line marked 'guessed'.",
        f"# Run it with: veridyn excite {study.name}. Every setting with its default: veridyn excite {study.name} --show",
        "veridyn: 1",
        "kind: excite",
        f"name: {study_name(machine)}-motion",
        "",
        "model:",
        f"  file: {flow(beside(model, study))}",
        *(line for line in urdf_lines(model, machine, strict) if "impossible: unknown" not in line),
        "",
        "limits:",
        "  urdf: [] # all limits are written down here",
        "  actuators:",
        *(f"    {flow(x.name)}: {_ranges(x)}" for x in limits),
        *(["  force: # efforts of the file, N or N*m"] if force else []),
        *(f"    {flow(c)}: {x:g}" for c, x in force.items()),
        *([f"  # efforts that the dry friction of the model uses up: {', '.join(rest)}"] if rest else []),
        "  # collision: {floor: 0.0, margin: 0.02} # capsules around the shapes of a URDF; without it nothing keeps bodies apart",
        "motion:",
        "  harmonics: 5",
        "  frequency: 0.1 # Hz; guessed",
        "  # start: {joint: where it stands now, …} # the trajectory then leads there from rest",
        *_noise(noise),
        "search: {starts: 4}",
        "rate: 100 # of the controller and the log, Hz; guessed",
        "periods: 5",
    ]
    return "\n".join(lines) + "\n"


def study_name(machine: Machine) -> str:
    """The machine's name as that of a run folder."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", machine.name).strip("-.") or "study"


def _ranges(x: JointGuess) -> str:
    unit = UNITS[x.kind]
    numbers = f"{{range: [{x.low:.4g}, {x.high:.4g}], speed: {x.speed:.3g}, acceleration: {x.acceleration:.3g}}}"
    return f"{numbers} # {unit}; guessed: {', '.join(x.guessed)}"


def _noise(noise: dict[str, float]) -> list[str]:
    if not noise:
        return ["# noise: {sigma: {joint: 0.1, …}} # of the measured forces, N or N*m: every row, or 1 is assumed"]
    return [
        "noise: # of the measured forces, N or N*m: guessed, 2 % of what the model predicts",
        "  sigma:",
        *(f"    {flow(c)}: {x:g}" for c, x in noise.items()),
    ]
