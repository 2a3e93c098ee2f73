"""Logs in bags: ROS 1 (.bag) and ROS 2 (a folder, or .db3) read by rosbags, MCAP (.mcap, of ROS or JSON) by mcap; the extra ``logs``.

    load_bag("run.mcap", {"q": "/joint_states.position", "force": "/joint_states.effort"}, {"q": "rad", "force": "N*m"})

Numbers are named topic.field.subfield, those of joints topic.field.joint. A topic's clock is the stamp in the header of its messages, and
where they have none the time at which they were received; the notes of the experiment say which. Times count in seconds from the
beginning of the bag, so that no digit is lost. Header stamps more than a day from the times of receipt belong to another clock,
such as that of a simulator, and keep its zero.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridyn.errors import DataError, DataWarning, Fault, FileError, warn
from veridyn.files.log.bag_messages import stacked
from veridyn.files.log.bag_readers import Opened, Topic, errors_of_readers, opened
from veridyn.files.log.clocked import DEFAULT, Columns, Samples, Source, experiment_of_source
from veridyn.files.log.opening import existing_log, unreadable
from veridyn.model.experiment import Experiment

RECEIVED = "received"  # the clock to ask for where header stamps are not to be trusted
DAY = 86_400 * 10**9  # ns


def load_bag(
    path: str | os.PathLike[str],
    columns: Columns = None,
    units: Mapping[str, str] | None = None,
    time: str = DEFAULT,
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


def bag_source(file: Path, asked: Sequence[str] | None = None, time: str = DEFAULT) -> Source:
    """The channels of a bag; of the topics in `asked` only, where that is given, because every message must be decoded."""
    if time not in (DEFAULT, RECEIVED):
        hint = "Leave `time` out: every topic has its own clock."
        raise DataError(
            Fault("a bag has no such clock.", "time", f"'{RECEIVED}', or nothing", f"'{time}'", hint), str(file)
        )
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
                Fault("it cannot be read to its end.", where, found=unreadable(error).found), str(file)
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
            t, said = _clock(topic, bag.start, time)
            notes[f"clock of {name}"] = said
            foreign += [name] if said.startswith("header stamps of") else []
            refused |= {f"{name}.{path}": fault for path, fault in topic.refused.items()}
            for path, (numbers, values) in _columns(topic).items():
                samples[f"{name}.{path}"] = (t[numbers], values)
                units[f"{name}.{path}"] = topic.units.get(path, "")
    if foreign and len(foreign) < len([n for n in notes if n.startswith("clock of")]):
        fault = Fault(
            "topics have clocks that do not agree: some header stamps are more than a day from the times of receipt.",
            file.name,
            found=", ".join(foreign),
            hint=f"time='{RECEIVED}' puts all topics on the clock of the recorder.",
        )
        warn(DataWarning, fault)
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
        said = "times of receipt" + ("" if time == RECEIVED else ": its messages have no stamp")
        return (received - start) * 1e-9, said
    if missing > 1:  # one may be the zero of a simulator
        fault = Fault(
            f"{missing} of {len(stamps)} messages have no header stamp, so the times of receipt are used.",
            where=f"topic '{topic.name}'",
        )
        warn(DataWarning, fault)
        return (received - start) * 1e-9, "times of receipt: some messages have no stamp"
    if abs(int(stamps[0]) - int(received[0])) > DAY:
        return stamps * 1e-9, "header stamps of a clock of its own"
    return (stamps - start) * 1e-9, "header stamps"


def _means(asked: str, topic: str) -> bool:
    """Whether a name that is asked for is this topic or begins with it."""
    return any(f"{a}.".startswith(f"{topic}.") or f"{topic}.".startswith(f"{a}.") for a in (asked, f"/{asked}"))
