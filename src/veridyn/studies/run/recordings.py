"""The logs of a study: files read, columns turned into channels in SI, shares taken.

One file is read once, however many shares of it are asked for. Gears stay with the machine (channels q_motor.M and force_motor.M
through its transmission); torque constants stand with the columns.

Motions of a log that does not fit the memory are made window by window as an estimator passes over them, and never kept. Each holds its
own samples and `margin` samples before and after them, which ``Sampling.trim`` leaves out again: there the filters of positions and of
equations start up. So equations are those of the whole log, but for `margin` samples at its two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, overload

import numpy as np

from veridyn.errors import DataError, Fault, FileError
from veridyn.files.log.columns import split_header
from veridyn.files.log.load import load_log
from veridyn.files.log.parts import LogFile, LogPart, Window, load_spread, open_log
from veridyn.files.units import to_si
from veridyn.files.yaml_reader import Place
from veridyn.identify.logged import motion
from veridyn.identify.pipeline.recording import Load, Recording
from veridyn.identify.regression.sampling import Sampling
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.signals.butterworth import overlap
from veridyn.signals.clock_offset import ClockOffset
from veridyn.signals.drive import DriveLog
from veridyn.signals.motion import Signals
from veridyn.studies.config.identify import IdentifyFile
from veridyn.studies.config.log import ColumnSettings, RecordingSettings, TableSettings
from veridyn.studies.config.study import Loaded, quantity
from veridyn.studies.result import fingerprint

SPARE_ROWS = 64  # rows beyond the margin, for interpolation and derivatives
ARRAYS = (".mat", ".npz")


class _Passing(Sequence[Motion]):
    """Motions that are made as one passes over them: one of them is found by counting."""

    @overload
    def __getitem__(self, k: int) -> Motion: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Motion]: ...
    def __getitem__(self, k: int | slice) -> Motion | Sequence[Motion]:
        if isinstance(k, slice):
            return list(islice(iter(self), *k.indices(len(self))))
        for found in islice(iter(self), k, None):
            return found
        raise IndexError(k)


@dataclass(frozen=True, eq=False)
class Streamed(_Passing):
    """The motions of rows `first` to `last` of a file, one for each window of `size` rows."""

    machine: Machine
    file: LogFile
    signals: Signals
    margin: int
    size: int
    first: int
    last: int
    mend: Callable[[dict[str, Channel]], dict[str, Channel]]

    def __len__(self) -> int:
        return max(1, -(-(self.last - self.first) // self.size))

    @property
    def samples(self) -> int:
        """About how many samples there are, margins included."""
        return self.last - self.first + 2 * self.margin * len(self)

    def __iter__(self) -> Iterator[Motion]:
        reach = self.margin + SPARE_ROWS
        for window in self.file.windows(self.size, 2 * reach, self.first, self.last):
            made = self._motion(window)
            if made is not None:
                yield made

    def _motion(self, window: Window) -> Motion | None:
        """The samples of a window with as much before and after as is left out again; None where it is all margin."""
        log = Experiment(self.mend(dict(window.log.channels)), window.log.name)
        whole = motion(self.machine, log, self.signals)
        lo, hi = (int(np.searchsorted(whole.t, at - 1e-9)) for at in (window.start, window.end))
        lo, hi = max(lo, self.margin), min(hi, len(whole) - self.margin)
        return whole[lo - self.margin : hi + self.margin] if hi > lo else None


@dataclass(frozen=True, eq=False)
class Chained(_Passing):
    """Motions of several sources, one after the other."""

    parts: tuple[Streamed, ...]

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def __iter__(self) -> Iterator[Motion]:
        for part in self.parts:
            yield from part

    @property
    def samples(self) -> int:
        return sum(part.samples for part in self.parts)


def margin_of(signals: Signals, sampling: Sampling, rate: float) -> int:
    """Samples on either side of a window that its filters reach for, a multiple of the decimation."""
    reach = overlap(signals.filter, rate) if signals.filter is not None else 0
    reach += sampling.margin(rate) if sampling.filtering else 0
    step = sampling.decimate
    return -(-(reach + 16) // step) * step


def with_margin(sampling: Sampling, margin: int) -> Sampling:
    """The sampling that leaves the margins out."""
    if sampling.drop:
        raise DataError("spans cannot be dropped from a log that is read in blocks.", where="drop")
    return replace(sampling, trim=margin)


@dataclass(frozen=True, eq=False, kw_only=True)
class StudyDrive(DriveLog):
    """The drive of a study: its `log` as read, `hashes` of its files, what its checks found, and the `offset` of the positions' clock."""

    log: Experiment
    hashes: Mapping[str, str]
    faults: tuple[Fault, ...] = ()
    offset: ClockOffset | None = None


@dataclass
class Recordings:
    """The logs of one study file, each read once. `hashes`: file → SHA-256 of its bytes; `files`: log → the file that is read in blocks."""

    loaded: Loaded[IdentifyFile]
    logs: list[Experiment] = field(default_factory=list)
    training: list[Recording] = field(default_factory=list)
    validation: list[Recording] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)
    files: dict[int, LogFile] = field(default_factory=dict)
    _numbers: dict[tuple[Path, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read them; without validation logs the last part of each training log is held out by whoever fits them."""
        study = self.loaded.study
        self.training = [self._taken(r, ("training", k)) for k, r in enumerate(study.training)]
        if isinstance(study.validation, tuple):
            self.validation = [self._taken(r, ("validation", k)) for k, r in enumerate(study.validation)]

    def scaled(self, channels: dict[str, Channel]) -> dict[str, Channel]:
        """Channels as read, times what the study says of their columns."""
        return _scaled(self.loaded, channels, self.loaded.study.log.columns)

    def rows_of(self, item: Recording) -> tuple[LogFile, int, int]:
        """The file of a log that is read in blocks, and the rows that are taken of it."""
        file = self.files[next(k for k, log in enumerate(self.logs) if log is item.log)]
        low, high = (round(share * file.rows) for share in item.share)
        return file, low, high

    def _taken(self, item: RecordingSettings, at: Place) -> Recording:
        number = self._number(item, at)
        if number in self.files and (
            item.start is not None or item.end is not None or item.drop or item.load is not None
        ):
            what, hint = "of a log that is read in blocks only a share can be taken.", "Use share."
            raise self.loaded.error_at(at, what, hint=hint)
        load = None if item.load is None else Load(**item.load.model_dump(exclude={"sigma"}))
        keys = {name: getattr(item, name) for name in ("share", "start", "end", "speeds", "drop")}
        return Recording(log=self.logs[number], load=load, place=at, in_blocks=number in self.files, **keys)

    def _number(self, item: RecordingSettings, at: Place) -> int:
        named = item.files or {"": item.file}
        keys = {p: (*at, "files", p) if item.files else (*at, "file") for p in named}
        files = {p: self.loaded.path(text, keys[p]) for p, text in named.items()}
        for p, file in files.items():
            if not file.is_file() and not (file / "metadata.yaml").is_file():
                hint = "Paths are relative to the study file; ${NAME} stands for a variable."
                raise self.loaded.error_at(keys[p], "there is no such log.", found=str(file), hint=hint)
        key = tuple(files.values())
        if key not in self._numbers:
            self._numbers[key] = len(self.logs)
            block = self.loaded.study.log.block
            if block is not None and not item.files:
                opened = _opened(self.loaded, files[""])
                self.files[self._numbers[key]] = opened
                window = next(opened.windows(block, 0)).log
                self.logs.append(Experiment(self.scaled(dict(window.channels)), window.name))
            else:
                self.logs.append(spread_log(self.loaded, files, at) if item.files else self._whole(files[""]))
            self.hashes |= {str(named[p]): fingerprint(file) for p, file in files.items()}
        return self._numbers[key]

    def _whole(self, file: Path) -> Experiment:
        return single_log(self.loaded, self.loaded.study.log, file, own_clocks=True)


def _opened(loaded: Loaded[IdentifyFile], file: Path) -> LogFile:
    """A log that is read in blocks."""
    log = loaded.study.log
    time, unit = split_header(log.time)
    units = {time: unit} if unit else {}
    if log.header:
        raise loaded.error_at(("log", "header"), "a log that is read in blocks needs a header row of its own.")
    wanted = {channel: c.column for channel, c in log.columns.items()}
    given = {channel: c.unit for channel, c in log.columns.items() if c.unit}
    if log.clock_rate is not None:
        return open_log(
            file, wanted, given, delimiter=log.delimiter, decimal=log.decimal, rate=log.clock_rate, skip=log.skip
        )
    return open_log(file, {time: time} | wanted, units | given, time, log.delimiter, log.decimal, skip=log.skip)


def single_log(
    loaded: Loaded[Any], log: TableSettings, file: Path, place: Place = ("log",), own_clocks: bool = False
) -> Experiment:
    """One file as a section of a study describes it: its channels in SI, times what the study says of their columns.

    Channels that do not share a clock are refused unless `own_clocks`.
    """
    time, unit = split_header(log.time) if log.clock_rate is None else ("", "")
    units = {time: unit} if unit else {}
    wanted = {channel: c.column for channel, c in log.columns.items()}
    given = {channel: c.unit for channel, c in log.columns.items() if c.unit}
    how: dict[str, Any] = {"delimiter": log.delimiter, "decimal": log.decimal, "name": file.name}
    how |= {"rate": log.clock_rate, "skip": log.skip} | ({"time": time} if time else {})
    clock_column = [time] if time else []
    if log.header and file.suffix.lower() not in ARRAYS:
        by_header = {c.column: c.unit for c in log.columns.values() if c.unit}
        missing = [c for c in (*clock_column, *wanted.values()) if c not in log.header]
        if missing:
            at: Place = (*place, "time") if missing[0] == time else (*place, "columns")
            raise loaded.error_at(at, f"'{missing[0]}' is not in the header.", ", ".join(log.header))
        names = [h if h == time or h in wanted.values() else "" for h in log.header]
        read = load_log(file, names, units | by_header, **how)
        channels = {channel: replace(read[column], name=channel) for channel, column in wanted.items()}
    else:
        read = load_log(file, {c: c for c in clock_column} | wanted, units | given, **how)
        channels = dict(read.channels)
    clock = next(iter(channels.values())).t if channels else np.zeros(0)
    other = [n for n, c in channels.items() if not np.array_equal(c.t, clock, equal_nan=True)]
    if other and not own_clocks:
        what = f"its channels have clocks of their own in {file.name}, and this study needs one for all."
        hint = "Bring them to one with veridyn.signals.resample.resample, and save that as a table."
        raise loaded.error_at((*place, "columns", other[0]), what, hint=hint)
    return Experiment(_scaled(loaded, channels, log.columns, place), file.name, read.notes)


def spread_log(loaded: Loaded[Any], files: Mapping[str, Path], at: Place) -> Experiment:
    """A log of several files, as `log.parts` says how each is read."""
    log = loaded.study.log
    odd = [p for p in files if p not in log.parts]
    if odd:
        known = ", ".join(log.parts) or "none"
        raise loaded.error_at((*at, "files", odd[0]), f"log.parts does not say how '{odd[0]}' is read.", found=known)
    parts = {
        p: LogPart(file, s.header, s.interleaved, s.time, s.delimiter, s.decimal, s.rate, s.skip)
        for p, file in files.items()
        for s in (log.parts[p],)
    }
    columns = {channel: (c.column, c.unit or "1") for channel, c in log.columns.items()}
    name = " + ".join(file.name for file in files.values())
    read = load_spread(parts, columns, name, log.clock_rate)
    return Experiment(_scaled(loaded, dict(read.channels), log.columns), name)


def _scaled(
    loaded: Loaded[Any], channels: dict[str, Channel], columns: Mapping[str, ColumnSettings], place: Place = ("log",)
) -> dict[str, Channel]:
    """Channels times what the study says: signs, and torque constants with their units."""
    out, faults = {}, []
    for name, c in channels.items():
        how = columns[_settings_of(name, columns)].times
        try:
            factor, unit = quantity(how) if isinstance(how, str) else (float(how), "1")
            factor, unit = to_si(factor, unit)
            _, product = to_si(1.0, c.unit if unit == "1" else f"{c.unit}*({unit})")
            out[name] = c if (factor, unit) == (1.0, "1") else Channel(name, c.t, factor * c.values, product)
        except DataError as error:
            found: list[Fault] = list(error.faults)
            faults += [loaded.fault((*place, "columns", name), f.what, f.expected, f.found, f.hint) for f in found]
    if faults:
        raise FileError(faults, loaded.file.name)
    return out


def _settings_of(channel: str, columns: Mapping[str, ColumnSettings]) -> str:
    """The name under which the study has a channel: its own, or the beginning of it where one line means several."""
    while channel not in columns and "." in channel:
        channel = channel.rpartition(".")[0]
    return channel
