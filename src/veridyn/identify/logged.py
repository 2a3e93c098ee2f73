"""From a log to the motion of any machine: an open tree as it was measured, a closed one from the coordinates that were.

A machine with loops is measured at its drives, as a rule, and sometimes elsewhere. The measured positions are filtered and differentiated
as those of any tree; coordinates that determine the machine are taken from them, and all the others follow from closed loops. What is
measured besides is compared with what follows: zeros of encoders and lengths of the model that are wrong show there.

Positions may be out of reach, and a simple mistake in the log may explain that. A log in degrees, with two columns swapped or one turned
round mostly leads where the loops cannot be closed. Each such mistake is undone on some samples, and those are named with which all of
them can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.tree.loops.assembly import Split, assembled, determined_by
from veridyn.mechanics.tree.loops.closure import closed_or_none, whole_motion
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, Pose
from veridyn.signals.motion import Signals, prepare
from veridyn.signals.naming import measured_positions, with_sensor_channels, with_usual_names

Lowpass = float | Literal["auto"] | None
SAMPLES = 60
DEGREES = np.pi / 180.0
NAMED_READINGS = 4  # readings that are named


@dataclass(frozen=True, eq=False)
class Logged:
    """The `motion` of all coordinates; `given`: those it was made from. `spare`: measured besides → (N,), measured less what follows."""

    motion: Motion
    given: tuple[str, ...]
    spare: Mapping[str, Array] = field(default_factory=dict)


@takes_machine
def motion(machine: Machine, log: Experiment, signals: Signals | None = None, *, pose: Pose | None = None) -> Motion:
    """The motion of a machine that a log recorded: one clock, one low-pass filter, derivatives, loops closed where there are any.

    Channels are found by name, as :mod:`veridyn.signals.motion` lists them. Of a machine with loops any coordinates may be measured that
    determine it: the actuated ones, the pose of a platform, or more.

    Parameters
    ----------
    machine : Machine
        The machine.
    log : Experiment
        Channels such as "q.c" (rad or m) and "force.c" (N*m or N) for a coordinate c, each on its own clock; usual names such as q1 and
        tau1 are understood too (:mod:`veridyn.signals.naming`).
    signals : Signals, optional
        Rate, low-pass filter, derivative and trim; by default the rate of the fastest channel, and a low-pass chosen from the spectra of
        the positions where their noise would bias what follows. Ends in motion lose what the low-pass takes to settle, unless `trim` says
        otherwise: the motion is that much shorter than the log, and its notes say by how much.
    pose : Pose, optional
        Measured rotations (N, 3, 3) and positions (N, 3) of a free base, in place of its channels.

    Returns
    -------
    Motion
        N samples of all coordinates, their rates and accelerations, with forces, wrenches and signals where they are measured.

    Raises
    ------
    DataError
        A channel is missing, or has another unit or a bad clock; a pose out of reach or behind a singular one, with its time.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)  # moves in the x-y plane, gravity along −y
    >>> t = 0.01 * np.arange(500)
    >>> values = {"q.hinge": 0.5 * np.sin(2 * t), "force.hinge": np.cos(2 * t)}
    >>> log = vd.Experiment.from_arrays(t, values, {"q.hinge": "rad", "force.hinge": "N*m"})
    >>> motion = vd.motion(pendulum, log, vd.Signals(lowpass=10.0, trim=0.5))
    >>> bool(abs(motion.qd[:, 0] - np.cos(2 * motion.t)).max() < 1e-3)
    True
    """
    machine.need_joints("motion of joints")
    return logged(machine, log, signals, pose=pose).motion


def logged(machine: Machine, log: Experiment, signals: Signals | None = None, *, pose: Pose | None = None) -> Logged:
    """The same, and what it was made from."""
    how = signals or Signals()
    return logged_at(machine, log, how, pose=pose)(how.lowpass)


def logged_at(
    machine: Machine, log: Experiment, signals: Signals, *, pose: Pose | None = None
) -> Callable[[Lowpass], Logged]:
    """The same as a function of the cut-off (Hz), in place of that of `signals`: what does not depend on it is done once."""
    named = with_usual_names(machine, log)
    log = with_sensor_channels(machine, named)
    measured, split = None, None
    if machine.closed:
        measured = measured_positions(machine, log)
        _check_forces(machine, log)
        split = determining(machine, measured, log.name)
    recorded = prepare(machine, log, signals, pose=pose, positions=measured)

    def made(lowpass: Lowpass) -> Logged:
        part = recorded.at(lowpass).motion()
        return Logged(part, machine.coordinates) if split is None else _closed(split, part, measured or (), log.name)

    return made


def _closed(split: Split, part: Motion, measured: Collection[str], name: str) -> Logged:
    """The motion of a closed machine from that of its measured coordinates."""
    given = split.names
    own = given_motion(split, part)
    try:
        whole = whole_motion(split, own)
    except DataError as error:
        other = readings_in_reach(split, own.q)
        hint = f" These readings can be reached: {'; '.join(other)}." if other else ""
        faults = [replace(f, where=f"{name}, {f.where}", hint=f.hint + hint) for f in error.faults]
        raise DataError(faults) from None
    names = split.tree.coordinates
    spare = {c: part.q[:, k] - whole.q[:, k] for k, c in enumerate(names) if c in measured and c not in given}
    noise = part.noise_bands
    if noise is not None:  # that of positions the motion was not made from is not in it
        kept = np.array([[c in given] for c in names])
        noise = replace(noise, variance=np.where(kept, noise.variance, 0.0))
    whole = replace(
        whole,
        forces=part.forces,
        wrenches=part.wrenches,
        signals=part.signals,
        notes=part.notes,
        noise_bands=noise,
        lowpass=part.lowpass,
    )
    return Logged(whole, given, spare)


def prepared_motions(machine: Machine, given: object) -> Motion | Sequence[Motion]:
    """Motions as they are, and logs made motions with default settings; anything else is refused by name."""
    if isinstance(given, list | tuple):
        return [_as_motion(machine, part) for part in given]
    if isinstance(given, Sequence) and not isinstance(given, Motion | str | bytes):
        return given
    return _as_motion(machine, given)


def _as_motion(machine: Machine, given: object) -> Motion:
    if isinstance(given, Motion):
        return given
    if isinstance(given, Experiment):
        return logged(machine, given).motion
    raise DataError(
        "it is no motion.",
        where="motion",
        expected="a Motion, a log (Experiment), or a list of them",
        found=f"{type(given).__name__}",
        hint="veridyn.load_log reads a log, and veridyn.motion makes it a motion.",
    )


def given_motion(split: Split, m: Motion) -> Motion:
    """A motion of all coordinates as that of the given ones alone."""
    own = list(split.given)
    return Motion(m.t, m.q[:, own], m.qd[:, own], m.qdd[:, own], m.base)


def determining(machine: Machine, measured: Sequence[str], where: str) -> Split:
    """As many of the measured coordinates of a closed machine as determine it, those with an equation of their own first."""
    tree = tree_of(machine)
    split = determined_by(tree, measured)
    if split is not None:
        return split
    own = [machine.coordinates[k] for k in machine.independent]
    raise DataError(
        f"the positions measured do not determine '{machine.name}', whose loops leave it {assembled(tree).freedom} degrees of freedom.",
        where=where,
        expected=f"channels {', '.join(f'q.{c}' for c in own)}, or others that do",
        found=", ".join(f"q.{c}" for c in measured) or "no position",
        hint=f"Missing of the former: {', '.join(f'q.{c}' for c in own if c not in measured)}.",
    )


def _check_forces(machine: Machine, log: Experiment) -> None:
    """A force on a joint that has no motor would be lost, because the joint has no equation of its own."""
    driven = {machine.coordinates[k] for k in machine.independent}
    odd = [c for c in machine.coordinates if f"force.{c}" in log and c not in driven]
    if odd:
        raise DataError(
            "a passive joint of a loop has no motor, and yet its force is a channel.",
            where=f"{log.name}, force.{odd[0]}",
            expected=", ".join(f"force.{c}" for c in machine.actuated_coordinates),
            hint="Drop the column, or mark the joint actuated in the model.",
        )


def readings_in_reach(split: Split, q: Array) -> list[str]:
    """What could be otherwise about positions q (N, given) that cannot all be reached, in words; empty where nothing simple helps."""
    few = q[np.unique(np.linspace(0, len(q) - 1, SAMPLES).astype(int))]
    return [words for words, T in _readings(split) if _reached(split, few @ T.T)][:NAMED_READINGS]


def _readings(split: Split) -> list[tuple[str, Array]]:
    given, kinds = split.names, [split.tree.coordinate_kinds[k] for k in split.given]
    turning = [k for k, kind in enumerate(kinds) if kind == "turning"]
    n, out = len(given), []
    for group in ([turning] if len(turning) > 1 else []) + [[k] for k in turning]:
        T = np.eye(n)
        T[group, group] = DEGREES
        out.append((f"{', '.join(given[k] for k in group)} in degrees, not radians", T))
    for k in (k for k in range(n) if k not in turning):
        T = np.eye(n)
        T[k, k] = 1e-3
        out.append((f"{given[k]} in mm, not m", T))
    for i, j in combinations(range(n), 2):
        if kinds[i] == kinds[j]:
            T = np.eye(n)
            T[[i, j]] = T[[j, i]]
            out.append((f"{given[i]} and {given[j]} swapped", T))
    for k in range(n):
        T = np.eye(n)
        T[k, k] = -1.0
        out.append((f"{given[k]} with the other sign", T))
    return out


def _reached(split: Split, q: Array) -> bool:
    still = np.zeros_like(q)
    return closed_or_none(split, Motion(np.arange(float(len(q))), q, still, still)) is not None
