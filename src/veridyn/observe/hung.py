"""Readings that a sensor did not make: of an encoder that hangs, a bus that repeats its last packet, a wire that drops to zero.

A log is looked at once, by the rule of :func:`veridyn.signals.quality.inspect` and no other: what that calls frozen, or dropped to zero, is
not used. Readings of coordinates and rates are shown to it by the names of a log of joints (q.C, qd.C), so that it knows what the other
joints of the machine do: a joint that dwells repeats its reading too.

A stream is looked at when an output has repeated a value so often (`ASKED_AT`) and does not repeat values all the time: by that part of
the rule that asks for nothing behind the run (:func:`veridyn.signals.hangs.hangs`), and by what the other coordinates do meanwhile.
Before that is decided, what repeats the reading before is left out of an output that hardly ever does so (`SUSPECT_SHARE`): a filter that
had taken a few of them would believe that the machine stands. Memory does not grow, and a step costs a fixed time.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from veridyn.arrays import Array
from veridyn.mechanics.compiled import kept
from veridyn.mechanics.formulation import Outputs
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.consistency.health import Repeats
from veridyn.observe.measurements import MISSING, USED, Codes, Measurements, Status
from veridyn.signals.hangs import hangs
from veridyn.signals.outliers import AROUND, HELD_SHARE, SHORTEST_FREEZE
from veridyn.signals.quality import rests, unread_samples

FrozenAfter = int | Literal["auto"] | None
ROLES = {"coordinate": "q.", "rate": "qd."}  # kind of a sensor → how a log of joints begins the name of its channel
ASKED_AT = tuple(SHORTEST_FREEZE * 2**k for k in range(5))  # equal readings in a row
WINDOW = AROUND + ASKED_AT[-1]  # readings of an output: enough before a run, and the run
FALSE_ALARMS = 1e-9  # of readings: one in ten days at a thousand a second
SUSPECT_SHARE = 1.0 / AROUND  # of its readings, which an output that is never at rest repeats by chance
FROZEN = int(Status.FROZEN)  # as a plain number, for machine code
FORGETTING = 1.0 / (10 * AROUND)  # of what is known of its repeats, at each reading
RUN_FORGETTING = 1.0 / 32.0  # of the share of values that are held, at each new value


class RepeatCheck(Protocol):
    """Looks at readings as they come."""

    def flags(self, values: Array, codes: Codes, t: float, /) -> Codes: ...


def without_hung(readings: Measurements, table: Outputs, most: FrozenAfter) -> Measurements:
    """The readings with those FROZEN that their sensor did not make: `most` "auto" asks the rule of :func:`inspect`, a number is so many
    repeats of one value, None asks nothing. `table`: the sensors of these outputs."""
    if most != "auto":
        return readings.without_repeats(most)
    usable = readings.flags == USED
    hung = np.zeros(readings.values.shape, dtype=np.bool_)
    heard = {
        name: np.flatnonzero(usable[:, readings.names.index(name)]) for name in table.names if name in readings.names
    }
    columns = {name: readings.values[rows, readings.names.index(name)] for name, rows in heard.items()}
    log = _by_roles(table, {name: (readings.t[rows], columns[name]) for name, rows in heard.items()})
    for name, role in zip(table.names, roles_of(table), strict=True):
        if name in heard:
            hung[heard[name][unread_samples(log, role)], readings.names.index(name)] = True
    return readings.flagged(hung, Status.FROZEN) if hung.any() else readings


def roles_of(table: Outputs) -> tuple[str, ...]:
    """Names of the outputs as a log of joints has them, where they are those of coordinates and rates; of two of one the first."""
    found: list[str] = []
    for name, k in zip(table.names, table.owner, strict=True):
        sensor = table.sensors[k]
        role = f"{ROLES[sensor.kind]}{sensor.on}" if sensor.kind in ROLES else name
        found.append(name if role in found else role)
    return tuple(found)


def _by_roles(table: Outputs, columns: dict[str, tuple[Array, Array]]) -> Experiment:
    named = zip(table.names, table.units, roles_of(table), strict=True)
    return Experiment({role: Channel(role, *columns[n], unit) for n, unit, role in named if n in columns}, "readings")


# Rows of what is known of each output: its last value, equal readings in a row, readings, the share of them that repeat, the share of
# values that are held, the smallest step, 1 where it hangs, and 1 where it would, but all else stands still as well.
LAST, RUN, HEARD, REPEATED, HELD, STEP, HUNG, RESTS = range(8)


@kept
def note_repeats(t: float, values: Array, codes: Codes, known: Array, ring: Array, out: Codes, ask: Codes) -> int:
    """Take note of the readings of a step: 0 where none repeats the one before, 1 where one does, 2 where the rule is to `ask` about one.

    `known` (8, m), `ring` (2, m, WINDOW) of times and values, the next at the number of readings modulo its length. `out`: the codes, with
    those of outputs that hang, or may.
    """
    some, size = 0, ring.shape[2]
    for j in range(len(values)):
        out[j], ask[j] = codes[j], 0
        if codes[j] != USED:
            continue
        k, heard = known[:, j], known[HEARD, j]
        same = heard > 0.0 and values[j] == k[LAST]
        at = int(heard) % size
        ring[0, j, at], ring[1, j, at] = t, values[j]
        keep = min(heard / (heard + 1.0), 1.0 - FORGETTING)
        k[REPEATED] = keep * k[REPEATED] + (1.0 - keep) * (1.0 if same else 0.0)
        k[HEARD] = heard + 1.0
        if not same:
            k[HELD] += RUN_FORGETTING * ((1.0 if k[RUN] > 1.0 else 0.0) - k[HELD])
            step = abs(values[j] - k[LAST])
            if heard > 0.0 and (step < k[STEP] or k[STEP] == 0.0):
                k[STEP] = step
            k[LAST], k[RUN], k[HUNG], k[RESTS] = values[j], 1.0, 0.0, 0.0
            continue
        k[RUN] += 1.0
        some = max(some, 1)
        if k[HUNG] > 0.0:
            out[j] = FROZEN
            continue
        if heard >= AROUND and k[REPEATED] < SUSPECT_SHARE:
            out[j] = MISSING
        if k[HELD] <= HELD_SHARE and heard >= AROUND // 2:
            length = SHORTEST_FREEZE
            while length < k[RUN]:
                length *= 2
            if length == k[RUN]:
                ask[j] = 1
                some = 2
    return some


class HungOutputs:
    """Notices, reading by reading, outputs that repeat one value though the machine moves: for one stream."""

    def __init__(self, table: Outputs) -> None:
        m = len(table.names)
        self._table, self._roles = table, roles_of(table)
        self._known, self._ring = np.zeros((8, m)), np.zeros((2, m, WINDOW))
        self._ask: Codes = np.zeros(m, dtype=np.int8)

    def flags(self, values: Array, codes: Codes, t: float) -> Codes:
        """The codes, FROZEN where an output hangs, and MISSING where it may."""
        out = np.empty(len(codes), dtype=np.int8)
        if note_repeats(t, values, codes, self._known, self._ring, out, self._ask) == 2:
            for j in np.flatnonzero(self._ask).tolist():
                if self._hangs(j):
                    out[j] = FROZEN
        return out

    def _hangs(self, j: int) -> bool:
        t, x = self._heard(j)
        known, length = self._known[:, j], int(self._known[RUN, j])
        if not known[RESTS] and (
            length > ASKED_AT[-1] or not hangs(x, len(x) - length, float(known[STEP]), FALSE_ALARMS)
        ):
            return False
        log = _by_roles(self._table, {name: self._heard(k) for k, name in enumerate(self._table.names)})
        still = rests(log, self._roles[j], float(t[-min(length, len(t))]), float(t[-1]), whole=True)
        known[HUNG], known[RESTS] = not still, still
        return not still

    def _heard(self, j: int) -> tuple[Array, Array]:
        """Times and values of the last readings of an output, in order."""
        count = int(self._known[HEARD, j])
        at = np.arange(max(count - WINDOW, 0), count) % WINDOW
        return self._ring[0, j, at], self._ring[1, j, at]


def repeat_check(table: Outputs, most: FrozenAfter) -> RepeatCheck:
    """What looks at the readings of a stream: as :func:`without_hung` does at those of a log."""
    return HungOutputs(table) if most == "auto" else Repeats(len(table.names), most)
