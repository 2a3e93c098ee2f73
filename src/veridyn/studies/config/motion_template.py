"""First study files of kinds excite and simulate, from a model and, if there is one, the table of a motion.

Limits are those of the model's file where it has them: ranges, speeds, accelerations, and the forces that these need. A URDF has ranges,
speeds and efforts, often the ones its author never filled in (±10 rad, 1000 rad/s, 1000 N*m). The guesses are those of a careful first
experiment; each is marked as a guess where it is written down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veridyn.errors import FileError, ModelError
from veridyn.files.log.load import survey
from veridyn.files.machine.load import MJCF_ENDINGS
from veridyn.files.machine.mjcf import mjcf_limits
from veridyn.files.machine.urdf import urdf_limits
from veridyn.files.machine.urdf_reader import UrdfLimits
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.loops.closure import closed_home
from veridyn.model.load import Drive
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.studies.config.excite import ExciteFile, MotionSettings
from veridyn.studies.config.guessing import rotor_lines, time_column
from veridyn.studies.config.study_lines import as_file, beside, head_lines, key_lines, urdf_lines
from veridyn.studies.config.text import flow

HALF_RANGE = {"turning": 1.0, "sliding": 0.1}  # rad, m: of a coordinate without a range, about where it is assembled
LARGEST_HALF_RANGE = {"turning": math.pi, "sliding": 1.0}  # rad, m: what is wider is the word of nobody
LARGEST_SPEED = {"turning": 2.0, "sliding": 0.5}  # rad/s, m/s
RAMP = 0.25  # s in which a joint reaches its largest speed
POSTURES = 200  # random ones, whose forces are predicted
NOISE_SHARE = 0.02  # of the rms force of a row
LEAST_NOISE_SHARE = 0.001  # of the rms force of the strongest row of the same kind
FRICTION_SHARE = (
    0.5  # of an effort that dry friction may use up; with more the effort is taken for a mistake of the file
)
UNITS = {"turning": "rad", "sliding": "m"}
DURATION = 20.0  # s, where no table says one
FREQUENCY = 0.1  # Hz of the guessed motion
HARMONICS = 3
SHARE = 0.6  # of range and speed that the guessed motion uses
CAREFUL_SPEED = {"turning": 5.0, "sliding": 0.5}  # rad/s, m/s


@dataclass(frozen=True)
class JointGuess:
    """Limits of one coordinate (rad or m, per s, per s²); `guessed` names those that no file gave."""

    name: str
    kind: str
    low: float
    high: float
    speed: float
    acceleration: float
    guessed: tuple[str, ...]


def guessed_limits(machine: Machine, model: Path) -> tuple[JointGuess, ...]:
    """For each coordinate that is led, limits of the URDF where they can be meant, and guesses elsewhere."""
    limits_of = urdf_limits(model) if model.suffix.lower() == ".urdf" else {}
    home = closed_home(machine) if machine.closed else np.zeros(machine.n)
    led = machine.independent if machine.closed else range(machine.n)
    names, kinds = machine.coordinates, machine.coordinate_kinds
    return tuple(_guess(names[k], kinds[k], limits_of.get(names[k], UrdfLimits()), float(home[k])) for k in led)


def _guess(name: str, kind: str, limit: UrdfLimits, home: float) -> JointGuess:
    low, high, wide = _range(kind, limit, home, LARGEST_HALF_RANGE if limit != UrdfLimits() else HALF_RANGE)
    guessed = ["acceleration", *(["range"] if wide else [])]
    speed = limit.velocity
    if not 0.0 < speed <= LARGEST_SPEED[kind]:
        speed = LARGEST_SPEED[kind]
        guessed.append("speed")
    return JointGuess(name, kind, low, high, speed, speed / RAMP, tuple(guessed))


def _range(kind: str, limit: UrdfLimits, home: float, reach: Mapping[str, float]) -> tuple[float, float, bool]:
    """The range of a file where it can be meant, and whether it is guessed: so far about home, or the part of a wide one that is near."""
    low, high, largest = limit.lower, limit.upper, LARGEST_HALF_RANGE[kind]
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return home - reach[kind], home + reach[kind], True
    if high - low <= 2.0 * largest:
        return low, high, False
    middle = min(max(home, low + largest), high - largest)
    return middle - largest, middle + largest, True


def guessed_efforts(machine: Machine, model: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Efforts of a URDF that its own dry friction leaves room in, by row, and those that it does not."""
    limits_of = urdf_limits(model) if model.suffix.lower() == ".urdf" else {}
    dry: dict[str, float] = {}
    for e in machine.elements:
        if e.jumps and list(e.on.values()) == [1.0] and math.isfinite(e.value):
            dry[next(iter(e.on))] = dry.get(next(iter(e.on)), 0.0) + abs(e.value)
    given = {c: x.effort for c, x in limits_of.items() if c in machine.coordinates and 0.0 < x.effort < math.inf}
    usable = {c: effort for c, effort in given.items() if dry.get(c, 0.0) < FRICTION_SHARE * effort}
    return usable, {c: effort for c, effort in given.items() if c not in usable}


def force_sizes(machine: Machine, limits: tuple[JointGuess, ...]) -> dict[str, float]:
    """Coordinate → rms force (N*m or N) in random states within these limits; nothing where the model cannot predict any."""
    if machine.closed or machine.base == "free" or machine.parameters.missing() or machine.parameters.values.size == 0:
        return {}
    rng = np.random.default_rng(0)
    low, high, speed, acceleration = (
        np.array([getattr(x, key) for x in limits]) for key in ("low", "high", "speed", "acceleration")
    )
    size = (POSTURES, len(limits))
    qd, qdd = (limit * rng.uniform(-0.5, 0.5, size) for limit in (speed, acceleration))
    m = Motion(np.arange(float(POSTURES)), rng.uniform(low, high, size), qd, qdd)
    force = inverse_dynamics(machine, m, "joints")
    return dict(zip(machine.coordinates, (float(x) for x in np.sqrt((force**2).mean(axis=0))), strict=True))


def guessed_noise(machine: Machine, sizes: Mapping[str, float]) -> dict[str, float]:
    """Coordinate → standard deviation of its force sensor: 2 % of the rms force, and 0.1 % of the strongest of its kind at least."""
    kinds = machine.kinds
    most = {kind: max((x for c, x in sizes.items() if kinds[c] == kind), default=0.0) for kind in set(kinds.values())}
    noise = {c: max(NOISE_SHARE * x, LEAST_NOISE_SHARE * most[kinds[c]]) for c, x in sizes.items()}
    return {c: float(f"{x:.2g}") if x > 0.0 else 1e-3 for c, x in noise.items()}


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
        *head_lines("A motion that identifies '{}'", "excite", machine, study, model, "-motion"),
        *(line for line in urdf_lines(model, machine, strict) if "impossible: unknown" not in line),
        *_rotors(model, machine),
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
        *key_lines(MotionSettings, "harmonics"),
        *key_lines(MotionSettings, "frequency", note="guessed"),
        "  # start: {joint: where it stands now, …} # the trajectory then leads there from rest",
        *_noise(noise),
        "search: {starts: 4}",
        *key_lines(ExciteFile, "rate", note="guessed", depth=0),
        *key_lines(ExciteFile, "periods", 5, depth=0),
    ]
    return as_file(lines)


def _rotors(model: Path, machine: Machine) -> list[str]:
    """Rotors that an identification will look for: the motion is to show them, and forces are predicted without them."""
    lines = rotor_lines(model, machine, ", value: 0")
    there = any(line.lstrip().startswith("- ") for line in lines)
    return [
        *(["  elements: # besides those of the model; 0: forces are predicted without them"] if there else []),
        *lines,
    ]


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


def simulate_template(model: Path, machine: Machine, table: Path | None, study: Path, strict: bool = False) -> str:
    """The text of a study file that leads a machine along a motion and records it as its sensors would."""
    limits = guessed_limits(machine, model)
    noise = guessed_noise(machine, force_sizes(machine, limits))
    sliding = [x.name for x in limits if x.kind == "sliding"]
    lines = [
        *head_lines("A simulated log of '{}'", "simulate", machine, study, model, "-simulated"),
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
    return as_file(lines)


def simulate_mechanism_template(model: Path, machine: Machine, study: Path) -> str:
    """The text of a study file that lets a machine in natural coordinates move as its loads drive it, read by the sensors of its file."""
    loads = mechanism_of(machine).loads  # with those of motors that no load stands for
    drives = [load.name for load in loads if isinstance(load, Drive)]
    lines = [
        *head_lines("A simulated log of '{}'", "simulate", machine, study, model, "-simulated"),
        *(["inputs:", "  formulas: # in the time t; guessed"] if drives else []),
        *(f"    {flow(name)}: 0*sin(2*pi*0.2*t)" for name in drives),
        "# start: {coordinates: {name: value}} # as the file assembles it if left out",
        f"duration: {DURATION:g} # s; guessed",
        "rate: 100 # Hz; guessed",
    ]
    return as_file(lines)


def _led(table: Path | None, machine: Machine, limits: tuple[JointGuess, ...], study: Path) -> list[str]:
    if table is None:
        return [*_fourier(limits), f"duration: {DURATION:g} # s; guessed"]
    seen = survey(table)
    time = time_column(seen.columns)
    missing = [x.name for x in limits if f"q.{x.name}" not in seen.columns]
    if missing or not time:
        what = "this is not the table of a motion of the model." if missing else "the table has no column of times."
        expected = "time, and q.C of every coordinate, as veridyn excite writes them"
        found = f"no {', '.join(f'q.{c}' for c in missing[:8])}" if missing else ", ".join(list(seen.columns)[:8])
        hint = "Leave the table out for a guessed motion, or name its columns under motion.columns."
        raise FileError(what, where=table.name, expected=expected, found=found, hint=hint)
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


def drive_limit_lines(machine: Machine, model: Path) -> list[str]:
    """Ranges, speeds and forces of the model's file where they can be meant, and those of a careful first experiment elsewhere."""
    suffix = model.suffix.lower()
    given = urdf_limits(model) if suffix == ".urdf" else mjcf_limits(model) if suffix in MJCF_ENDINGS else {}
    lines = []
    for c in machine.coordinates:
        own, kind = given.get(c, UrdfLimits()), machine.kinds[c]
        low, high, wide = _range(kind, own, 0.0, HALF_RANGE)
        speed = own.velocity if 0.0 < own.velocity < CAREFUL_SPEED[kind] else CAREFUL_SPEED[kind]
        guessed = ["range"] * wide + ["speed"] * (speed != own.velocity)
        force = f", force: {own.effort:g}" if np.isfinite(own.effort) and own.effort > 0.0 else ""
        notes = [f"guessed: {', '.join(guessed)}"] if guessed else []
        notes += [] if force else ["no limit of force is known; write force: …"]
        comment = f" # {'; '.join(notes)}" if notes else ""
        lines.append(f"  {flow(c)}: {{range: [{low:.4g}, {high:.4g}], speed: {speed:.3g}{force}}}{comment}")
    return lines
