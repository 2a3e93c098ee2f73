"""Position, velocity and acceleration problems, independent coordinates, and the R-matrix with its exact rate.

Given some coordinates, their rates and accelerations, all others follow from Φ(q) = 0, Φ_q q̇ = 0 and Φ_q q̈ + Φ̇_q q̇ = 0
(paper 003, equations 7 to 11). With independent coordinates z: q̇ = R ż, Φ_q R = 0, q̈ = R z̈ + Ṙ ż, Φ_q Ṙ = −Φ̇_q R.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import get_lapack_funcs, qr
from scipy.optimize import least_squares

from veridyn.arrays import Array
from veridyn.errors import DataError, Fault, Faults, ModelError
from veridyn.mechanics.natural.equations.system import NaturalSystem

Indices = NDArray[np.intp]
_factor, _condition, _solve = get_lapack_funcs(("getrf", "gecon", "getrs"), dtype=np.float64)
TOLERANCE = 1e-12  # of the constraints, relative to the square of the mechanism's size
ITERATIONS = 100
STALLED_DECREASE = 1e-9  # a step that shortens the residual by less than this share gets nowhere
RANK = 1e-9  # relative: singular values below it count as zero
REGULAR_RCOND = 1e-8  # reciprocal condition above which a square system needs no closer look
STRIDE = 0.2  # rad, and of the mechanism's size: between two poses on the way to one that is not found at once
MOST_STRIDES = 200
WELL_DETERMINED = 1e-4  # relative: a preferred coordinate must leave the others this well determined


def position(system: NaturalSystem, given: Mapping[str, float] | None = None, guess: ArrayLike | None = None) -> Array:
    """The pose q with Φ(q) = 0 nearest the guess, the coordinates `given` by name held; Newton's method (9), damped.

    Prescribed coordinates are where `given` has them, or where the system holds them. The guess defaults to the description's own; it
    decides between assemblies. A pose that cannot be reached raises :class:`~veridyn.errors.DataError`; constraints that no pose
    satisfies raise :class:`~veridyn.errors.ModelError` and are named.
    """
    start = system.guess if guess is None else system.vector(guess, "pose")
    wanted = {name: float(value) for name, value in (given or {}).items()}
    led, held = _apart(system, wanted)
    system = system.holding(led)
    index = system.select(held)
    q = start.copy()
    q[index] = list(held.values())
    system.vector(q, "pose")
    q, residual = _closed(system, q, _others(system, index))
    if _good(system, q, residual):
        if guess is None:
            _refuse_mirrored(system, q)
        return q
    if held:
        loose, loose_residual = _closed(system, start.copy(), np.arange(system.n))
        if _good(system, loose, loose_residual):
            q, residual = _led(system, loose, index, np.array(list(held.values())))
            if _good(system, q, residual):
                return q
            worst = _worst(system, q)
            raise DataError(
                "the mechanism cannot reach this pose from the guess.",
                where=system.mechanism.name,
                expected="all constraints closed with " + ", ".join(f"{k} = {v:.6g}" for k, v in held.items()),
                found=f"'{worst[0][0]}' ({worst[0][1]}) open by {worst[0][2]:.3g}",
                hint="Nearest closed pose to the guess: "
                + ", ".join(f"{k} = {loose[i]:.6g}" for k, i in zip(held, index, strict=True))
                + ". Try that, or another guess.",
            )
        q = loose
    _refuse_half_turned(system, q)
    worst = _worst(system, q)
    raise ModelError(
        "no pose near the guess satisfies all constraints: they contradict each other.",
        where=system.mechanism.name,
        expected="every constraint closed",
        found=", ".join(f"'{name}' ({owner}) open by {off:.3g}" for name, owner, off in worst),
        hint="Look at the lengths of these, or give a guess nearer to a closed pose.",
    )


def _good(system: NaturalSystem, q: Array, residual: float) -> bool:
    """Whether all constraints are closed, and every angle measures what it should and not half a turn from it."""
    return residual <= TOLERANCE * _size(system, q) and not len(system.constraints.half_turned(q))


def _led(system: NaturalSystem, q: Array, index: Indices, wanted: Array) -> tuple[Array, float]:
    """From a closed pose along a straight line of the coordinates `index` to where they are wanted, in strides; and what is left open."""
    rest, size, turns = _others(system, index), np.sqrt(_size(system, q)), np.isin(index, system.constraints.places)
    q[index[turns]] += 2.0 * np.pi * np.round((wanted - q[index])[turns] / (2.0 * np.pi))  # the same pose
    begin = q[index].copy()
    strides = np.abs(wanted - begin) / np.where(turns, STRIDE, STRIDE * size)
    count, residual = int(np.clip(np.ceil(strides.max(initial=0.0)), 1, MOST_STRIDES)), np.inf
    for k in range(1, count + 1):
        J, move = system.constraints.jacobian(q), np.zeros(system.n)
        move[index] = begin + (wanted - begin) * k / count - q[index]
        move[rest] = np.linalg.lstsq(J[:, rest], -(J[:, index] @ move[index]), rcond=RANK)[0]
        q, residual = _newton(system, q + move, rest)
        if not _good(system, q, residual):
            break
    return q, residual


def _refuse_half_turned(system: NaturalSystem, q: Array) -> None:
    """Say which angles are met only half a turn from what they measure."""
    faults = Faults()
    for k in system.constraints.half_turned(q):
        faults.add(
            "no pose near the guess has this angle: one half a turn from it is nearest.",
            where=f"coordinate '{system.coordinates[k]}'",
            found=f"{q[k]:.6g} rad",
            hint="Give a guess nearer to the pose.",
        )
    faults.raise_if_any(DataError, system.mechanism.name)


def _refuse_mirrored(system: NaturalSystem, q: Array) -> None:
    """Lengths and angles hold of a body's mirror image too, and no motion leads from the one to the other."""
    faults = Faults()
    for name in system.geometry.mirrored(q):
        faults.add(
            "its points and vectors start as those of its mirror image.",
            where=f"body '{name}'",
            expected="directions that are right-handed where those in its own frame are",
            hint="Correct where they start, or their places in the body's frame.",
        )
    faults.raise_if_any(ModelError, system.mechanism.name)


def nearest_closed(system: NaturalSystem, guess: Array) -> tuple[Array, float]:
    """The closed pose nearest a guess, and the largest residual it is left with: the caller judges it."""
    return _closed(system, guess.copy(), np.arange(system.n))


def velocity(system: NaturalSystem, q: Array, given: Mapping[str, float] | None = None) -> Array:
    """All rates q̇ from those `given` by name (10), which must be independent and complete; prescribed ones are as the system holds them."""
    return _linear(system, q, dict(given or {}), system.constraints.rates)


def acceleration(system: NaturalSystem, q: Array, qd: Array, given: Mapping[str, float] | None = None) -> Array:
    """All accelerations q̈ from those `given` by name (11), which must be independent and complete."""
    return _linear(system, q, dict(given or {}), system.constraints.second_rates(q, qd))


def _apart(system: NaturalSystem, given: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """What is given of prescribed coordinates, and of the others."""
    led = {name: value for name, value in given.items() if name in system.mechanism.prescribed}
    return led, {name: value for name, value in given.items() if name not in led}


def independent(system: NaturalSystem, q: Array, prefer: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of n − rank Φ_q coordinates that determine all others at a pose: those of `prefer` as far as they will do.

    The others are chosen so that the dependent columns of Φ_q are as far from singular as pivoting makes them.
    """
    J = system.constraints.jacobian(q)
    J = J / _lengths(J)[:, None]
    rank = _rank(J)
    names: list[str] = []
    for name in (*prefer, *(a.name for a in system.mechanism.added)):
        if name not in names and len(names) < system.n - rank:
            rest = _others(system, system.select([*names, name]))
            if _rank(J[:, rest], WELL_DETERMINED) == rank:
                names.append(name)
    rest = _others(system, system.select(names))
    _, pivots = cast(tuple[Array, Indices], qr(J[:, rest], mode="r", pivoting=True))
    return (*names, *(system.coordinates[rest[k]] for k in np.sort(pivots[rank:])))


def r_matrix(system: NaturalSystem, q: Array, independents: Iterable[str]) -> Array:
    """R (n, f) with q̇ = R ż: its rows of the independent coordinates are a unit matrix, and Φ_q R = 0."""
    z = system.select(independents)
    R = np.zeros((system.n, len(z)))
    R[z, np.arange(len(z))] = 1.0
    J = system.constraints.jacobian(q)
    rest = _others(system, z)
    R[rest] = _determined(system, J, rest, -J[:, z])
    return R


def r_rate(system: NaturalSystem, q: Array, qd: Array, independents: Iterable[str], R: Array | None = None) -> Array:
    """Ṙ (n, f) along any q̇ with Φ_q q̇ = 0; with q̇ = column j of R it is ∂R/∂zⱼ."""
    z = system.select(independents)
    known = r_matrix(system, q, independents) if R is None else R
    J = system.constraints.jacobian(q)
    rest = _others(system, z)
    rate = np.zeros_like(known)
    rate[rest] = _determined(system, J, rest, -system.constraints.jacobian_rate(q, qd) @ known)
    return rate


def _closed(system: NaturalSystem, q: Array, free: Indices) -> tuple[Array, float]:
    """Newton's method; where it stalls, the pose that leaves the constraints least open, and Newton once more from there."""
    found, residual = _newton(system, q, free)
    if residual <= TOLERANCE * _size(system, found) or not len(free):
        return found, residual

    def at(x: Array) -> Array:
        pose = found.copy()
        pose[free] = x
        return pose

    least = least_squares(
        lambda x: system.constraints.values(at(x)),
        found[free],
        jac=lambda x: system.constraints.jacobian(at(x))[:, free],  # pyright: ignore[reportArgumentType]
        xtol=1e-14,
        ftol=1e-14,
        gtol=1e-14,
        max_nfev=ITERATIONS,
    )
    return _newton(system, at(least.x), free)


def _newton(system: NaturalSystem, q: Array, free: Indices) -> tuple[Array, float]:
    phi, J = system.constraints.evaluate(q)
    for _ in range(ITERATIONS):
        residual = float(np.abs(phi).max(initial=0.0))
        if residual <= 1e-3 * TOLERANCE or not len(free):
            break
        step = np.linalg.lstsq(J[:, free], -phi, rcond=RANK)[0]
        share, squared = 1.0, float(phi @ phi)
        while True:
            trial = q.copy()
            trial[free] += share * step
            new_phi, new_J = system.constraints.evaluate(trial)
            new_squared = float(new_phi @ new_phi)
            if new_squared < squared or share < 1e-6:
                break
            share *= 0.5
        if not new_squared < squared:
            break
        q, phi, J = trial, new_phi, new_J
        if new_squared > (1.0 - STALLED_DECREASE) * squared:
            break
    return q, float(np.abs(phi).max(initial=0.0))


def _linear(system: NaturalSystem, q: Array, given: Mapping[str, float], right: Array) -> Array:
    index = system.select(given)
    x = np.zeros(system.n)
    x[index] = list(given.values())
    system.vector(x, "rate or acceleration")
    J = system.constraints.jacobian(q)
    rest = _others(system, index)
    x[rest] = _determined(system, J, rest, right - J[:, index] @ x[index])
    return x


def _determined(system: NaturalSystem, J: Array, rest: Indices, right: Array) -> Array:
    """Solve J[:, rest] x = right, refusing where the coordinates left are not determined or the right side cannot be met."""
    length = _lengths(J)  # rows of one length, so that the rank does not hang on units and sizes
    part, right = J[:, rest] / length[:, None], (right.T / length).T
    if len(part) == len(rest):
        # The common case, no redundant row: one factorisation, trusted where it is far from singular.
        lu, pivots, info = _factor(part)
        if len(rest) == 0 or (info == 0 and _condition(lu, np.abs(part).sum(axis=0).max())[0] > REGULAR_RCOND):
            return np.asarray(_solve(lu, pivots, right)[0], dtype=np.float64) if right.size else right[: len(rest)]
    _, s, Vt = np.linalg.svd(part)
    rank = int((s > RANK * max(s.max(initial=0.0), 1e-300)).sum())
    if rank < len(rest):
        loose = rest[int(np.argmax(np.abs(Vt[-1])))]
        raise DataError(
            f"the given coordinates do not determine '{system.coordinates[loose]}' at this pose.",
            where=system.mechanism.name,
            expected=f"{system.n - _rank(J / length[:, None])} independent coordinates",
            found=f"{system.n - len(rest)} that leave {len(rest) - rank} free",
            hint="Give other or more coordinates, or leave the singular pose.",
        )
    x = np.asarray(np.linalg.lstsq(part, right, rcond=RANK)[0], dtype=np.float64)
    off = float(np.abs(part @ x - right).max(initial=0.0))
    if off > 1e-8 * max(1.0, float(np.abs(right).max(initial=0.0))):
        raise DataError(
            "the given rates or accelerations contradict the constraints at this pose.",
            where=system.mechanism.name,
            found=f"a residual of {off:.3g}",
            hint="Give only independent coordinates.",
        )
    return x


def _others(system: NaturalSystem, index: Indices) -> Indices:
    keep = np.ones(system.n, dtype=np.bool_)
    keep[index] = False
    return np.flatnonzero(keep)


def _rank(J: Array, tolerance: float = RANK) -> int:
    s = np.linalg.svd(J, compute_uv=False) if J.size else np.zeros(0)
    return int((s > tolerance * max(s.max(initial=0.0), 1e-300)).sum())


def _lengths(J: Array) -> Array:
    length = np.linalg.norm(J, axis=1)
    return np.where(length > 0.0, length, 1.0).astype(np.float64)


def _size(system: NaturalSystem, q: Array) -> float:
    return max(1.0, float(np.abs(q).max(initial=0.0)) ** 2)


def _worst(system: NaturalSystem, q: Array) -> list[tuple[str, str, float]]:
    """The constraints that are open, the widest first: name, owner, residual."""
    phi = np.abs(system.constraints.values(q))
    order = [i for i in np.argsort(-phi)[:4] if phi[i] > 0.1 * phi.max()]
    return [(system.constraints.names[i], system.constraints.owners[i], float(phi[i])) for i in order]


def start_of(
    system: NaturalSystem, given: Mapping[str, float] | None = None, rates_: Mapping[str, float] | None = None
) -> tuple[Array, Array]:
    """A consistent pose and velocity from coordinates and rates by name; rates that are left out are zero."""
    q = position(system, given)
    names = independent(system, q, tuple(rates_ or ()))
    R = r_matrix(system, q, names)
    unknown = [n for n in rates_ or () if n not in names]
    if unknown:
        system.select(unknown)  # refuses a name that does not exist
        raise DataError(
            Fault(
                f"the rate of '{unknown[0]}' follows from the others.",
                where=system.mechanism.name,
                at=("rates", unknown[0]),
                expected=f"rates of at most {len(names)} independent coordinates, such as {', '.join(names)}",
            )
        )
    return q, R @ np.array([float((rates_ or {}).get(n, 0.0)) for n in names])
