"""A first study file of kind simulate from a model and, if there is one, the table of a motion; guesses are marked as guesses."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from veridyn.errors import FileError
from veridyn.files.log.survey import survey
from veridyn.mechanics.natural.of_machine import mechanism_of
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.studies.config.clock_guess import time_column
from veridyn.studies.config.excite_template import study_name
from veridyn.studies.config.guessed_limits import JointGuess, force_sizes, guessed_limits, guessed_noise
from veridyn.studies.config.template import beside, urdf_lines
from veridyn.studies.config.text import flow

DURATION = 20.0  # s, where no table says one
FREQUENCY = 0.1  # Hz of the guessed motion
HARMONICS = 3
SHARE = 0.6  # of range and speed that the guessed motion uses


def simulate_template(model: Path, machine: Machine, table: Path | None, study: Path, strict: bool = False) -> str:
    """The text of a study file that leads a machine along a motion and records it as its sensors would."""
    limits = guessed_limits(machine, model)
    noise = guessed_noise(machine, force_sizes(machine, limits))
    sliding = [x.name for x in limits if x.kind == "sliding"]
    lines = [
        *_head(machine.name, study),
        f"name: {study_name(machine)}-simulated",
        "seed: 1",
        "",
        "model:",
        f"  file: {flow(beside(model, study))}",
        *(line for line in urdf_lines(model, machine, strict) if "impossible: unknown" not in line),
        "",
        *(_led(table, machine, limits, study)),
        "# controller: {bandwidth: 4} # Hz; without this section the motion is made exactly",
        "rate: 100 # of the log, Hz; guessed",
        "sensors: # guessed: encoders of 18 bits, forces with 2 % of noise",
        *(f"  {flow(f'q.{c}')}: {{quantum: 1e-6, noise: 1e-6}}" for c in sliding),
        "  q.*: {quantum: 2*pi/2**18, noise: 1e-5}",
        *(f"  {flow(f'force.{c}')}: {{noise: {x:g}}}" for c, x in noise.items()),
        *([] if noise else ["  force.*: {noise: 0.1} # guessed"]),
    ]
    return "\n".join(lines) + "\n"


def simulate_mechanism_template(model: Path, machine: Machine, study: Path) -> str:
    """The text of a study file that lets a machine in natural coordinates move as its loads drive it, read by the sensors of its file."""
    loads = mechanism_of(machine).loads  # with those of motors that no load stands for
    drives = [load.name for load in loads if isinstance(load, Drive)]
    lines = [
        *_head(machine.name, study),
        f"name: {study_name_of(machine.name)}-simulated",
        "seed: 1",
        "",
        f"model: {{file: {flow(beside(model, study))}}}",
        *(["inputs:", "  formulas: # in the time t; guessed"] if drives else []),
        *(f"    {flow(name)}: 0*sin(2*pi*0.2*t)" for name in drives),
        "# start: {coordinates: {name: value}} # as the file assembles it if left out",
        f"duration: {DURATION:g} # s; guessed",
        "rate: 100 # Hz; guessed",
    ]
    return "\n".join(lines) + "\n"


def study_name_of(name: str) -> str:
    """A name as that of a run folder."""
    return "".join(c if c.isalnum() or c in "_.-" else "-" for c in name).strip("-.") or "study"


def _head(name: str, study: Path) -> list[str]:
    return [
        f"# A simulated log of '{name}'. Written by veridyn new; look at every line marked 'guessed'.",
        f"# Run it with: veridyn simulate {study.name}. Every setting with its default: veridyn simulate {study.name} --show",
        "veridyn: 1",
        "kind: simulate",
    ]


def _led(table: Path | None, machine: Machine, limits: tuple[JointGuess, ...], study: Path) -> list[str]:
    if table is None:
        return [*_fourier(limits), f"duration: {DURATION:g} # s; guessed"]
    seen = survey(table)
    time = time_column(seen.columns)
    missing = [x.name for x in limits if f"q.{x.name}" not in seen.columns]
    if missing or not time:
        what = "this is not the table of a motion of the model." if missing else "the table has no column of times."
        raise FileError(
            what,
            where=table.name,
            expected="time, and q.C of every coordinate, as veridyn excite writes them",
            found=f"no {', '.join(f'q.{c}' for c in missing[:8])}" if missing else ", ".join(list(seen.columns)[:8]),
            hint="Leave the table out for a guessed motion, or name its columns under motion.columns.",
        )
    unit = seen.units.get(time, "s")
    return [f"motion: {{file: {flow(beside(table, study))}, time: {flow(f'{time} [{unit}]')}}}"]


def _fourier(limits: tuple[JointGuess, ...]) -> list[str]:
    """A Fourier series within ranges and speeds, with other amplitudes for every joint."""
    rng = np.random.default_rng(0)
    lines = [
        "motion:",
        "  fourier: # within the limits of the joints; guessed",
        f"    frequency: {FREQUENCY:g}",
        "    start: 2",
    ]
    lines.append("    centre:")
    lines += [f"      {flow(x.name)}: {0.5 * (x.low + x.high):.4g}" for x in limits]
    lines.append("    sine:")
    for x in limits:
        shape = rng.uniform(-1.0, 1.0, HARMONICS)
        reach = SHARE * 0.5 * (x.high - x.low) / np.abs(shape).sum()
        fast = SHARE * x.speed / (2.0 * math.pi * FREQUENCY * (np.abs(shape) * np.arange(1, HARMONICS + 1)).sum())
        lines.append(f"      {flow(x.name)}: [{', '.join(f'{a:.3g}' for a in min(reach, fast) * shape)}]")
    return lines
