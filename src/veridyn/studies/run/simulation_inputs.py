"""What drives a simulated machine: inputs as functions of time, and the motion it is to make, as a study file gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError, did_you_mean
from veridyn.files.expressions import function_of
from veridyn.files.log.load import survey
from veridyn.files.units import dimension
from veridyn.files.yaml_reader import Place
from veridyn.model.experiment import Experiment
from veridyn.model.motion import Reference
from veridyn.signals.trajectory import FourierTrajectory, SampledTrajectory
from veridyn.studies.config.log import ColumnSettings, TableSettings
from veridyn.studies.config.simulate import FourierSettings, SimulateFile
from veridyn.studies.config.study import Loaded
from veridyn.studies.run.machine import existing_file
from veridyn.studies.run.recordings import single_log

OfTime = Callable[[float], float]
ORDERS = {"q": "", "qd": "/s", "qdd": "/s^2"}


@dataclass(frozen=True)
class Led:
    """A motion of the coordinates `names`; `length` (s) where it comes from a table."""

    reference: Reference
    names: tuple[str, ...]
    length: float | None = None


def duration_of(loaded: Loaded[SimulateFile], led: Led | None) -> float:
    """How long to simulate, s: as the study says, or as long as the table of its motion."""
    wanted = loaded.study.duration
    if led is None or led.length is None:
        assert wanted is not None  # the settings refused a study without
        return wanted
    if wanted is not None and wanted > led.length + 1e-9:
        found = f"{wanted:g} s, and the table of the motion has {led.length:.6g} s"
        raise loaded.error_at(("duration",), "the motion ends before.", found=found)
    return led.length if wanted is None else wanted


def given_inputs(loaded: Loaded[SimulateFile], units: Mapping[str, str], duration: float) -> dict[str, OfTime]:
    """Inputs by name, each a function of time; `units`: every input the machine has → its unit."""
    s = loaded.study.inputs
    faults = [
        loaded.fault(("inputs", section, name), f"'{name}' is no input of this machine.", hint=_near(name, list(units)))
        for section, names in (("formulas", s.formulas), ("columns", s.columns))
        for name in names
        if name not in units
    ]
    out: dict[str, OfTime] = {}
    for name, text in s.formulas.items():
        try:
            out[name] = _placed(loaded, name, function_of(text)) if isinstance(text, str) else _constant(float(text))
        except ModelError as error:
            at = ("inputs", "formulas", name)
            faults += [loaded.fault(at, f.what, f.expected, f.found, f.hint) for f in error.faults]
    if faults:
        raise loaded.error(faults)
    if s.file:
        table = _table(loaded, s, ("inputs",), {name: units[name] for name in s.columns})
        for name, channel in table.channels.items():
            t = channel.t - channel.t[0]
            if t[-1] < duration - 1e-9:
                at = ("inputs", "file")
                found = f"{t[-1]:.6g} s, and the simulation lasts {duration:.6g} s"
                raise loaded.error_at(at, "its table ends before the simulation does.", found=found)
            out[name] = _tabled(t, channel.values, s.between)
    return out


def _near(name: str, known: list[str]) -> str:
    return did_you_mean(name, known) if known else "It has none."


def _placed(loaded: Loaded[SimulateFile], name: str, formula: OfTime) -> OfTime:
    """A formula that is refused with its line and the time at which it cannot be computed."""

    def value(t: float) -> float:
        try:
            return formula(t)
        except ModelError as error:
            at: Place = ("inputs", "formulas", name)
            raise loaded.error([loaded.fault(at, f.what, found=f"t = {t:g} s") for f in error.faults]) from error

    return value


def _constant(value: float) -> OfTime:
    return lambda _: value


def _tabled(t: Array, values: Array, between: str) -> OfTime:
    if between == "linear":
        return lambda time: float(np.interp(time, t, values))
    return lambda time: float(values[max(int(np.searchsorted(t, time + 1e-12, side="right")) - 1, 0)])


def followed(loaded: Loaded[SimulateFile], units: Mapping[str, str], at_least: Sequence[str]) -> Led:
    """The motion that a study asks for: of the coordinates `at_least`, or of others that its table has in their place.

    `units`: every coordinate of the machine → its unit.
    """
    s = loaded.study.motion
    assert s is not None
    if s.fourier is not None:
        return Led(_fourier(loaded, s.fourier, tuple(at_least)), tuple(at_least))
    file = existing_file(loaded, s.file, ("motion", "file"))
    columns = dict(s.columns)
    if not columns:
        own = {c: ColumnSettings(column=c) for c in survey(file).columns}
        columns = {channel: own[channel] for order in ORDERS for c in units if (channel := f"{order}.{c}") in own}
    known = {f"{order}.{c}": unit + per for c, unit in units.items() for order, per in ORDERS.items()}
    odd = [name for name in columns if name not in known]
    if odd:
        at = ("motion", "columns", odd[0])
        hint = did_you_mean(odd[0], list(known))
        raise loaded.error_at(at, f"'{odd[0]}' is no channel of a motion of this machine.", hint=hint)
    have = [c for c in units if f"q.{c}" in columns]
    names = tuple(at_least) if set(at_least) <= set(have) else tuple(have)
    if not names:
        expected = ", ".join(f"q.{c}" for c in at_least)
        raise loaded.error_at(("motion", "columns"), f"no column of {file.name} holds positions.", expected)
    orders = [o for o in ORDERS if all(f"{o}.{c}" in columns for c in names)]
    orders = list(ORDERS) if len(orders) == len(ORDERS) else ["q"]
    wanted = {f"{o}.{c}": columns[f"{o}.{c}"] for o in orders for c in names}
    read = _table(loaded, s.model_copy(update={"columns": wanted}), ("motion",), {n: known[n] for n in wanted}, file)
    clock = read[f"q.{names[0]}"].t
    try:
        sampled = SampledTrajectory(clock, *(np.column_stack([read[f"{o}.{c}"].values for c in names]) for o in orders))
    except DataError as error:
        faults = [loaded.fault(("motion", "file"), f.what, f.expected, f.found) for f in error.faults]
        raise loaded.error(faults) from error
    return Led(sampled.from_zero(), names, sampled.length)


def _table(
    loaded: Loaded[SimulateFile],
    settings: TableSettings,
    place: Place,
    units: Mapping[str, str],
    file: Path | None = None,
) -> Experiment:
    """A table of a study in SI, its units those wanted."""
    found = existing_file(loaded, getattr(settings, "file", ""), (*place, "file")) if file is None else file
    read = single_log(loaded, settings, found, place)
    faults = []
    for name, channel in read.channels.items():
        if dimension(channel.unit) != dimension(units[name]):
            at = (*place, "columns", name)
            faults.append(loaded.fault(at, "its unit is not that of the machine.", units[name], channel.unit))
        if not np.isfinite(channel.values).all():
            row = int(np.argmin(np.isfinite(channel.values))) + 1
            at = (*place, "columns", name)
            faults.append(loaded.fault(at, f"its column in {found.name} has gaps.", found=f"the first in row {row}"))
    if faults:
        raise loaded.error(faults)
    return read


def _fourier(loaded: Loaded[SimulateFile], s: FourierSettings, names: tuple[str, ...]) -> FourierTrajectory:
    faults = [
        loaded.fault(
            ("motion", "fourier", section, name),
            f"'{name}' is not among the coordinates to lead.",
            hint=did_you_mean(name, names),
        )
        for section, given in (("centre", s.centre), ("sine", s.sine), ("cosine", s.cosine))
        for name in given
        if name not in names
    ]
    if faults:
        raise loaded.error(faults)
    most = max((len(a) for a in (*s.sine.values(), *s.cosine.values())), default=0) or 1

    def amplitudes(given: Mapping[str, tuple[float, ...]]) -> Array:
        return np.array([[*given.get(c, ()), *[0.0] * (most - len(given.get(c, ())))] for c in names])

    centre = np.array([s.centre.get(c, 0.0) for c in names])
    return FourierTrajectory(centre, amplitudes(s.sine), amplitudes(s.cosine), s.frequency, s.start)
