"""Kinds of damage: what happens to logs on their way from a machine to a file, and a model that is of another machine.

A log is a table: "t", positions "q.*", and forces "force.*" or currents "signal.*", in the order of the joints; "q_motor.*" and
"force_motor.*" where it was recorded at motors. Which joint is damaged is drawn. What a machine has and its model lacks are the kinds of
:mod:`benchmarks.damage.structure`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.signal import lfilter

from veridyn.model.machine import Machine
from veridyn.model.place import Attachment
from veridyn.spatial.rotations import MDH, Placement

Table = dict[str, np.ndarray]


def unchanged(machine: Machine, _size: float) -> Machine:
    """The machine itself."""
    return machine


@dataclass(frozen=True)
class Damage:
    """`apply(columns, size, rng)` changes a log in place, `machine(machine, size)` the model that it is said to be of.

    `words`: one of them is in a message that names the damage; `sizes` bracket the bisection, None where a damage has no size. `causes`:
    one of them is in the cause of a finding that names it; none where the damage is found in the signals, before any fit. `log(size,
    quiet)` is the log itself where the machine that leaves it is another one, `places` what a finding may call the joint then.
    """

    name: str
    apply: Callable[[Table, float, np.random.Generator], None]
    words: tuple[str, ...]
    sizes: tuple[float, float] | None = None
    machine: Callable[[Machine, float], Machine] = unchanged
    causes: tuple[str, ...] = ()
    log: Callable[[float, bool], Table] | None = None
    places: tuple[str, ...] = ()


def positions(x: Table) -> list[str]:
    """Columns of positions."""
    return [k for k in x if k.startswith(("q.", "q_motor."))]


def forces(x: Table) -> list[str]:
    """Columns of forces or currents."""
    return [k for k in x if k.startswith(("force.", "force_motor.", "signal."))]


def _one(names: list[str], rng: np.random.Generator) -> str:
    return names[int(rng.integers(len(names)))]


def _start(rng: np.random.Generator, length: float, total: int) -> int:
    return int(rng.integers(int(0.1 * total), int(max(0.9 * total - length, 0.1 * total + 1))))


def dropout(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = _one(forces(x), rng), min(20, max(2, round(size)))
    a = _start(rng, n, len(x[k]))
    x[k][a : a + n] = 0.0


def long_dropout(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = _one(forces(x), rng), max(21, round(size))
    a = _start(rng, n, len(x[k]))
    x[k][a : a + n] = 0.0


def freeze(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = _one(forces(x), rng), max(5, round(size))
    a = _start(rng, n, len(x[k]))
    x[k][a : a + n] = x[k][a]


def freeze_position(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = _one(positions(x), rng), max(5, round(size))
    a = _start(rng, n, len(x[k]))
    x[k][a : a + n] = x[k][a]


def spike(x: Table, size: float, rng: np.random.Generator) -> None:
    k = _one(forces(x), rng)
    x[k][_start(rng, 1, len(x[k]))] += size


def spike_position(x: Table, size: float, rng: np.random.Generator) -> None:
    k = _one(positions(x), rng)
    x[k][_start(rng, 1, len(x[k]))] += size


def clip(x: Table, size: float, rng: np.random.Generator) -> None:
    k = _one(forces(x), rng)
    top = np.quantile(np.abs(x[k]), max(0.0, 1.0 - size))
    x[k][:] = np.clip(x[k], -top, top)


def swap_forces(x: Table, _size: float, _rng: np.random.Generator) -> None:
    a, b = forces(x)[:2]
    x[a], x[b] = x[b], x[a]


def swap_positions(x: Table, _size: float, _rng: np.random.Generator) -> None:
    a, b = positions(x)[1:3]
    x[a], x[b] = x[b], x[a]


def turn_force(x: Table, _size: float, rng: np.random.Generator) -> None:
    x[_one(forces(x), rng)] *= -1.0


def turn_position(x: Table, _size: float, rng: np.random.Generator) -> None:
    x[_one(positions(x)[1:], rng)] *= -1.0


def degrees(x: Table, _size: float, rng: np.random.Generator) -> None:
    x[_one(positions(x), rng)] *= 180.0 / np.pi


def scale_force(x: Table, size: float, rng: np.random.Generator) -> None:
    x[_one(forces(x), rng)] *= 1.0 + size


def scale_all(x: Table, _size: float, _rng: np.random.Generator) -> None:
    for k in forces(x):
        x[k] *= 1000.0


def late_force(x: Table, size: float, rng: np.random.Generator) -> None:
    k = _one(forces(x), rng)
    x[k] = np.interp(x["t"] - size, x["t"], x[k])


def drift(x: Table, size: float, rng: np.random.Generator) -> None:
    x[_one(forces(x), rng)] += size * (x["t"] - x["t"][0]) / (x["t"][-1] - x["t"][0])


def milliseconds(x: Table, _size: float, _rng: np.random.Generator) -> None:
    x["t"] *= 1000.0


def held(x: Table, size: float, rng: np.random.Generator) -> None:
    k, n = _one(forces(x), rng), max(2, round(size))
    x[k] = np.repeat(x[k][::n], n)[: len(x[k])]


def constant(x: Table, _size: float, rng: np.random.Generator) -> None:
    x[_one(forces(x), rng)][:] = 2.5


def encoder_offset(x: Table, size: float, rng: np.random.Generator) -> None:
    x[_one(positions(x)[1:-1], rng)] += size


def encoder_drift(x: Table, size: float, rng: np.random.Generator) -> None:
    """A position that is off by `size` at the end, growing evenly."""
    x[_one(positions(x)[1:], rng)] += size * (x["t"] - x["t"][0]) / (x["t"][-1] - x["t"][0])


def quantum(x: Table, size: float, rng: np.random.Generator) -> None:
    """A force in steps of that share of its range: 0.05 leaves twenty levels."""
    k = _one(forces(x), rng)
    step = size * float(np.ptp(x[k]))
    x[k][:] = step * np.round(x[k] / step)


def low_pass(x: Table, size: float, rng: np.random.Generator) -> None:
    """A force behind a filter of first order with a time constant of `size` seconds, as drives report it."""
    k, step = _one(forces(x), rng), float(np.median(np.diff(x["t"])))
    a = np.exp(-step / size)
    x[k][:], _ = lfilter([1.0 - a], [1.0, -a], x[k], zi=[a * x[k][0]])


def swap_positions_halfway(x: Table, _size: float, _rng: np.random.Generator) -> None:
    """From the middle on, two positions stand in each other's columns."""
    a, b = positions(x)[1:3]
    late = slice(len(x["t"]) // 2, None)
    x[a][late], x[b][late] = x[b][late].copy(), x[a][late].copy()


def whole(_x: Table, _size: float, _rng: np.random.Generator) -> None:
    """The log is as it was."""


def longer_links(machine: Machine, size: float) -> Machine:
    """Every distance between joints is 1 + size times what it is: the larger machine of a series."""
    return _with_placements(machine, [_stretched(p, 1.0 + size) for p in _placements(machine)])


def _stretched(p: MDH | Placement, factor: float) -> MDH | Placement:
    if isinstance(p, MDH):
        return replace(p, b=factor * p.b, d=factor * p.d, r=factor * p.r)
    return Placement(p.rotation, factor * p.position)


def other_axes(machine: Machine, _size: float) -> Machine:
    """The second joint acts along the axis of the first, as in an arm that moves in a plane."""
    placed = _placements(machine)
    k = next(i for i, (j, p) in enumerate(zip(machine.joints, placed)) if j.kind != "fixed" and not _parallel(p))
    placed[k] = Placement(None, placed[k].position)
    return _with_placements(machine, placed)


def _placements(machine: Machine) -> list[MDH | Placement]:
    """Where each joint sits on the body before it."""
    return [machine.ends(joint)[0].placement for joint in machine.joints]


def _with_placements(machine: Machine, placed: Sequence[MDH | Placement]) -> Machine:
    ends = [Attachment(machine.ends(joint)[0].body, p) for joint, p in zip(machine.joints, placed, strict=True)]
    return replace(machine, joints=tuple(replace(j, a=end) for j, end in zip(machine.joints, ends, strict=True)))


def _parallel(p: MDH | Placement) -> bool:
    return bool(abs(p.rotation[2, 2]) > 0.5)


TURNED = ("sign", "turned round")  # causes of a column, or of a gear, that counts the other way
DAMAGES = (
    Damage("dropout to zero", dropout, ("drops to zero",), (2.0, 20.0)),
    Damage("long dropout", long_dropout, ("frozen", "drops to zero", "clipped"), (21.0, 600.0)),
    Damage("frozen force", freeze, ("frozen",), (5.0, 1000.0)),
    Damage("frozen position", freeze_position, ("frozen",), (5.0, 1000.0)),
    Damage("spike of a force", spike, ("spike",), (0.1, 1e6)),
    Damage("spike of a position", spike_position, ("spike",), (1e-4, 1e3)),
    Damage("clipped force", clip, ("clipped",), (0.001, 0.9)),
    Damage("forces swapped", swap_forces, ("swapped", "below zero"), causes=("swap",)),
    Damage("positions swapped", swap_positions, ("swapped", "below zero", "sign"), causes=("swap",)),
    Damage("force turned", turn_force, ("sign", "below zero"), causes=TURNED),
    Damage("position turned", turn_position, ("sign", "other way", "below zero"), causes=TURNED),
    Damage("degrees", degrees, ("degrees", "too fast"), causes=("unit", "degrees")),
    Damage(
        "scale of a force",
        scale_force,
        ("factor", "times what it should be"),
        (0.005, 1000.0),
        causes=("gain", "scale"),
    ),
    Damage("all forces × 1000", scale_all, ("factor",), causes=("gain", "scale", "unit")),
    Damage("late force", late_force, ("late",), (1e-4, 0.3), causes=("delay", "late")),
    Damage("drift of a force", drift, ("drift",), (0.01, 300.0), causes=("force drift",)),
    Damage("milliseconds", milliseconds, ("clock",)),
    Damage("held values", held, ("keeps each value",), (2.0, 40.0)),
    Damage("constant force", constant, ("never changes",)),
    Damage("encoder offset", encoder_offset, ("another zero", "sit elsewhere"), (1e-4, 1.0), causes=("zero",)),
    Damage(
        "robot of another size",
        whole,
        ("sit elsewhere", "another zero"),
        (1e-3, 1.0),
        longer_links,
        ("length", "size", "larger machine", "geometry"),
    ),
    Damage(
        "robot with other axes",
        whole,
        ("sit elsewhere", "model does not explain"),
        None,
        other_axes,
        ("length", "geometry", "axis", "unexplained"),
    ),
    Damage("drifting encoder", encoder_drift, ("encoder drift",), (1e-5, 300.0), causes=("encoder drift",)),
    Damage("torque in steps", quantum, ("steps", "multiples of", "quantum"), (1e-3, 0.5)),
    Damage(
        "torque behind a low-pass",
        low_pass,
        ("low-passed", "behind a low-pass"),
        (1e-4, 0.3),
        causes=("low-pass", "lowpass"),
    ),
    Damage("positions swapped halfway", swap_positions_halfway, ("swapped",), causes=("swap",)),
)
