"""Logs in measurement data files of ASAM, MDF 3 and 4 (.mf4, .mdf, .dat), read by asammdf, of the extra ``logs``.

    load_mdf("drive.mf4", {"speed": "VehSpd", "yaw_rate": "IMU_YawRate"})        # each on its own clock, in SI

A file holds groups of channels, and each group its clock. Units are the file's; where it has none, or one that is not known, `units` gives
it. Samples that the file marks as invalid are NaN. Where several groups have a channel of one name, it is asked for as "name@group".
Format: ASAM MDF 4.2.0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Fault, FileError
from veridyn.files.access import MDF_WORDS, READER_ERRORS, UNFINISHED, existing_file, too_large, unreadable
from veridyn.files.log.columns import DEFAULT_CLOCK, Columns, Samples, Source, experiment_of_source
from veridyn.model.experiment import Experiment

# Units as measurement tools write them, where that is not the symbol.
SPELLED = {"-": "1", "[-]": "1", "°C": "degC", "deg C": "degC", "°/s": "deg/s", "U/min": "rpm"}
ORIGINAL = 0  # the place of data that were not unpacked elsewhere
LARGEST = 1 << 28  # bytes that one packed block may hold; the format asks for 4 MB at most
EMPTY = Fault("it holds no samples.", expected="a group that was recorded")
TIME = 1  # the kind of clock that counts seconds; others count angles, metres or samples
WORDS = range(6, 16)  # types of data that are no numbers, in MDF 4: texts, bytes, dates
WORDS_3 = (7, 8)  # and in MDF 3
CLOCKS = {0: "no quantity", 2: "an angle", 3: "a distance", 4: "samples"}


def _unpacking() -> tuple[type[Exception], ...]:
    """What unpacking of damaged bytes may raise where a faster library than zlib is at work."""
    try:
        from isal import isal_zlib  # pyright: ignore[reportMissingImports]
    except ImportError:
        return ()
    error: Any = isal_zlib.error
    return (error,)


def load_mdf(
    path: str | os.PathLike[str],
    columns: Columns = None,
    units: Mapping[str, str] | None = None,
    time: str = DEFAULT_CLOCK,
    name: str | None = None,
) -> Experiment:
    """Read channels of an MDF file as an Experiment, each on the clock of its group, in seconds from the start of the measurement.

    `columns`: None takes every channel of numbers; a mapping {channel: name in the file} picks and renames. `units`: {channel or name:
    unit}, for those that have none in the file or a wrong one.
    """
    file = existing_file(path)
    with mdf_source(file, time) as source:
        return experiment_of_source(source, columns, units or {}, time, name or file.name)


@contextmanager
def mdf_source(file: Path, time: str = DEFAULT_CLOCK) -> Iterator[Source]:
    """The channels of a file, while it is open."""
    try:
        from asammdf import MDF  # pyright: ignore[reportMissingImports]
        from asammdf.blocks.utils import MdfException  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        fault = Fault("it is an MDF file, and asammdf is not installed.", hint="pip install 'veridyn[logs]'")
        raise FileError(fault, str(file)) from error
    errors = (*READER_ERRORS, MdfException, *_unpacking())
    with file.open("rb") as stream:
        word = stream.read(8)
        if word not in MDF_WORDS:
            fault = Fault("it has not the header of an MDF file.", expected="'MDF' or 'UnFinMF' as first word")
            raise FileError(fault, str(file))
        stream.seek(0)
        # A recorder that was switched off leaves a file that its reader must complete, which it does in memory here.
        given = BytesIO(stream.read()) if word == UNFINISHED else stream
        with closing(_guarded(file, errors, lambda: MDF(given))) as opened:
            yield _guarded(file, errors, lambda: _source(file, opened, time, errors))


def _guarded(file: Path, errors: tuple[type[Exception], ...], work: Callable[[], Any]) -> Any:
    """What `work` gives; what the reader says of a damaged file becomes a FileError."""
    try:
        return work()
    except errors as error:
        _let_go(error)
        raise FileError(unreadable(error), str(file)) from error


def _let_go(error: Exception) -> None:
    """Close the reader that was half built: asammdf (8.8) fails to do so itself, and complains about that on stderr later on."""
    trace = error.__traceback__
    while trace is not None:
        reader = trace.tb_frame.f_locals.get("self")
        if type(reader).__module__.startswith("asammdf.") and not getattr(reader, "_closed", True):
            reader._closed = True  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
            getattr(reader, "_tempfile", BytesIO()).close()
        trace = trace.tb_next


def _source(file: Path, mdf: Any, time: str, errors: tuple[type[Exception], ...]) -> Source:
    places: dict[str, tuple[int, int]] = {}
    units: dict[str, str] = {}
    refused: dict[str, Fault] = {}
    ambiguous: dict[str, Fault] = {}
    masters = {(g, i) for g, i in mdf.masters_db.items()}
    clocks = {mdf.groups[g].channels[i].name for g, i in masters}
    if time not in (DEFAULT_CLOCK, *clocks):
        hint = f"Leave `time` out. Clocks of this file: {', '.join(sorted(clocks)) or 'none'}."
        what = f"'{time}' is no clock, and every group has its own."
        raise DataError(what, where="time", expected="", found=f"'{time}'", hint=hint, source=str(file))
    for name, entries in mdf.channels_db.items():
        own = [e for e in entries if tuple(e) not in masters]
        names = [name] if len(own) == 1 else _distinct_names(name, own)
        if len(own) > 1:
            ambiguous[name] = _ambiguous(mdf, names, own)
        for label, (g, i) in zip(names, own):
            fault = _unusable(mdf, g, i)
            if fault is not None:
                refused[label] = fault
                continue
            places[label] = (g, i)
            unit = _unit(mdf, g, i)
            units[label] = SPELLED.get(unit, unit)

    def read(wanted: Sequence[str]) -> dict[str, Samples | Fault]:
        size, used = file.stat().st_size, {places[n][0] for n in wanted}
        announced = _guarded(file, errors, lambda: sum(b.original_size for g in used for b in _blocks(mdf.groups[g])))
        bomb = too_large(announced, size)
        if bomb is not None:
            raise FileError(bomb, str(file))
        return _guarded(file, errors, lambda: _read(mdf, {n: places[n] for n in wanted}, size))

    start = getattr(mdf.header, "start_time", None)
    notes = {} if start is None else {"start": str(start)}
    return Source(file, units, refused, read, notes, ambiguous)


def _distinct_names(name: str, entries: Sequence[tuple[int, int]]) -> list[str]:
    """Names with their group, and with their place in it where that does not tell them apart."""
    groups = [g for g, _ in entries]
    return [f"{name}@{g}" if groups.count(g) == 1 else f"{name}@{g}.{i}" for g, i in entries]


def _ambiguous(mdf: Any, names: Sequence[str], entries: Sequence[tuple[int, int]]) -> Fault:
    candidates = []
    for label, (g, i) in zip(names, entries):
        block = mdf.groups[g].channel_group
        called = (getattr(block, "acq_name", "") or getattr(block, "comment", "") or "").strip()[:40]
        candidates.append(
            f"'{label}' ({called + ', ' if called else ''}{block.cycles_nr} samples, [{_unit(mdf, g, i)}])"
        )
    return Fault(f"{len(names)} channels have this name.", expected="one of " + ", ".join(candidates))


def _unusable(mdf: Any, group: int, index: int) -> Fault | None:
    """Why a channel cannot be one: it holds words, or its group has no clock, or one that does not count seconds."""
    master = mdf.masters_db.get(group)
    if master is None:
        return Fault("its group has no clock.", expected="a group with a time channel")
    channel, clock = (mdf.groups[group].channels[k] for k in (index, master))
    kind = getattr(clock, "sync_type", TIME)
    if kind != TIME:
        return Fault(
            f"the clock of its group, '{clock.name}', counts {CLOCKS.get(kind, 'something else')}, not seconds."
        )
    if channel.data_type in (WORDS if hasattr(channel, "sync_type") else WORDS_3):
        return Fault("it holds words.", expected="numbers")
    if not (_lies_inside(mdf.groups[group], channel) and _lies_inside(mdf.groups[group], clock)):
        return Fault("its place is outside the record of its group.", hint="The file is damaged.")
    return None


def _lies_inside(group: Any, channel: Any) -> bool:
    """Whether a channel's bits are bits of its record. asammdf (8.8) takes the file's word for it, and reads what is not its own."""
    record = group.channel_group
    start = channel.byte_offset * 8 + channel.bit_offset if hasattr(channel, "byte_offset") else channel.start_offset
    inside = start + channel.bit_count <= record.samples_byte_nr * 8
    marks = getattr(record, "invalidation_bytes_nr", 0)
    return inside and (not marks or channel.pos_invalidation_bit < marks * 8)


def _unit(mdf: Any, group: int, index: int) -> str:
    channel = mdf.groups[group].channels[index]
    unit = getattr(channel, "unit", "") or getattr(channel.conversion, "unit", "") or ""
    text = unit.decode("latin-1") if isinstance(unit, bytes) else str(unit)
    return text.strip().strip("\0").strip()


def _read(mdf: Any, places: Mapping[str, tuple[int, int]], size: int) -> dict[str, Samples | Fault]:
    """Times and values of channels, or why they are not numbers."""
    short = {g: _cut_off(mdf.groups[g], size) for g in {g for g, _ in places.values()}}
    out: dict[str, Samples | Fault] = {n: fault for n, (g, _) in places.items() if (fault := short[g]) is not None}
    out |= {n: EMPTY for n, (g, _) in places.items() if n not in out and not mdf.groups[g].channel_group.cycles_nr}
    whole = {n: place for n, place in places.items() if n not in out}
    signals = mdf.select([(None, g, i) for g, i in whole.values()]) if whole else []
    for name, signal in zip(whole, signals):
        values = _numbers(signal)
        out[name] = values if isinstance(values, Fault) else (np.asarray(signal.timestamps, dtype=np.float64), values)
    return out


def _blocks(group: Any) -> list[Any]:
    """Where the records of a group are in the file."""
    return list(group.get_data_blocks() if hasattr(group, "get_data_blocks") else group.data_blocks)


def _cut_off(group: Any, size: int) -> Fault | None:
    """Whether a group announces more records than the file holds; asammdf (8.8) hands out memory that it never filled for the rest."""
    count, record = group.channel_group.cycles_nr, group.channel_group.samples_byte_nr
    record += getattr(group.channel_group, "invalidation_bytes_nr", 0)
    blocks = _blocks(group)
    blocks_4 = [b for b in blocks if hasattr(b, "location")]
    missing = any(b.location == ORIGINAL and b.address + b.compressed_size > size for b in blocks_4)
    missing |= any(b.original_size > max(b.compressed_size, LARGEST) for b in blocks_4)
    held = sum(b.original_size for b in blocks) // record if record else count
    if missing or (held < count and not getattr(group, "uses_ld", False)):
        return Fault("it is cut off: the file ends before its last sample.", expected=f"{count} samples")
    return None


def _numbers(signal: Any) -> NDArray[np.float64] | Fault:
    samples = np.asarray(signal.samples)
    if samples.dtype.names is not None or samples.ndim != 1:
        return Fault("it holds an array in every sample.", "", "one number in every sample", f"{samples.dtype}"[:60])
    if samples.dtype.kind not in "biuf":
        some = ", ".join(repr(_text(s)) for s in samples[:3])
        hint = "Save it as numbers, without its table of texts."
        return Fault("it holds words (a text, or an enumeration).", "", "numbers", some or "none", hint)
    values = samples.astype(np.float64)
    if signal.invalidation_bits is not None:
        values[np.asarray(signal.invalidation_bits, dtype=bool)] = np.nan
    return values


def _text(sample: Any) -> str:
    return sample.decode("utf-8", errors="replace") if isinstance(sample, bytes) else str(sample)
