"""Observability of the state along a trajectory, by name, which further sensor would add to it, and where a coordinate is lost.

    O = [R⁻½ H₀; R⁻½ H₁ F₁; R⁻½ H₂ F₂ F₁; …] · diag(typical sizes)                 (paper 003, equation 44, along a motion)

Rows are in standard deviations of the sensors and columns in typical sizes of the states, so a singular value says by how
many deviations, over the whole log, the readings change when the state at its start changes by its typical size along
that direction. Zero: it is not observable in this motion. Below one: the log adds less than was known already. The stack is never
stored; it streams through a small triangular factor.

Sensors lose sight of a coordinate at dead centres along a run, though the log as a whole shows it:

    c_i(t) = √Σ_j (∂h_j/∂z_i)²/r_j        what the readings of one sample say about the coordinate z_i, 1/deviation

A gauge on the slider of a crank reads x(φ), and nothing of φ where ∂x/∂φ is zero: from there the crank may go on or turn back, and a
filter that knows one tangent follows one of both. The coordinate is lost where c_i falls below `LOST_SHARE` of what it usually is along
the log; a sensor of the coordinate itself keeps it constant.

Does an observer forget its errors? The closed loop that the gain really makes, along the run, is e_k = (I − K_k H_k) F_k e_{k−1}. For a
constant gain its poles are the eigenvalues of F (I − K H). Along a trajectory eigenvalues decide nothing, so the growth rates of the
product of all steps are found by repeated QR factors: the largest is negative when every error dies out. The matrix of paper 003, equation
65, is block triangular, its eigenvalues do not contain the gain, and its test is passed by any gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from veridyn.arguments import as_array, checked
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, SimulationError
from veridyn.observe.machine import MachineSystem
from veridyn.observe.measurements import Status
from veridyn.observe.result import Estimates
from veridyn.observe.system import System

BLOCK_ROWS = 128  # rows between two triangular factors


@dataclass(frozen=True, eq=False)
class ExtraSensor:
    """A sensor that might be added: its derivative `H` (k, n), or a callable of the state and the inputs, and its deviation `sigma`."""

    name: str
    H: ArrayLike | Callable[[Array, Array], ArrayLike]
    sigma: float


@dataclass(frozen=True, eq=False)
class Direction:
    """A change of state, `change` (n,) in the states' own units, that the readings show by `seen` deviations."""

    change: Array
    seen: float
    text: str


@dataclass(frozen=True, eq=False)
class Observability:
    """Singular values (n,) of O, the largest first; `rank` of them are not zero, and `gap` is the ratio at that place.

    `unseen`: independent changes that alter no reading. `weak`: seen, but by less than one deviation.
    `remedies`: further sensors, each with the rank it would give and the smallest singular value then.
    `enough`: the fewest of them, found greedily, that leave nothing unseen; empty where nothing is, or none can.
    """

    states: tuple[str, ...]
    singular_values: Array
    rank: int
    gap: float
    unseen: tuple[Direction, ...]
    weak: tuple[Direction, ...]
    remedies: tuple[tuple[str, int, float], ...]
    enough: tuple[str, ...]

    @property
    def observable(self) -> bool:
        return self.rank == len(self.states)

    def summary(self) -> str:
        n = len(self.states)
        if self.observable:
            lines = [
                f"observable: all {n} states; the weakest direction is seen by {self.singular_values[-1]:.3g} sigma"
            ]
        else:
            lines = [f"not observable: {self.rank} of {n} directions are seen (gap {self.gap:.3g})"]
        lines += [f"  no reading changes with {d.text}" for d in self.unseen]
        lines += [f"  hardly seen ({d.seen:.2g} sigma): {d.text}" for d in self.weak]
        for name, rank, least in self.remedies:
            lines.append(f"  with '{name}': {rank} of {n}" + (f", weakest {least:.3g} sigma" if rank == n else ""))
        if self.enough:
            lines.append(f"  enough: {' and '.join(self.enough)}")
        elif not self.observable and self.remedies:
            lines.append("  none of these sensors makes it observable, alone or together")
        return "\n".join(lines)


def observability(
    system: System,
    t: ArrayLike,
    x: ArrayLike,
    scales: ArrayLike,
    inputs: ArrayLike | None = None,
    extra: Sequence[ExtraSensor] = (),
    least: float = 1e-8,
) -> Observability:
    """Observability of the state at t[0] from the readings along the trajectory `x` (N, n) at `t` (N,).

    `scales` (n,): typical sizes of the states. A singular value below `least` of the largest counts as zero. Parameters that a filter
    only considers count as known: no reading is meant to correct them.
    """
    clock, states, sizes, u = _checked(system, t, x, scales, inputs)
    n = len(sizes)
    considered = getattr(system, "considered", None)
    kept = np.arange(n) if considered is None else np.flatnonzero(~considered)
    factors = [_Factor(n) for _ in range(1 + len(extra))]
    for k, Phi, H in _along(system, clock, states, u):
        factors[0].add(_scaled(H, system.sensor_noise(float(clock[k])), Phi, sizes))
        for sensor, factor in zip(extra, factors[1:]):
            J = np.asarray(sensor.H(states[k], u[k]) if callable(sensor.H) else sensor.H, dtype=np.float64)
            factor.add(_scaled(np.atleast_2d(J), sensor.sigma**2 * np.eye(len(np.atleast_2d(J))), Phi, sizes))
    R = factors[0].finished()[:, kept]
    names, sizes, n = tuple(system.states[k] for k in kept), sizes[kept], len(kept)
    _, s, Vt = np.linalg.svd(R)
    rank = _rank(s, least)
    unseen = tuple(_direction(v, sizes, 0.0, names) for v in _readable(Vt[rank:]))
    weak = tuple(_direction(Vt[i], sizes, float(s[i]), names) for i in range(rank) if s[i] < 1.0)
    found = {sensor.name: factor.finished()[:, kept] for sensor, factor in zip(extra, factors[1:])}
    remedies = []
    for name, extra_R in found.items():
        with_it = np.linalg.svd(np.vstack([R, extra_R]), compute_uv=False)
        remedies.append((name, _rank(with_it, least), float(with_it[-1])))
    remedies.sort(key=lambda r: (-r[1], -r[2]))
    gap = float(s[rank - 1] / s[rank]) if 0 < rank < n and s[rank] > 1e-300 * s[0] else float("inf")
    enough = () if rank == n else _fewest(R, found, least)
    return Observability(names, s, rank, gap, unseen, weak, tuple(remedies), enough)


def _checked(
    system: System, t: ArrayLike, x: ArrayLike, scales: ArrayLike, inputs: ArrayLike | None
) -> tuple[Array, Array, Array, Array]:
    clock, states, sizes = (np.asarray(a, dtype=np.float64) for a in (t, x, scales))
    n, faults = len(system.states), Faults()
    if clock.ndim != 1 or states.ndim != 2 or len(states) != len(clock) or len(clock) == 0:
        faults.add(
            "times and states do not belong together.", where="trajectory", found=f"{clock.shape}, {states.shape}"
        )
    if sizes.shape != (n,) or not (np.isfinite(sizes) & (sizes > 0.0)).all():
        faults.add("typical sizes are missing.", where="scales", expected=f"{n} positive numbers", found=f"{sizes}")
    u = np.zeros((len(clock), 0)) if inputs is None else np.asarray(inputs, dtype=np.float64).reshape(len(clock), -1)
    faults.raise_if_any(DataError)
    return clock, states, sizes, u


def _along(system: System, t: Array, x: Array, u: Array) -> Iterator[tuple[int, Array, Array]]:
    changing = (
        system if isinstance(system, MachineSystem) else None
    )  # its sets of coordinates take over from each other
    Phi = np.eye(len(system.states)) if changing is None else changing.between(changing.named(x[0]), x[0])
    for k in range(len(t)):
        if k:
            moved, F = system.move_and_jacobian(x[k - 1], u[k - 1], float(t[k - 1]), float(t[k] - t[k - 1]))
            with np.errstate(over="ignore", invalid="ignore"):
                Phi = F @ Phi if changing is None else changing.between(moved, x[k]) @ F @ Phi
        if not np.isfinite(Phi).all():
            raise SimulationError(
                f"the motion's derivative is no longer finite at {t[k]:.6g} s.", hint="Look at a shorter stretch."
            )
        yield k, Phi, system.sense_and_jacobian(x[k], u[k], float(t[k]))[1]


def _scaled(H: Array, R: Array, Phi: Array, sizes: Array) -> Array:
    return solve_triangular(np.linalg.cholesky(R), H @ Phi * sizes, lower=True)


class _Factor:
    """The triangular factor of rows that arrive a few at a time."""

    def __init__(self, n: int) -> None:
        self.rows: list[Array] = [np.zeros((n, n))]

    def add(self, rows: Array) -> None:
        self.rows.append(rows)
        if len(self.rows) > BLOCK_ROWS:
            self.rows = [self.finished()]

    def finished(self) -> Array:
        return np.asarray(np.linalg.qr(np.vstack(self.rows), mode="r"), dtype=np.float64)


def _rank(s: NDArray[np.floating], least: float) -> int:
    return int((s > least * s[0]).sum()) if s[0] > 0.0 else 0


def _fewest(R: Array, found: dict[str, Array], least: float) -> tuple[str, ...]:
    """Add the sensor that helps most until everything is seen."""
    chosen: list[str] = []
    n = R.shape[1]
    rank = _rank(np.linalg.svd(R, compute_uv=False), least)
    while rank < n:
        best, best_key = "", (rank, 0.0)
        for name, extra in found.items():
            s = np.linalg.svd(np.vstack([R, extra]), compute_uv=False)
            key = (_rank(s, least), float(s[-1]))
            if name not in chosen and key[0] > rank and key > best_key:
                best, best_key = name, key
        if not best:
            return ()
        chosen.append(best)
        R, rank = np.vstack([R, found[best]]), best_key[0]
    return tuple(chosen)


def _readable(null: Array) -> Array:
    """Another basis of the same space whose members have as few entries as elimination gives."""
    basis = null.copy()
    free = list(range(len(basis)))
    for _ in range(len(basis)):
        i, j = max(((r, c) for r in free for c in range(basis.shape[1])), key=lambda rc: abs(basis[rc]))
        basis[i] /= basis[i, j]
        for r in range(len(basis)):
            if r != i:
                basis[r] -= basis[r, j] * basis[i]
        free.remove(i)
    return np.where(np.abs(basis) > 1e-6, basis, 0.0)


def _direction(v: Array, sizes: Array, seen: float, names: Sequence[str]) -> Direction:
    v = v / v[np.argmax(np.abs(v).round(9))]
    change = v * sizes
    by_size = np.argsort(-np.abs(v).round(9), kind="stable").tolist()  # equals stand in the order of the states
    shown = [j for j in by_size if abs(v[j]) > (1e-6 if seen == 0.0 else 0.1)]
    if len(shown) == 1:
        return Direction(change, seen, f"'{names[shown[0]]}'")
    lead = change[shown[0]]
    parts = [f"'{names[j]}' by {change[j] / lead:.4g}" for j in shown]
    return Direction(change, seen, ", ".join(parts[:-1]) + f" and {parts[-1]} together")


LOST_SHARE = 0.05  # of the usual sensitivity: its information, which goes by squares, is a four-hundredth
SHOWN = 3  # times


@dataclass(frozen=True)
class DeadCentre:
    """The sensors lose sight of `coordinate` at the `times` (s); `share`: the least of the usual sensitivity that is left."""

    coordinate: str
    times: tuple[float, ...]
    share: float

    def __str__(self) -> str:
        shown = ", ".join(f"{t:.4g} s" for t in self.times[:SHOWN])
        more = f" and {len(self.times) - SHOWN} times more" if len(self.times) > SHOWN else ""
        return (
            f"the sensors show nothing of '{self.coordinate}' near {shown}{more}: at a dead centre its direction cannot be told. "
            "Give it a sensor that reads there."
        )


def dead_centres(system: MachineSystem, e: Estimates) -> tuple[DeadCentre, ...]:
    """The independent coordinates that sensors lose sight of along a run, those that are lost most often first."""
    f = system.f
    own = ((e.H @ e.P_predicted) * e.H).sum(axis=2)
    weight = np.zeros(len(e.outputs))
    for j in range(
        len(weight)
    ):  # sensors on clocks of their own are no dead centres: their usual noise, and H at every sample
        noise = (e.innovation_variances[:, j] - own[:, j])[e.status[:, j] != Status.MISSING]
        noise = noise[np.isfinite(noise)]
        usual = float(np.median(noise)) if len(noise) else 0.0
        weight[j] = 1.0 / usual if usual > 0.0 else 0.0
    c = np.sqrt(np.einsum("kji,j->ki", e.H[:, :, :f] ** 2, weight))
    found = []
    for i, name in enumerate(system.model.names):
        seen, t = c[:, i], e.t
        usual = float(np.median(seen)) if len(seen) else 0.0
        lost = seen < LOST_SHARE * usual
        if not lost.any():
            continue
        begins = np.flatnonzero(lost & ~np.append(False, lost[:-1]))
        ends = np.flatnonzero(lost & ~np.append(lost[1:], False)) + 1
        times = tuple(float(t[a + int(np.argmin(seen[a:b]))]) for a, b in zip(begins, ends, strict=True))
        found.append(DeadCentre(name, times, float(seen.min() / usual)))
    return tuple(sorted(found, key=lambda one: -len(one.times)))


@dataclass(frozen=True, eq=False)
class ClosedLoop:
    """`rates` (n,) in 1/s: how fast errors grow (positive) or die out (negative), the slowest first.

    `radius` (N − 1,): the largest |eigenvalue| of each single step, for a plot.
    """

    rates: Array
    radius: Array

    @property
    def stable(self) -> bool:
        return bool(self.rates[0] < 0.0)

    @property
    def memory(self) -> float:
        """Seconds until the slowest error has fallen to 1/e; infinite where it does not fall."""
        return float(-1.0 / self.rates[0]) if self.stable else float("inf")

    def summary(self) -> str:
        if self.stable:
            return f"stable: errors fall to 1/e within {self.memory:.3g} s"
        return f"not stable: an error grows at {self.rates[0]:.3g} 1/s"


def poles(F: ArrayLike, K: ArrayLike, H: ArrayLike) -> NDArray[np.complex128]:
    """The eigenvalues of F (I − K H): those of the error of an observer with a constant gain."""
    F, K, H = (np.asarray(a, dtype=np.float64) for a in (F, K, H))
    return np.linalg.eigvals(F @ (np.eye(len(F)) - K @ H)).astype(np.complex128)


@checked
def closed_loop(estimates: Estimates, scales: ArrayLike | None = None, skip: int = 0) -> ClosedLoop:
    """Growth rates along the run from sample `skip` on. `scales` (n,): typical sizes of the states, so that units compare."""
    estimates.chained("closed-loop stability")
    n = len(estimates.states)
    skip = int(skip)
    if len(estimates) - skip < 2:
        raise DataError("one sample makes no step.", where=estimates.filter, expected="at least two samples")
    s = np.ones(n) if scales is None else as_array(scales, "closed_loop, scales", (n,))
    if not (np.isfinite(s) & (s > 0.0)).all():
        raise DataError("typical sizes are above zero.", where="closed_loop, scales", found=f"{s.tolist()}")
    keep = np.eye(n) - estimates.K[skip + 1 :] @ estimates.H[skip + 1 :]
    steps = (keep @ estimates.F[skip + 1 :]) * (s[None, None, :] / s[None, :, None])
    Q, growth = np.eye(n), np.zeros(n)
    for A in steps:
        Q, R = np.linalg.qr(A @ Q)
        growth += np.log(np.maximum(np.abs(R.diagonal()), np.finfo(np.float64).tiny))
    duration = float(estimates.t[-1] - estimates.t[skip])
    return ClosedLoop(np.sort(growth / duration)[::-1], np.abs(np.linalg.eigvals(steps)).max(axis=1))
