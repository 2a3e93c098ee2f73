"""Logs in bags: ROS 1 (.bag) and ROS 2 (a folder, or .db3) read by rosbags, MCAP (.mcap, of ROS or JSON) by mcap; the extra ``logs``.

    load_bag("run.mcap", {"q": "/joint_states.position", "force": "/joint_states.effort"}, {"q": "rad", "force": "N*m"})

Numbers are named topic.field.subfield, those of joints topic.field.joint. A topic's clock is the stamp in the header of its messages, and
where they have none the time at which they were received; the notes of the experiment say which. Times count in seconds from the
beginning of the bag, so that no digit is lost. Header stamps more than a day from the times of receipt belong to another clock,
such as that of a simulator, and keep its zero.

Definitions of messages come from the bag; where it has none, as ROS 2 bags before Iron, those that come with rosbags are used, and a type
that neither knows is refused by name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.errors import DataError, DataWarning, Fault, FileError, warn
from veridyn.files.access import READER_ERRORS, existing_log, too_large, unreadable
from veridyn.files.log.bag_messages import Part, json_parts, json_time, plan_of, stacked
from veridyn.files.log.columns import DEFAULT_CLOCK, Columns, Samples, Source, experiment_of_source
from veridyn.model.experiment import Experiment

RECEIVED = "received"  # the clock to ask for where header stamps are not to be trusted
DAY = 86_400 * 10**9  # ns
FARTHEST_NS = 2**63  # from 1970: what 64 bits hold
UNKNOWN_MSG = "no definition of it is in the bag, and it is none of ROS' own"
Decoder = Callable[[bytes], tuple[int, Iterable[Part]]]


def load_bag(
    path: str | os.PathLike[str],
    columns: Columns = None,
    units: Mapping[str, str] | None = None,
    time: str = DEFAULT_CLOCK,
    name: str | None = None,
) -> Experiment:
    """Read topics of a bag as an Experiment, each on its own clock.

    `columns`: None takes every number; a mapping {channel: "topic.field"} picks and renames, and a name that means several, such as
    "/joint_states.position", gives channel.joint for each. `units`: {channel or name: unit}, where the type of message does not say it.
    `time` = "received" takes the times of receipt for all topics.
    """
    file = existing_log(path)
    asked = list(columns.values()) if isinstance(columns, Mapping) else None
    return experiment_of_source(bag_source(file, asked, time), columns, units or {}, time, name or file.name)


def bag_source(file: Path, asked: Sequence[str] | None = None, time: str = DEFAULT_CLOCK) -> Source:
    """The channels of a bag; of the topics in `asked` only, where that is given, because every message must be decoded."""
    if time not in (DEFAULT_CLOCK, RECEIVED):
        hint = "Leave `time` out: every topic has its own clock."
        what = "a bag has no such clock."
        expected = f"'{RECEIVED}', or nothing"
        raise DataError(what, where="time", expected=expected, found=f"'{time}'", hint=hint, source=str(file))
    with opened(file) as bag:
        wanted = [t for t in bag.topics if asked is None or any(_means(a, t) for a in asked)]
        readable = [t for t in wanted if bag.topics[t].fault is None]
        at = ""
        try:
            for at, received, data in bag.messages(readable) if readable else ():
                bag.topics[at].take(received, data)
        except errors_of_readers() as error:
            count = len(bag.topics[at].received) if at else 0
            where = f"topic '{at}', after {count} messages" if at else ""
            raise FileError(
                "it cannot be read to its end.", where=where, found=unreadable(error).found, source=str(file)
            ) from error
    return _source(file, bag, wanted, time)


def _source(file: Path, bag: Opened, wanted: Sequence[str], time: str) -> Source:
    samples: dict[str, Samples] = {}
    units: dict[str, str] = {}
    refused: dict[str, Fault] = {}
    notes = {"start": f"{bag.start // 10**9}.{bag.start % 10**9:09d} s since 1970-01-01 UTC"}
    foreign: list[str] = []
    for name in bag.topics:
        topic = bag.topics[name]
        if name not in wanted:
            refused[name] = Fault("it was not asked for.")
        elif topic.fault is not None or not topic.received:
            refused[name] = topic.fault or Fault("it holds no messages.")
        else:
            t, origin = _clock(topic, bag.start, time)
            notes[f"clock of {name}"] = origin
            foreign += [name] if origin.startswith("header stamps of") else []
            refused |= {f"{name}.{path}": fault for path, fault in topic.refused.items()}
            for path, (numbers, values) in _columns(topic).items():
                samples[f"{name}.{path}"] = (t[numbers], values)
                units[f"{name}.{path}"] = topic.units.get(path, "")
    if foreign and len(foreign) < len([n for n in notes if n.startswith("clock of")]):
        what = "topics have clocks that do not agree: some header stamps are more than a day from the times of receipt."
        hint = f"time='{RECEIVED}' puts all topics on the clock of the recorder."
        warn(DataWarning, Fault(what, file.name, "", ", ".join(foreign), hint))
    return Source(file, units, refused, lambda names: {n: samples[n] for n in names}, notes)


def _columns(topic: Topic) -> dict[str, tuple[Any, Any]]:
    """Path → numbers of messages and values, in the order of the bag."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for keys, (numbers, rows) in topic.blocks.items():
        table, at = stacked(rows), np.array(numbers)
        for k, key in enumerate(keys):
            found.setdefault(key, []).append((at, table[:, k]))
    out = {}
    for key, pieces in found.items():
        at = np.concatenate([a for a, _ in pieces])
        order = np.argsort(at, kind="stable")
        out[key] = (at[order], np.concatenate([x for _, x in pieces])[order])
    return out


def _clock(topic: Topic, start: int, time: str) -> tuple[Any, str]:
    """Times of the messages of a topic in seconds, and the words that say where they come from."""
    stamps, received = np.array(topic.stamps, dtype=np.int64), np.array(topic.received, dtype=np.int64)
    missing = int((stamps == 0).sum())
    if time == RECEIVED or missing == len(stamps):
        origin = "times of receipt" + ("" if time == RECEIVED else ": its messages have no stamp")
        return (received - start) * 1e-9, origin
    if missing > 1:  # one may be the zero of a simulator
        what = f"{missing} of {len(stamps)} messages have no header stamp, so the times of receipt are used."
        warn(DataWarning, Fault(what, f"topic '{topic.name}'"))
        return (received - start) * 1e-9, "times of receipt: some messages have no stamp"
    if abs(int(stamps[0]) - int(received[0])) > DAY:
        return stamps * 1e-9, "header stamps of a clock of its own"
    return (stamps - start) * 1e-9, "header stamps"


def _means(asked: str, topic: str) -> bool:
    """Whether a name that is asked for is this topic or begins with it."""
    return any(f"{a}.".startswith(f"{topic}.") or f"{topic}.".startswith(f"{a}.") for a in (asked, f"/{asked}"))


@dataclass
class Topic:
    """One topic: how its messages are decoded into a stamp (ns, 0 for none) and numbers, what was found, and why it is not read."""

    name: str
    kind: str
    fault: Fault | None = None
    decode: Decoder | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    refused: dict[str, Fault] = field(default_factory=dict)
    stamps: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    blocks: dict[tuple[str, ...], tuple[list[int], list[Sequence[float]]]] = field(default_factory=dict)

    def take(self, received: int, data: bytes) -> None:
        """One more message."""
        if self.decode is None:
            return
        stamp, parts = self.decode(data)
        if not -FARTHEST_NS <= stamp < FARTHEST_NS:
            raise ValueError(f"a header stamp of {stamp} ns is no time")
        k = len(self.received)
        for keys, values in parts:
            numbers, rows = self.blocks.setdefault(keys, ([], []))
            numbers.append(k)
            rows.append(values)
        self.stamps.append(stamp)
        self.received.append(received)


@dataclass(frozen=True)
class Opened:
    """A bag: its topics, when it begins (ns since 1970), and the messages of some of them: topic, time of receipt, bytes."""

    topics: Mapping[str, Topic]
    start: int
    messages: Callable[[Sequence[str]], Iterator[tuple[str, int, bytes]]]


def errors_of_readers() -> tuple[type[Exception], ...]:
    """Everything that a damaged bag may raise."""
    import apsw
    import zstandard
    from mcap.exceptions import McapError
    from rosbags.rosbag1 import ReaderError as Error1
    from rosbags.rosbag2 import ReaderError as Error2
    from rosbags.serde import SerdeError
    from rosbags.typesys import TypesysError

    packed = []
    for name in ("compression.zstd", "backports.zstd"):  # the one that rosbags unpacks with, by the version of Python
        try:
            packed.append(import_module(name).ZstdError)
        except ImportError:
            continue
    own = (apsw.Error, zstandard.ZstdError, McapError, Error1, Error2, SerdeError, TypesysError)
    return (*READER_ERRORS, *packed, *own)


@contextmanager
def opened(file: Path) -> Iterator[Opened]:
    """A bag, while it is open."""
    try:
        errors = errors_of_readers()
    except ImportError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in ("mcap", "rosbags"):  # what they bring is missing because they are
            missing = "mcap" if file.suffix.lower() == ".mcap" else "rosbags"
        fault = Fault(f"it is a bag, and {missing} is not installed.", hint="pip install 'veridyn[logs]'")
        raise FileError(fault, str(file)) from error
    opening: AbstractContextManager[Opened] = _mcap(file) if file.suffix.lower() == ".mcap" else _ros(file)
    try:
        bag = opening.__enter__()
    except errors as error:
        hints = {
            ".bag": "rosbag reindex mends a bag whose recorder was stopped.",
            ".mcap": "mcap recover saves what is whole.",
        }
        fault = Fault("it is no whole bag.", found=unreadable(error).found, hint=hints.get(file.suffix.lower(), ""))
        raise FileError(fault, str(file)) from error
    try:
        if not bag.topics:
            raise FileError("the bag is empty.", expected="topics with messages", source=str(file))
        yield bag
    finally:
        opening.__exit__(None, None, None)


@contextmanager
def _ros(file: Path) -> Iterator[Opened]:
    """ROS 1 by its suffix, else ROS 2."""
    from rosbags.rosbag1 import Reader as Reader1
    from rosbags.rosbag2 import Reader as Reader2

    first = file.suffix.lower() == ".bag" and file.is_file()
    with Reader1(file) if first else Reader2(file) as reader:
        types = _Types(first)
        topics: dict[str, Topic] = {}
        for c in reader.connections:
            found = topics.setdefault(c.topic, Topic(c.topic, c.msgtype))
            if found.kind != c.msgtype:
                found.fault = Fault(f"it holds messages of two types, {found.kind} and {c.msgtype}.")
                continue
            types.learn(c.msgtype, str(c.msgdef.data), c.msgdef.format.name)
        for topic in topics.values():
            types.teach(topic, "ros1" if first else "cdr")

        def messages(names: Sequence[str]) -> Iterator[tuple[str, int, bytes]]:
            chosen = [c for c in reader.connections if c.topic in names]
            for c, received, data in reader.messages(connections=chosen):
                yield c.topic, _whole(received, file), data

        yield Opened(topics, _whole(reader.start_time, file) if reader.message_count else 0, messages)


def _whole(received: object, file: Path) -> int:
    """A time of receipt; a damaged file gives what it finds there, of whatever type and size."""
    if isinstance(received, int) and -FARTHEST_NS <= received < FARTHEST_NS:
        return received
    expected = "within 292 years of 1970, which 64 bits hold"
    what = "a time of receipt is no whole number of nanoseconds."
    raise FileError(Fault(what, "messages", expected, f"{received!r}"[:80]), str(file))


@contextmanager
def _mcap(file: Path) -> Iterator[Opened]:
    from mcap.reader import make_reader

    with file.open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        summary = reader.get_summary()
        if summary is None or summary.statistics is None:
            raise EOFError("it has no summary: its recorder was stopped before the end")
        bomb = too_large(sum(c.uncompressed_size for c in summary.chunk_indexes), file.stat().st_size)
        if bomb is not None:
            raise FileError(bomb, str(file))
        first = any(s.encoding == "ros1msg" for s in summary.schemas.values())
        types = _Types(first)
        topics: dict[str, Topic] = {}
        for channel in summary.channels.values():
            schema = summary.schemas.get(channel.schema_id)
            kind = schema.name if schema else ""
            found = topics.setdefault(channel.topic, Topic(channel.topic, _full(kind)))
            if found.kind != _full(kind):
                found.fault = Fault(f"it holds messages of two types, {found.kind} and {kind}.")
            elif channel.message_encoding == "json":
                found.decode = _json_decoder(found)
            elif channel.message_encoding in ("cdr", "ros1"):
                form = {"ros2msg": "MSG", "ros1msg": "MSG", "ros2idl": "IDL"}.get(
                    schema.encoding if schema else "", "NONE"
                )
                types.learn(found.kind, schema.data.decode() if schema else "", form)
                types.teach(found, channel.message_encoding)
            else:
                found.fault = Fault(
                    f"its messages are coded as '{channel.message_encoding}'.", expected="cdr, ros1 or json"
                )

        def messages(names: Sequence[str]) -> Iterator[tuple[str, int, bytes]]:
            for _, channel, message in reader.iter_messages(topics=list(names)):
                yield channel.topic, _whole(message.log_time, file), message.data

        yield Opened(topics, _whole(summary.statistics.message_start_time, file), messages)


def _full(kind: str) -> str:
    """ROS 1 writes sensor_msgs/Imu where ROS 2 writes sensor_msgs/msg/Imu."""
    package, _, name = kind.partition("/")
    return f"{package}/msg/{name}" if name and "/" not in name else kind


class _Types:
    """Definitions of messages: those of the bag, and those of ROS for types that it does not define."""

    def __init__(self, first: bool) -> None:
        from rosbags.typesys import Stores, get_typestore

        self.own: dict[str, Any] = {}
        self.common = get_typestore(Stores.ROS1_NOETIC if first else Stores.LATEST)

    def learn(self, kind: str, text: str, form: str) -> None:
        """A definition as it stands in the bag."""
        from rosbags.typesys import get_types_from_idl, get_types_from_msg

        if form == "MSG" and text:
            self.own |= get_types_from_msg(text, kind)
        elif form == "IDL" and text:
            for part in text.split("=" * 80 + "\n"):
                if part.strip():
                    self.own |= get_types_from_idl(part.partition("\n")[2] if part.startswith("IDL: ") else part)

    def teach(self, topic: Topic, coded: str) -> None:
        """Give a topic its decoder, or say why it has none."""
        from rosbags.typesys import Stores, get_typestore

        definitions = {**self.common.fielddefs, **self.own}
        try:
            plan = plan_of(topic.kind, definitions)
        except KeyError as error:
            missing = str(error.args[0])
            inside = "" if missing == topic.kind else f", in it '{missing}'"
            topic.fault = Fault(f"messages of type '{topic.kind}'{inside} are not known: {UNKNOWN_MSG}.")
            return
        store: Any = None

        def decode(data: bytes) -> tuple[int, Iterable[Part]]:
            nonlocal store
            if store is None:  # not before the first message, because every type is compiled
                store = get_typestore(Stores.EMPTY)
                store.register({name: definitions[name] for name in _needed(topic.kind, definitions)})
            read = store.deserialize_cdr if coded == "cdr" else store.deserialize_ros1
            message = read(data, topic.kind)
            return plan.time(message), plan.parts(message)

        topic.decode, topic.units, topic.refused = decode, plan.units, plan.refused


def _needed(kind: str, definitions: Mapping[str, Any]) -> set[str]:
    """A type and all it is made of."""
    found, open_ = set(), [kind]
    while open_:
        one = open_.pop()
        if one in found:
            continue
        found.add(one)
        for _, (what, detail) in definitions[one][1]:
            inner, name = (what, detail) if what in (1, 2) else detail[0]
            open_ += [name] if inner == 2 else []
    return found


def _json_decoder(topic: Topic) -> Decoder:
    def decode(data: bytes) -> tuple[int, Iterable[Part]]:
        message = json.loads(data)
        return json_time(message), json_parts(message, topic.refused)

    return decode
