"""Samples that arrive: datagrams, messages of a WebSocket, lines of a file that grows.

Whatever receives puts records into an inbox of limited size and never waits; where the observer is slower, the oldest records are left out
and counted.

A record is one object of names and numbers, {"time": 0.01, "trolley": 120.3, "angle": 0.2}, with the names that the log of the study has.
"""

from __future__ import annotations

import csv
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import parse_qs

from veridyn.errors import DataError, Fault, did_you_mean
from veridyn.files.log.columns import split_header
from veridyn.files.units import si_unit, to_si
from veridyn.live.tracker import Item, Sample, Trouble
from veridyn.studies.config.log import ColumnSettings, TableSettings
from veridyn.studies.config.study import Loaded, quantity
from veridyn.view.admission import readable_url, same_token

TOKEN = "token"
LONGEST_RECORD = 65_536  # bytes
SHOWN = 60  # characters of a record that is quoted
INBOX = 4096  # records
AWAKE_S = 0.1  # between looks at whether to stop
FILE_S = 0.02  # between looks at a file that grows
Record = tuple[str | bytes, float]


@dataclass(frozen=True)
class SampleColumns:
    """`time`: the column of stamps and its factor to s; `columns`: column → channel, factor and offset to SI.

    `inputs`: the channels that are not readings but act on the machine; `token`: what a record must carry, where it is not empty;
    `unitless`: columns whose unit the study leaves to the header of a file.
    """

    time: tuple[str, float]
    columns: Mapping[str, tuple[str, float, float]]
    inputs: frozenset[str] = frozenset()
    token: str = ""
    unitless: frozenset[str] = frozenset()
    _told: set[str] = field(default_factory=set)

    def with_header(self, header: Sequence[str]) -> SampleColumns:
        """The columns with the units that a header gives, "angle [deg]", to those that the study gives none."""
        found = dict(self.columns)
        for name, unit in map(split_header, header):
            if unit and name in self.unitless:
                channel, factor, _ = found[name]
                zero, one = (to_si(x, unit, f"column '{name}'")[0] for x in (0.0, 1.0))
                found[name] = channel, factor * (one - zero), factor * zero
        return replace(self, columns=found)

    def read(self, text: str | bytes, arrived: float) -> list[Sample | Trouble]:
        """What a record in JSON says."""
        if len(text) > LONGEST_RECORD:
            return [Trouble("too long", f"a packet of {len(text)} bytes is not read: at most {LONGEST_RECORD} are.")]
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            quoted = text[:SHOWN] if isinstance(text, str) else text[:SHOWN].decode("utf-8", "replace")
            return [Trouble("not JSON", f"a packet is no JSON object and is not used: {quoted!r}")]
        if not isinstance(record, dict):
            return [Trouble("not JSON", f"a packet holds no names and numbers: {str(record)[:SHOWN]!r}")]
        return self.sample(record, arrived)

    def sample(self, record: Mapping[str, Any], arrived: float) -> list[Sample | Trouble]:
        """A record as a sample in SI, with what is wrong in it; a value that is no number counts as a reading that failed."""
        if self.token and not same_token(str(record.get(TOKEN, "")), self.token):
            return [Trouble("token", "a packet without the right token is not used.")]
        found: list[Sample | Trouble] = []
        time, scale = self.time
        stamp = _number(record.get(time))
        if not isfinite(stamp):
            shown = str(record.get(time, "none"))[:SHOWN]
            return [Trouble("no time", f"a sample has no time in '{time}' and is not used: {shown}.")]
        values, acting = dict[str, float](), dict[str, float]()
        for name, value in record.items():
            if name in (time, TOKEN):
                continue
            known = self.columns.get(name)
            if known is None:
                if name not in self._told and len(self._told) < SHOWN:
                    self._told.add(name)
                    hint = did_you_mean(name, list(self.columns))
                    found.append(Trouble(f"column {name}", f"the study has no column '{name[:SHOWN]}'. {hint}"))
                continue
            channel, factor, offset = known
            read = _number(value)
            if channel not in self.inputs:
                values[channel] = factor * read + offset
            elif isfinite(read):
                acting[channel] = factor * read + offset
            else:
                what = f"'{name}' acts on the machine and is no number at {scale * stamp:.6g} s: the last one goes on."
                found.append(Trouble(f"input {name}", what))
        return [*found, Sample(scale * stamp, values, arrived, acting)]


def columns_of(loaded: Loaded[Any], log: TableSettings, inputs: Collection[str] = (), token: str = "") -> SampleColumns:
    """The columns of a study's log, for samples that come in one by one; a unit that is left out is that of SI."""
    name, unit = split_header(log.time)
    found, faults = {}, []
    for channel, column in log.columns.items():
        try:
            found[column.column] = (channel, *_factors(column))
        except DataError as error:
            at = ("log", "columns", channel)
            faults += [loaded.fault(at, f.what, f.expected, f.found, f.hint) for f in error.faults]
    if faults:
        raise loaded.error(faults)
    unitless = frozenset(c.column for c in log.columns.values() if not c.unit)
    return SampleColumns((name, to_si(1.0, unit or "s")[0]), found, frozenset(inputs), token, unitless)


def channel_units(loaded: Loaded[Any], log: TableSettings) -> dict[str, str]:
    """Channel → its unit in SI, as :func:`columns_of` converts it."""
    found = {}
    for channel, column in log.columns.items():
        times = quantity(column.times)[1] if isinstance(column.times, str) else "1"
        unit = column.unit or "1"
        found[channel] = si_unit(
            unit if times == "1" else f"{unit}*({times})", f"{loaded.file.name}, column '{column.column}'"
        )
    return found


def _factors(column: ColumnSettings) -> tuple[float, float]:
    """Factor and offset of a column to SI."""
    times = column.times
    factor = to_si(*quantity(times))[0] if isinstance(times, str) else float(times)
    zero, one = (to_si(x, column.unit or "1")[0] for x in (0.0, 1.0))
    return factor * (one - zero), factor * zero


def _number(value: object) -> float:
    """A number, also one in text; NaN for everything else."""
    if isinstance(value, bool) or value is None:
        return nan
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 else nan
    try:
        return float(value) if isinstance(value, str) else nan
    except ValueError:
        return nan


class Inbox:
    """Records between a receiver and the observer; the newest `size` of them. `dropped` counts those that were left out."""

    def __init__(self, size: int = INBOX) -> None:
        self._records: deque[Record] = deque(maxlen=size)
        self._there = threading.Condition()
        self.dropped = 0

    def put(self, text: str | bytes, arrived: float) -> None:
        with self._there:
            self.dropped += len(self._records) == self._records.maxlen
            self._records.append((text, arrived))
            self._there.notify()

    def take(self, stop: Event) -> tuple[list[Record], int]:
        """All records that are there, as soon as there is one, and how many were left out so far; none once `stop` is set."""
        with self._there:
            while not self._records and not stop.is_set():
                self._there.wait(AWAKE_S)
            found = list(self._records)
            self._records.clear()
            return found, self.dropped


def decoded(inbox: Inbox, columns: SampleColumns, stop: Event) -> Iterator[Item]:
    """The samples of an inbox, and a word whenever records were left out."""
    told = 0
    while not stop.is_set():
        records, dropped = inbox.take(stop)
        if dropped > told:
            told = dropped
            yield Trouble("flood", f"records come faster than they are used: {dropped} were left out so far.")
        for text, arrived in records:
            yield from columns.read(text, arrived)


class Datagrams:
    """One JSON object in each UDP packet to a port of this computer."""

    def __init__(self, columns: SampleColumns, port: int, host: str = "127.0.0.1", inbox: int = INBOX) -> None:
        self._columns, self.inbox = columns, Inbox(inbox)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise taken_port("UDP", host, port, error) from error
        self._socket.settimeout(AWAKE_S)
        self.port: int = self._socket.getsockname()[1]
        self.words = f"UDP packets to {host}:{self.port}"

    def samples(self, stop: Event) -> Iterator[Item]:
        receiver = threading.Thread(target=self._receive, args=(stop,), daemon=True)
        receiver.start()
        yield from decoded(self.inbox, self._columns, stop)

    def _receive(self, stop: Event) -> None:
        with self._socket:
            while not stop.is_set():
                try:
                    packet = self._socket.recv(LONGEST_RECORD + 1)
                except TimeoutError:
                    continue
                except OSError:
                    return
                self.inbox.put(packet, time.time())


class Messages:
    """One JSON object in each message of a WebSocket; any number of senders may connect. Needs the extra ``live``."""

    def __init__(self, columns: SampleColumns, port: int, host: str = "127.0.0.1", inbox: int = INBOX) -> None:
        try:
            from websockets.sync.server import serve
        except ImportError as error:
            fault = Fault("a WebSocket needs websockets, which is not installed.", hint="pip install 'veridyn[live]'")
            raise DataError(fault) from error
        self._columns, self.inbox = columns, Inbox(inbox)
        try:
            self._server: Any = serve(
                self._receive, host, port, process_request=self._admit, max_size=LONGEST_RECORD, origins=[None]
            )
        except OSError as error:
            raise taken_port("WebSocket", host, port, error) from error
        self.port: int = self._server.socket.getsockname()[1]
        self.words = f"WebSocket ws://{host}:{self.port}"

    def samples(self, stop: Event) -> Iterator[Item]:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        try:
            yield from decoded(self.inbox, self._columns, stop)
        finally:
            self._server.shutdown()

    def _admit(self, connection: Any, request: Any) -> Any:
        """Refuse a sender without the token, where there is one."""
        wanted = self._columns.token
        url = readable_url(request.path)
        given = "" if url is None else parse_qs(url.query).get(TOKEN, [""])[0]
        if wanted and not same_token(given, wanted):
            return connection.respond(403, "the token is missing or wrong\n")
        return None

    def _receive(self, connection: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            for message in connection:
                self.inbox.put(self._marked(message), time.time())

    def _marked(self, message: str | bytes) -> str | bytes:
        """A message of an admitted sender, with the token that every record carries, where there is one."""
        text = message.decode("utf-8", "replace") if isinstance(message, bytes) else message
        if not self._columns.token or not text.lstrip().startswith("{"):
            return text
        head, _, rest = text.partition("{")
        comma = "" if rest.lstrip().startswith("}") else ","
        return f'{head}{{"{TOKEN}":"{self._columns.token}"{comma}{rest}'


class GrowingFile:
    """The lines of a CSV file with a header, those there are and those that another program adds; a line counts once it is complete."""

    def __init__(
        self, columns: SampleColumns, file: Path, delimiter: str = ",", wait: Callable[[float], object] | None = None
    ) -> None:
        if not file.is_file():
            hint = "Begin the recording first: its first line has the names of the columns."
            raise DataError("there is no such file to follow.", where=str(file), hint=hint)
        self._columns, self._file, self._delimiter, self._wait = columns, file, delimiter, wait
        self.words = f"lines added to {file.name}"

    def samples(self, stop: Event) -> Iterator[Item]:
        header: list[str] | None = None
        columns, left = self._columns, ""
        with self._file.open(encoding="utf-8", errors="replace") as file:
            while not stop.is_set():
                text = file.read(1 << 16)
                if not text:
                    if self._file.stat().st_size < file.tell():
                        file.seek(0)
                        header, left = None, ""
                        yield Trouble("file", f"{self._file.name} became shorter: it is read again from its beginning.")
                        continue
                    (self._wait or stop.wait)(FILE_S)
                    continue
                *lines, left = (left + text).split("\n")
                for line in lines:
                    cells = next(csv.reader([line.rstrip("\r")], delimiter=self._delimiter), [])
                    if not cells:
                        continue
                    if header is None:
                        header = [split_header(c.strip())[0] for c in cells]
                        columns = self._columns.with_header([c.strip() for c in cells])
                        continue
                    if len(cells) != len(header):
                        what = f"a line has {len(cells)} cells and the header {len(header)}: it is not used."
                        yield Trouble("cells", what)
                        continue
                    yield from columns.sample(dict(zip(header, cells, strict=True)), time.time())


def taken_port(what: str, host: str, port: int, error: OSError) -> DataError:
    """The fault of a port that cannot be listened on."""
    hint = "Another program may use it: choose another port, or 0 for any that is free."
    text = "this port cannot be listened on."
    return DataError(text, where=f"{what}, {host}:{port}", found=error.strerror or str(error), hint=hint)
