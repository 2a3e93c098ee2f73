"""What cannot be streamed is refused before any sample is computed: forces where motors act, sizes, and names that exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataError, Faults, did_you_mean
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.regression.workers import map_in_order, threads_unless
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

STRETCH = 16384  # samples that are looked at in one go
LARGEST_VALUE = 1e50  # no quantity in SI units is larger, and the squares of much larger ones overflow


def check_equations(
    machine: Machine, rows: Sequence[int], how: Sampling, motions: Sequence[Motion], threads: int = 1
) -> None:
    """Refuse what cannot be streamed: every fault at once. `rows`: their numbers; `threads`: so many look at the numbers of long logs."""
    faults = Faults()
    if not motions:
        raise DataError("there is no motion to identify from.", where=machine.name)
    for motion in motions:
        machine.check_motion(motion)
        _check_sizes(machine, motion, faults, threads)
        _check_forces(machine, rows, how, motion, faults)
    names = [machine.rows[r] for r in rows]
    moving = [e.parameter_name for e in machine.elements if e.on_body is None and e.between is None]
    joints = [*names, *(c for c in machine.coordinates if machine.closed and c not in names)]
    for setting, keys, known in (("dead_zone", how.zones, [*joints, *moving]), ("drop", how.drop, names)):
        for name in keys:
            if name not in known:
                faults.add(
                    f"'{name}' is not one of the rows.", where=f"sampling.{setting}", hint=did_you_mean(name, known)
                )
            elif setting == "dead_zone" and name not in machine.coordinates and name not in moving:
                faults.add(f"row '{name}' has no speed of its own.", where="sampling.dead_zone")
    for name in (*how.filters, *how.along):
        if name not in names:
            where = "sampling.filters" if name in how.filters else "sampling.along"
            faults.add(f"'{name}' is not one of the rows.", where=where, hint=did_you_mean(name, names))
    for row, path in how.along.items():
        for other, signal in path.items():
            if other not in machine.rows:
                hint = did_you_mean(other, machine.rows)
                faults.add(f"there is no row '{other}'.", where=f"sampling.along['{row}']", hint=hint)
            if any(signal not in motion.signals for motion in motions):
                hint = did_you_mean(signal, list(motions[0].signals))
                faults.add(f"the motion has no signal '{signal}'.", where=f"sampling.along['{row}']", hint=hint)
    for name, mask in how.drop.items():
        total = sum(len(motion) for motion in motions)
        if np.asarray(mask).shape != (total,):
            faults.add(
                "a mask has one entry for each sample of all motions, in order.",
                where=f"sampling.drop['{name}']",
                expected=f"({total},)",
                found=f"{np.asarray(mask).shape}",
            )
    if how.decimate < 1 or how.trim < 0 or how.block < 1:
        faults.add("decimate and block must be at least 1, trim at least 0.", where="sampling")
    if how.method not in ("qr", "gram"):
        faults.add(f"there is no method '{how.method}'.", where="sampling.method", expected="'qr' or 'gram'")
    faults.raise_if_any(DataError, machine.name)


def _check_forces(machine: Machine, rows: Sequence[int], how: Sampling, motion: Motion, faults: Faults) -> None:
    first = len(machine.rows) - machine.n
    for r in rows:
        if r < first:
            continue
        k, name = r - first, machine.rows[r]
        given = None if motion.forces is None else motion.forces[:, k]
        missing = given is None or _nothing_in(given)
        if machine.actuated[k] and missing and name not in driven(machine):
            faults.add(
                "the joint is actuated, and no force of it is measured.",
                where=f"row '{name}'",
                expected="a column of motion.forces, or a drive_gain element with its signal",
                hint="Leave the row out (rows=…), or mark the joint passive if it has no motor.",
            )
        if given is not None and not machine.actuated[k] and np.nanmax(np.abs(given), initial=0.0) > 0.0:
            faults.add(
                "the joint is passive, and yet a force of it is given.",
                where=f"row '{name}'",
                expected="zero or NaN",
                found=f"up to {np.nanmax(np.abs(given)):.4g}",
                hint="Mark the joint actuated, or give NaN.",
            )
        if given is not None and how.filter_of(name) is not None and np.isnan(given).any() and not missing:
            faults.add(
                "its measured force has gaps (NaN), which a filter would smear.",
                where=f"row '{name}'",
                hint="Cut the motion into pieces without gaps and give them as a list.",
            )


def _nothing_in(force: NDArray[np.float64]) -> bool:
    """Whether all numbers are missing; the first, as a rule, shows that they are not."""
    return bool(np.isnan(force[:1]).all() and np.isnan(force).all())


def _check_sizes(machine: Machine, motion: Motion, faults: Faults, threads: int) -> None:
    """Numbers that no measurement has, such as the 1e160 or infinity of a failed conversion; NaN marks a gap and may stand."""
    for where, x in _too_large_arrays(machine, motion, threads):
        rows = np.abs(x.reshape(len(x), -1))
        large = (rows > LARGEST_VALUE).any(axis=1)
        first, count = int(np.argmax(large)), int(large.sum())
        faults.add(
            "no measured quantity is so large.",
            where=where,
            expected=f"at most {LARGEST_VALUE:g} in SI units",
            found=f"{np.nanmax(rows[first]):.4g} at t = {motion.t[first]:.6g} s"
            + (f", {count} in all" if count > 1 else ""),
            hint="Cut these samples out, or mark them as missing where the log is read.",
        )


def _too_large_arrays(machine: Machine, motion: Motion, threads: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Arrays of a motion (N,) or (N, k) with a number that is too large, and their places; of coordinates, the columns that have one."""
    arrays = {f"motion.{name}": getattr(motion, name) for name in ("q", "qd", "qdd", "forces")}
    by_column = set(arrays)
    if motion.base is not None:
        arrays |= {f"motion.base.{f.name}": getattr(motion.base, f.name) for f in fields(motion.base)}
    arrays |= {f"motion.wrenches['{name}']": x for name, x in motion.wrenches.items()}
    arrays |= {f"motion.signals['{name}']": x for name, x in motion.signals.items()}
    given = {where: x for where, x in arrays.items() if x is not None and x.size}
    stretches = [
        (where, x[start : start + STRETCH]) for where, x in given.items() for start in range(0, len(x), STRETCH)
    ]
    with threads_unless(None, min(threads, len(stretches))) as (executor, ahead):
        found = map_in_order(executor, _too_large, (x for _, x in stretches), ahead)
        large = {where for (where, _), answer in zip(stretches, found, strict=True) if answer}
    for where in (w for w in given if w in large):
        if where not in by_column:
            yield where, given[where]
            continue
        # A column alone is read as slowly as all of them, so they are looked at where one is known to be too large.
        columns = ((f"{where}, '{c}'", given[where][:, k]) for k, c in enumerate(machine.coordinates))
        yield from ((place, x) for place, x in columns if _too_large(x))


def _too_large(x: NDArray[np.float64]) -> bool:
    """Whether some number is. The sum of squares of smaller ones is small, and quickly made; where it is not, gaps do not count."""
    flat = x.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if float(flat @ flat) <= LARGEST_VALUE**2:
            return False
    return bool(max(np.fmax.reduce(flat), -np.fmin.reduce(flat)) > LARGEST_VALUE)


def driven(machine: Machine) -> set[str]:
    """Coordinates whose force is a drive gain times a signal, so that no measured force is needed."""
    return {c for e in machine.elements if e.kind == "drive_gain" for c in e.on}
