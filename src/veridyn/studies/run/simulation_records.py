"""What is recorded of a simulation: the log by clocks, the truth, and a study file that reads the log.

The sensors are those of the study, or perfect ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from veridyn.errors import DataError, did_you_mean
from veridyn.files.access import is_shipped
from veridyn.files.log.tables import save_log
from veridyn.files.yaml_reader import Place
from veridyn.identify.regression.sampling import rounded_down
from veridyn.mechanics.natural.description.of_machine import mechanism_of
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.single_track import uncertain
from veridyn.signals.drive import CHANNELS
from veridyn.simulate.imperfection import Imperfection, Imperfections
from veridyn.studies.config.simulate import SimulateFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.config.text import flow
from veridyn.studies.result import Run

# What perfect sensors read besides positions, by pattern of channels.
READ_CHANNELS = (
    "force.*",
    "base.omega.*",
    "base.acceleration.*",
    "base.velocity.*",
    "wrench.*",
    "signal.*",
    "command.*",
)
SAME_STAMP_S = 1e-9  # s: stamps nearer than this are one
SLOW_FACTOR = 20.0  # times the speed below which a simulator rounds friction off: from there on it is full to 0.1 %
SLOW_SHARE = 0.3  # of the samples of a coordinate that a dead zone may leave out (chosen)
# Small noise of a car whose equations are exact, for a filter must have some: a tenth to a half of that of a real one (chosen).
EXACT_EQUATIONS: Mapping[str, float] = MappingProxyType(
    {"slip_error": 5e-4, "bank": 5e-4, "lateral": 0.01, "yaw": 0.01}
)


def named_sensors(loaded: Loaded[SimulateFile]) -> dict[str, Imperfection]:
    """The sensors that a study names, by pattern of channels."""
    return {pattern: Imperfection(**s.model_dump()) for pattern, s in loaded.study.sensors.items()}


def perfect_sensors(machine: Machine) -> dict[str, Imperfection]:
    """Positions and forces as they are; of a machine with loops, positions of those joints alone that its log would have."""
    positions = [f"q.{machine.coordinates[k]}" for k in machine.independent] if machine.closed else ["q.*"]
    wanted = [*positions, *READ_CHANNELS]
    return {pattern: Imperfection() for pattern in wanted}


def read_log(
    loaded: Loaded[SimulateFile], sensors: dict[str, Imperfection], truth: Experiment, rng: np.random.Generator
) -> Experiment:
    """The log; a pattern of the study that fits nothing is refused with its line, one of the default's is left out."""
    own = loaded.study.sensors
    faults, kept = [], {}
    for pattern, sensor in sensors.items():
        fits = any(Imperfections({pattern: sensor}).of(name) for name in truth)
        if fits:
            kept[pattern] = sensor
        elif pattern in own:
            at: Place = ("sensors", pattern)
            hint = did_you_mean(pattern, truth.names)
            faults.append(loaded.fault(at, f"'{pattern}' is no channel of this simulation.", hint=hint))
    if faults:
        raise loaded.error(faults)
    try:
        return Imperfections(kept).read(truth, rng)
    except DataError as error:
        found = [loaded.fault(("sensors",), f"{f.where}: {f.what}", f.expected, f.found, f.hint) for f in error.faults]
        raise loaded.error(found) from error


def same_start(log: Experiment) -> Experiment:
    """The log from when every sensor of the common clock speaks: those that come late have nothing to say at the very beginning."""
    first: dict[float, float] = {}
    steps = {name: round(float(c.t[1] - c.t[0]), 12) for name, c in log.channels.items()}
    for name, c in log.channels.items():
        first[steps[name]] = max(first.get(steps[name], -np.inf), float(c.t[0]))
    channels = {}
    for name, c in log.channels.items():
        keep = c.t >= first[steps[name]] - SAME_STAMP_S
        channels[name] = Channel(name, c.t[keep], c.values[keep], c.unit)
    return replace(log, channels=channels)


def by_clock(log: Experiment) -> list[Experiment]:
    """The log in parts, one for each clock, the longest first."""
    parts: list[dict[str, Channel]] = []
    for name, c in log.channels.items():
        for part in parts:
            t = next(iter(part.values())).t
            if len(t) == len(c.t) and np.abs(t - c.t).max(initial=0.0) <= SAME_STAMP_S:
                part[name] = replace(c, t=t)
                break
        else:
            parts.append({name: c})
    made = [replace(log, channels=part) for part in parts]
    return sorted(made, key=lambda e: -len(next(iter(e.channels.values()))))


def on_one_clock(log: Experiment) -> Experiment:
    """The log on the union of its clocks, not a number where a channel has no reading."""
    every = np.unique(np.concatenate([c.t for c in log.channels.values()]))
    t = every[np.diff(every, prepend=-np.inf) > SAME_STAMP_S]
    channels = {}
    for name, c in log.channels.items():
        values = np.full(len(t), np.nan)
        values[np.searchsorted(t, c.t + SAME_STAMP_S, side="right") - 1] = c.values
        channels[name] = Channel(name, t, values, c.unit)
    return replace(log, channels=channels)


def write_logs(run: Run, machine: Machine, log: Experiment, truth: Experiment, suffix: str) -> list[str]:
    """truth, and the log: one table for each clock, log and log-2, log-3 …; in natural coordinates one with empty cells."""
    save_log(truth, run.folder / f"truth.{suffix}")
    parts = [on_one_clock(log)] if machine.formulation == "natural" else by_clock(log)
    names = [f"log.{suffix}" if k == 0 else f"log-{k + 1}.{suffix}" for k in range(len(parts))]
    for name, part in zip(names, parts):
        save_log(part, run.folder / name)
    return names


def keep_simulation(
    loaded: Loaded[SimulateFile], machine: Machine, log: Experiment, truth: Experiment, run: Run
) -> None:
    """Write all that a simulation leaves behind."""
    names = write_logs(run, machine, log, truth, loaded.study.format)
    run.write_text(*next_study(loaded, machine, log, truth, names, run.folder))


def next_study(
    loaded: Loaded[SimulateFile],
    machine: Machine,
    log: Experiment,
    truth: Experiment,
    names: Sequence[str],
    folder: Path,
) -> tuple[str, str]:
    """The name and the text of a study file beside the log that reads it: identify for a tree, observe for natural coordinates; of a car
    identify where it has uncertain parameters."""
    if machine.formulation == "single_track":
        kind = "identify" if uncertain(machine) else "observe"
        return f"{kind}.yaml", _drive(loaded, machine, log, truth, names, folder, kind)
    if machine.formulation == "natural":
        return "observe.yaml", _observe(loaded, machine, log, names[0], folder)
    return "identify.yaml", _identify(loaded, machine, log, truth, names, folder)


def _source(loaded: Loaded[SimulateFile], folder: Path) -> dict[str, Any]:
    """The key and the file, or fit, of the model that the study names, as a study in another folder names it."""
    key = "fit" if loaded.study.model.fit else "file"
    text = getattr(loaded.study.model, key)
    if is_shipped(text):
        return {key: text}
    return {key: seen_from(folder.resolve(), loaded.path(text, ("model", key)).resolve())}


def seen_from(folder: Path, path: Path) -> str:
    """`path` relative to `folder`; absolute where there is no such way, as between two drives of Windows."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return path.as_posix()


def _columns(log: Experiment, names: Mapping[str, str]) -> list[str]:
    return [f"    {flow(channel)}: {flow(f'{column} [{log[column].unit}]')}" for channel, column in names.items()]


def dead_zones(machine: Machine, truth: Experiment, below: float) -> tuple[dict[str, float], list[str]]:
    """Coordinate, or element on several, by its parameter → speed below which dry friction that is rounded off `below` a speed is not full.

    Where a motion is so slow that this would leave out more than `SLOW_SHARE` of it, the speed that leaves out this share; those are listed
    as well.
    """
    zones, slow = {}, []
    for e in machine.elements:
        if not e.jumps or any(f"qd.{c}" not in truth for c in e.on):
            continue
        name = next(iter(e.on)) if list(e.on.values()) == [1.0] else e.parameter_name
        speed = np.abs(np.sum([a * truth[f"qd.{c}"].values for c, a in e.on.items()], axis=0))
        most = rounded_down(float(np.quantile(speed, SLOW_SHARE)))
        zones[name] = min(SLOW_FACTOR * below, most)
        if most < SLOW_FACTOR * below and name not in slow:
            slow.append(name)
    return {name: zone for name, zone in zones.items() if zone > 0.0}, slow


def _identify(
    loaded: Loaded[SimulateFile],
    machine: Machine,
    log: Experiment,
    truth: Experiment,
    names: Sequence[str],
    folder: Path,
) -> str:
    s = loaded.study
    own = s.model.model_copy(update={**_source(loaded, folder), "formulation": None})
    used = {n: n for n in log.channels if not n.startswith(("qd.", "qdd.", "command."))}
    rounded = s.motion is None or s.controller is not None
    lines = [
        f"# The log of a simulated '{machine.name}', to be identified: veridyn identify identify.yaml",
        "# The model is the true one, so its priors are the truth; signals, sampling and estimator are for you to choose.",
        "veridyn: 1",
        "kind: identify",
        f"name: {s.name}-identified",
        f"model: {flow(own)}",
        "log:",
        "  time: t [s]",
    ]
    if len(names) > 1:
        lines += ["  parts: # one table for each clock"]
        lines += [f'    {Path(name).stem}: {{time: "t [s]"}}' for name in names]
    lines += ["  columns:", *_columns(log, used)]
    if len(names) > 1:
        inside = ", ".join(f"{Path(name).stem}: {name}" for name in names)
        lines += [f"training: [{{files: {{{inside}}}, share: [0, 0.7]}}]"]
        lines += [f"validation: [{{files: {{{inside}}}, share: [0.7, 1]}}]"]
    else:
        lines += [f"training: [{{file: {names[0]}, share: [0, 0.7]}}]"]
        lines += [f"validation: [{{file: {names[0]}, share: [0.7, 1]}}]"]
    below = s.integrator.friction_speed
    zones, slow = dead_zones(machine, truth, below) if rounded else ({}, [])
    if rounded and below == 0.0 and any(e.jumps for e in machine.elements):
        lines += [
            "sampling: {filter: none, dead_zone: auto} # dry friction holds in this log: samples near standstill are left out"
        ]
    elif zones:
        lines += [f"sampling: # the simulator rounds dry friction off below {below:g}", "  filter: none"]
        lines += ["  dead_zone:", *(f"    {flow(name)}: {zone:g}" for name, zone in zones.items())]
    if slow:
        fair = min(zones.get(name, below) for name in slow) / SLOW_FACTOR
        lines += [
            f"# Slow beside {below:g}: {', '.join(slow)}. Their dry friction is never full in this log, and comes out too small;",
            f"# simulate with integrator: {{friction_speed: {fair:.1g}}} to have it as the model says.",
        ]
    return "\n".join(lines) + "\n"


def _drive(
    loaded: Loaded[SimulateFile],
    machine: Machine,
    log: Experiment,
    truth: Experiment,
    names: Sequence[str],
    folder: Path,
    kind: str,
) -> str:
    s = loaded.study
    noise: dict[str, Any] = {**EXACT_EQUATIONS}
    noise["bank"] = max(noise["bank"], float(f"{np.sqrt((truth['bank'].values ** 2).mean()):.2g}"))
    noise |= {"tuned": [*EXACT_EQUATIONS]} if kind == "identify" else {}
    own = _source(loaded, folder)
    own |= {"formulation": "single_track"} | ({"unexcited": s.model.unexcited} if s.model.fit else {})
    used = {n: n for n in log.channels if n in CHANNELS}
    unread = [n for n in log.channels if n not in CHANNELS]
    lines = [
        f"# The log of a simulated '{machine.name}': veridyn {kind} {kind}.yaml",
        "# The model is the true one, so its priors are the truth, and its equations leave nothing out: their noise is small.",
        "veridyn: 1",
        f"kind: {kind}",
        f"name: {s.name}-{'identified' if kind == 'identify' else 'observed'}",
        f"model: {flow(own)}",
        "log:",
        *([f"  file: {names[0]}", "  time: t [s]"] if len(names) == 1 else []),
    ]
    if len(names) > 1:
        lines += ["  files: # one table for each clock", *(f"    {Path(name).stem}: {name}" for name in names)]
        lines += ["  parts:", *(f'    {Path(name).stem}: {{time: "t [s]"}}' for name in names)]
    lines += ["  columns:", *_columns(log, used)]
    lines += [f"    # no channels of a drive: {', '.join(unread)}"] if unread else []
    lines += [f"noise: {flow(noise)}"]
    return "\n".join(lines) + "\n"


def _observe(loaded: Loaded[SimulateFile], machine: Machine, log: Experiment, name: str, folder: Path) -> str:
    s = loaded.study
    outputs = [c for i in machine.sensors for c in i.channels(machine.dimension)]
    kept = [i.name for i in machine.sensors if all(c in log for c in i.channels(machine.dimension))]
    without = [i.name for i in machine.sensors if i.name not in kept]
    used = {c: c for c in outputs if c in log}
    loads = mechanism_of(machine).loads  # with those of motors that no load stands for
    used |= {load.name: f"load.{load.name}" for load in loads if f"load.{load.name}" in log}
    own = _source(loaded, folder)
    own |= {k: v for k in ("unexcited", "formulation") if (v := getattr(s.model, k)) is not None}
    gaps = any(len(c) != len(next(iter(log.channels.values()))) for c in log.channels.values())
    lines = [
        f"# The log of a simulated '{machine.name}', to be observed: veridyn observe observe.yaml",
        "# The sensors' figures are those of the model file. The log chooses the process noise, unless process_noise: is given.",
        "veridyn: 1",
        "kind: observe",
        f"name: {s.name}-observed",
        f"model: {flow(own)}",
        *([f"without: {flow(without)}"] if without else []),
        "log:",
        f"  file: {name}",
        "  time: t [s]",
        *(["  empty: none # each sensor has a clock of its own"] if gaps else []),
        "  columns:",
        *_columns(log, used),
    ]
    if s.start.coordinates:
        lines += [f"start: {{coordinates: {flow(s.start.coordinates)}}}"]
    return "\n".join(lines) + "\n"
