"""The log of an observed mechanism as its study file names it: clock, gaps, columns and units checked before a filter sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.load import channels
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import OWN_DEVIATION, clock_faults
from veridyn.observe.readings import AVAILABLE
from veridyn.signals.clock_offset import offset_findings, sensor_clock_offsets
from veridyn.studies.config.observe import ObserveFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.observe_channels import derived, with_places
from veridyn.studies.run.recordings import single_log

Array = NDArray[np.float64]
PAUSE = 10.0  # times the usual step: a pause of the log that is told
SHOWN = 3
MOST_STEPS = 1e6  # of the integration between two readings


def observed_log(loaded: Loaded[ObserveFile], system: MachineSystem, file: Path) -> tuple[Experiment, tuple[str, ...]]:
    """The log from start to end, its clock and its units checked, and what was found in it; gaps are left to the filter."""
    s = loaded.study.log
    try:
        read = single_log(loaded, with_places(s), file)
    except DataError as error:
        raise loaded.error([_of_column(loaded, fault, file) for fault in error.faults]) from error
    clock = next(iter(read.channels.values())).t
    faults = [
        loaded.fault(("log", "time"), f"{file.name}: {f.what}", f.expected, f.found) for f in clock_faults(clock, "")
    ]
    if faults:
        raise loaded.error(faults)
    _refuse_endless(loaded, clock, file)
    read, findings = derived(loaded, read)
    units = dict(zip(system.table.names, system.table.units, strict=True))
    units |= {f"{name}{OWN_DEVIATION}": unit for name, unit in units.items()}
    units |= {name: input_unit(system, name) for name in system.inputs}
    low, high = (-np.inf if s.start is None else s.start), (np.inf if s.end is None else s.end)
    inside = (clock >= low) & (clock <= high)
    if inside.sum() < 2:
        found = f"{clock[0]:g} s to {clock[-1]:g} s in {file.name}"
        raise loaded.error(loaded.fault(("log",), "fewer than two samples lie between start and end.", found=found))
    channels, span = dict[str, Channel](), float(clock[inside][-1] - clock[inside][0])
    for name, k in zip(system.table.names, system.table.owner, strict=True):
        if (delay := system.table.sensors[k].delay) >= span:
            what = "its sensor is later than the log is long."
            faults.append(loaded.fault(("log", "columns", name), what, f"a delay below {span:.3g} s", f"{delay:g} s"))
    for name, c in read.channels.items():
        at, here = ("log", "columns", name), (c.t >= low) & (c.t <= high)
        finite = np.isfinite(read[name.removesuffix(OWN_DEVIATION)].values[here])
        if name.endswith(AVAILABLE):
            channels[name] = Channel(name, c.t[here], c.values[here], c.unit)
            continue
        if units[name] and c.unit != units[name]:
            faults.append(loaded.fault(at, "its unit is not that of the mechanism.", units[name], c.unit))
        if name in system.inputs and not finite.all():
            first = float(c.t[here][int(np.argmin(finite))])
            what = f"a known force has no gaps, and this one is not a number at {first:.6g} s."
            faults.append(loaded.fault(at, what, found=f"{int((~finite).sum())} such samples in {file.name}"))
        elif not finite.any():
            faults.append(
                loaded.fault(at, f"its column in {file.name} holds no number.", hint="List the sensor under without.")
            )
        kept = finite if s.empty == "none" and name not in system.inputs else slice(None)
        channels[name] = Channel(name, c.t[here][kept], c.values[here][kept], c.unit)
    if faults:
        raise loaded.error(faults)
    log = Experiment(channels, read.name)
    free = system.model.free
    offsets = offset_findings(sensor_clock_offsets(system.table.sensors, log)) if free else ()
    return log, tuple(f.message for f in (*findings, *offsets))


def input_unit(system: MachineSystem, name: str) -> str:
    """The unit of a channel of what acts; empty for a signal, which has the unit that its gain is for."""
    model: Any = system.model
    head, _, rest = name.partition(".")
    if head in ("q", "qd", "qdd") and rest in model.prescribed:
        return model.unit_of(rest) + {"q": "", "qd": "/s", "qdd": "/s^2"}[head]
    if system.formulation != "tree":
        return model.force_unit(name)
    if any(name in channels(load) for load in model.tree.loads):
        return model.varying_unit(name)
    if head == "wrench":
        return "N" if rest.rpartition(".")[2].startswith("f") else "N*m"
    return "" if head == "signal" else model.force_unit(rest)


def gaps(t: Array) -> list[str]:
    """Sentences about pauses of a clock: the model goes on alone, and its bands grow."""
    steps = np.diff(t)
    if not len(steps):
        return []
    usual = float(np.median(steps))
    found = [(float(t[k]), float(t[k + 1])) for k in np.flatnonzero(steps > PAUSE * usual)]
    out = [
        f"the log pauses from {a:.6g} s to {b:.6g} s: the model goes on alone, and its bands grow."
        for a, b in found[:SHOWN]
    ]
    return out + ([f"the log has {len(found) - SHOWN} more such pauses."] if len(found) > SHOWN else [])


def _of_column(loaded: Loaded[ObserveFile], fault: Fault, file: Path) -> Fault:
    """A fault of a column at the line where the study names it."""
    column = fault.at[1] if fault.at[:1] == ("column",) else None
    if column not in loaded.study.log.columns:
        return fault
    at, expected = ("log", "columns", str(column)), fault.expected
    if fault.at[2:] == ("unit",):
        expected = f"{column}: COLUMN [unit], or a unit in the header of {file.name}"
    return loaded.fault(at, fault.what, expected, fault.found, fault.hint)


def _refuse_endless(loaded: Loaded[ObserveFile], clock: Array, file: Path) -> None:
    """A pause, or a step of the integration, with which a run would not end."""
    step, steps = loaded.study.filter.step, np.diff(clock)
    longest = float(steps.max(initial=0.0))
    if longest <= MOST_STEPS * step:
        return
    usual, k = float(np.median(steps)), int(np.argmax(steps))
    if longest > PAUSE * usual:
        fault = loaded.fault(
            ("log", "time"),
            f"{file.name}: the clock jumps.",
            f"at most {MOST_STEPS * step:.3g} s between two samples, a million steps of the integration",
            f"{clock[k]:.6g} s then {clock[k + 1]:.6g} s at sample {k + 1}",
            "Two recordings in one file, or a broken stamp? Choose one part by log.start and log.end.",
        )
    else:
        fault = loaded.fault(
            ("filter", "step"),
            "the integration would take more than a million steps from sample to sample.",
            f"a step not far below {usual:.3g} s, that of the log",
            f"{step:g} s",
            "Is the unit of log.time right?",
        )
    raise loaded.error(fault)
