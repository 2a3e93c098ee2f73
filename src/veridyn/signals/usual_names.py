"""Channels under the names that most logs use, found where a log does not use veridyn's own: q1 [rad] and tau1 [N*m] for six joints.

    positions  q1, q_1, pos1, position_1, theta1, or the coordinate's own name, alone or with such a word before or behind it
    forces     tau1, torque_1, effort1, force_1, or such a word before or behind the coordinate's name
    rates      qd1, dq1, vel1, velocity_1, or such a word before or behind the coordinate's name

A name counts only with the unit of what it would measure, and only where one way of naming fits every coordinate (of forces: every actuated
one that has any). Where two ways fit, none is taken, and both are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from veridyn.errors import DataError, Faults
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.machine_parts import MachineParts
from veridyn.signals.naming import motor_channels, unit_faults

WORDS = {
    "q": ("q", "pos", "position", "theta", "joint", "angle"),
    "force": ("tau", "torque", "effort", "force"),
    "qd": ("qd", "dq", "vel", "velocity", "speed"),
}
WHAT = {"q": "positions", "force": "forces", "qd": "rates"}


@dataclass(frozen=True)
class _Way:
    """One way of naming: coordinate → the channel it would be."""

    text: str
    channels: Mapping[str, str]


def with_usual_names(tree: MachineParts, log: Experiment) -> Experiment:
    """The log with channels renamed to ``q.c``, ``qd.c`` and ``force.c`` where they have usual names; as it is where nothing is missing."""
    renamed: dict[str, str] = {}
    faults = Faults()
    for symbol in WORDS:
        if any(name in log for c in tree.coordinates for name in _own(tree, c, symbol)):
            continue
        ways = list(_ways(tree, log, symbol))
        distinct = {tuple(w.channels.items()): w for w in ways}
        if len(distinct) > 1:
            shown = "; ".join(", ".join(w.channels.values()) for w in distinct.values())
            first = next(iter(tree.coordinates))
            faults.add(
                f"several channels may be the {WHAT[symbol]}.",
                where=log.name,
                expected=f"one channel '{symbol}.{first}' for the coordinate '{first}', and so on",
                found=shown,
                hint=f"Name the right ones where the log is loaded: columns={{'{symbol}.{first}': …}}.",
            )
        elif distinct:
            (way,) = distinct.values()
            renamed |= {channel: f"{symbol}.{c}" for c, channel in way.channels.items()}
    faults.raise_if_any(DataError)
    if not renamed:
        return log
    channels = {renamed.get(n, n): replace(x, name=renamed.get(n, n)) for n, x in log.channels.items()}
    return Experiment(channels, log.name, log.notes)


def _own(tree: MachineParts, c: str, symbol: str) -> Sequence[str]:
    return (f"{symbol}.{c}", *(motor_channels(tree, c, symbol) if symbol != "qd" else ()))


def _ways(tree: MachineParts, log: Experiment, symbol: str) -> Iterator[_Way]:
    """Every way of naming under which each coordinate, or of forces each that can have one, has a channel of the right unit."""
    kinds = dict(zip(tree.coordinates, tree.coordinate_kinds, strict=True))
    lower = {name.lower(): name for name in log.names}
    if len(lower) < len(log.names):  # names that differ by capitals only are left alone
        return
    for pattern in _patterns(symbol):
        found: dict[str, str] = {}
        for k, c in enumerate(tree.coordinates, 1):
            name = lower.get(pattern.format(c=c, i=k).lower())
            if name is not None and _fits(log.channels[name], symbol, kinds[c] == "turning"):
                found[c] = name
        needed = [c for c, driven in zip(tree.coordinates, tree.actuated, strict=True) if driven or symbol != "force"]
        if found and set(needed) <= set(found) and len(set(found.values())) == len(found):
            yield _Way(pattern, found)


def _patterns(symbol: str) -> Iterator[str]:
    for word in WORDS[symbol]:
        for join in ("", "_", ".", " "):
            yield word + join + "{i}"
            yield word + join + "{c}"
            if join:
                yield "{c}" + join + word
    if symbol == "q":
        yield "{c}"


def _fits(channel: Channel, symbol: str, turning: bool) -> bool:
    unit = {"q": ("rad", "m"), "qd": ("rad/s", "m/s"), "force": ("N*m", "N")}[symbol][0 if turning else 1]
    return not unit_faults(channel, (unit,))
