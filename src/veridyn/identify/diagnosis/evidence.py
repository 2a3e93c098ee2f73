"""Some hundred samples of a training log, to ask quickly: how well would the data fit if something about them were otherwise?

Row j has W_j φ = y_j, weighed by 1/s_j²: s_j = ‖y_j‖, or what known parameters ask of the row where that is more, so that a small load on a
known machine is not all there is. It is asked of the data as they are and of the data with two columns swapped, one turned round, and so on
(:class:`Replacement`). Many questions are answered from second moments of the equations: with G_j = W_jᵀ W_j known, other forces need only
b_j = W_jᵀ y_j, and φ = (Σ G_j/s_j²)⁻¹ Σ b_j/s_j².

Normal equations have half the digits: errors are right to about 1e-4 of the forces, and a direction that the data excite by less than 1e-5
of the others counts as not excited. That suffices to compare errors of some per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.identify.diagnosis.columns import Columns, Equations, SecondMoments, columns_of, independent, squares
from veridyn.identify.regression.observation import dependence
from veridyn.identify.regression.sampling import Sampling
from veridyn.inference.error_measures import NOISE_MARGIN_SIGMAS
from veridyn.mechanics.tree.loops.assembly import splitting
from veridyn.mechanics.tree.loops.closure import closed_or_none
from veridyn.mechanics.tree.of_machine import takes_machine, tree_of
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.outliers import white_deviation
from veridyn.signals.resample import uniform_rate

SAMPLES = 400  # more than the columns of any row, few enough to ask a hundred questions
FEW_SAMPLES = 200  # which show a mean to a few per cent
# n times the relative variance of Σ(third difference)²/20n for white normal noise: 2 (1 + 2 (15² + 6² + 1)/20²)
THIRD_DIFFERENCE_VARIANCE = 4.62
FIRST_SAMPLES = 4000  # of a motion, which show its noise and whether neighbours are correlated
MIN_SAMPLES_PER_COLUMN = 3.0  # equations for each parameter, below which residuals say little
STRONG = 10.0  # of 2 Δ log L: "very strong" evidence (Kass and Raftery, 1995, JASA 90(430))
FEW_STEP = 4  # samples of which one shows whether a model is hopeless; so few must be left of a motion before others are left out
RESOLUTION = 1e-4  # of a force: what normal equations in double precision leave of it


@dataclass(frozen=True, eq=False, kw_only=True)
class Replacement:
    """Another reading of the data, a model of its own: `motion` in place of that of the log, None where loops cannot be closed for it;
    `forces` (n, n): its forces are that times those measured, the same if left out; `machine` in place of the model's.

    `kind`, `where`, `what`, `expected`, `found` and `hint` are its words; `estimated`: numbers that were chosen to fit; `size` of it.
    """

    kind: str
    where: str
    what: str
    hint: str
    motion: Motion | None
    forces: Array | None = None
    machine: Machine | None = None
    estimated: int = 0
    size: float = np.nan
    expected: str = ""
    found: str = ""

    @property
    def motion_there(self) -> Motion:
        """The motion of one that can be asked."""
        assert self.motion is not None  # the caller asks only what loops let it
        return self.motion


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """`motion`: samples of all training motions, forces through the filter of the fit; `force_rates` (N, n): how fast these change.

    `rows`: names of those that measure something. `given`: the coordinates that were measured, from which those of a machine with
    loops follow. `noise` (n,): standard deviation of what neighbouring samples of a measured force do not share, behind the filter; zero
    where it is not known.
    """

    machine: Machine
    motion: Motion
    rows: tuple[str, ...]
    force_rates: Array
    given: tuple[str, ...]
    noise: Array | None = None

    def equations(self, machine: Machine | None = None, motion: Motion | None = None) -> Equations:
        """Those of the rows, with known parameters on the measured side."""
        machine, m = machine or self.machine, motion or self.motion
        own = machine is self.machine
        columns = self.own if own and m is self.motion else columns_of(machine, m, self.rows, every=not own, parts=True)
        y = self._forces(m, machine) - columns.known
        sizes = _sizes(y, columns.parts)
        return Equations(columns.W / sizes[:, None, None], y / sizes[:, None], sizes, columns.numbers)

    def predicted(self) -> Array:
        """Forces of the rows (rows, N) by the model's own values; what has none is taken for zero."""
        p, own, rule = self.machine.parameters, self.own, dependence(self.machine)
        values = np.where(np.isfinite(p.values) & (np.array(p.states) == "estimated"), p.values, 0.0)
        if rule is None:
            return own.W @ values[own.numbers] + own.known
        place = {c: k for k, c in enumerate(rule.kept)}
        return own.W @ (rule.matrix[[place[int(c)] for c in own.numbers]] @ values) + own.known

    def beyond_noise(self, other: Replacement | None = None) -> tuple[Array, Array]:
        """For each row what least squares leaves as a share of its size, less white noise, which no model explains; and the sizes.

        Of the data as they are, or as another model has them.
        """
        y, sizes = self._own_sizes
        moments, least = self._own_moments, np.linalg.norm(self.own.parts, axis=1)
        if other is not None:
            moments, y = self.reduced(other.motion_there, other.machine)
            sizes = np.maximum(np.linalg.norm(y, axis=1), least)
        each = moments.left(y, least) / np.where(sizes > 0.0, sizes, 1.0)
        margin = 1.0 + NOISE_MARGIN_SIGMAS * np.sqrt(THIRD_DIFFERENCE_VARIANCE / max(len(self.motion), 1))
        return np.sqrt(np.maximum(each**2 - margin * self._noise_shares(sizes) ** 2, 0.0)), sizes

    def _noise_shares(self, sizes: Array) -> Array:
        if self.noise is None:
            return np.zeros(len(sizes))
        return self.noise[[self.machine.coordinates.index(r) for r in self.rows]] * np.sqrt(len(self.motion)) / sizes

    def error(self, machine: Machine | None = None, motion: Motion | None = None) -> float:
        """What least squares leaves, as a share."""
        return self.equations(machine, motion).error()

    def likelihoods(self, others: Sequence[Replacement]) -> list[float]:
        """2 Δ log L of each model over the data as they are; the columns of their motions are computed together.

        The noise is that of the channels: what a model leaves of the forces it assumes is turned back to those measured. Each channel
        has noise of its own, Σ_j n_j ln(‖r_j‖²/‖r_j'‖²), no smaller than second moments resolve. Its samples count for as many independent
        ones, n_j, as the correlation of neighbouring residuals leaves of them by the model that fits them better, less those that the
        parameters use up; too few of them say nothing. The right model leaves no channel clearly more than a wrong one does; −∞ of those
        that must.
        """
        moved = [o for o in others if o.machine is None and not self._moves_alike(o.motion_there, self.motion)]
        kept = [o for o, hopeless in zip(moved, self._hopeless_of_few(moved), strict=True) if not hopeless]
        full = dict(zip(map(id, kept), self._moments_of(kept), strict=True))
        place, out = self._place, []
        for o in others:
            if o in moved and id(o) not in full:
                out.append(-np.inf)
                continue
            moments, y = full[id(o)] if o in moved else self.reduced(o.motion_there, o.machine)
            if self._hopeless(moments, y, o):
                out.append(-np.inf)
                continue
            left = moments.residual(y)
            if o.forces is not None:
                left = np.linalg.pinv(o.forces[np.ix_(place, place)]) @ left
            out.append(self._gain(left))
        return out

    def _moments_of(self, others: Sequence[Replacement], step: int = 1) -> list[tuple[SecondMoments, Array]]:
        """Second moments and measured sides of models that move otherwise, of each `step`-th sample.

        Columns are computed together, and once of those that differ in their forces alone.
        """
        if not others:
            return []
        distinct: list[Motion] = []
        places: list[int] = []
        for o in others:
            m = o.motion_there
            places.append(next((k for k, d in enumerate(distinct) if self._moves_alike(m, d)), len(distinct)))
            distinct += [m] if places[-1] == len(distinct) else []
        thin = [m[::step] for m in distinct]
        W, known, _, _, acting = columns_of(self.machine, joined(thin), self.rows)
        parts = [slice(k * len(thin[0]), (k + 1) * len(thin[0])) for k in range(len(thin))]
        moments = [SecondMoments.of(W[:, part], acting) for part in parts]
        sides = [self._by_drives(m) - known[:, part] for m, part in zip(thin, parts, strict=True)]
        thinned = [o.motion_there[::step] for o in others]
        return [
            (moments[k], self._forces(m, self.machine) - self._by_drives(m) + sides[k])
            for m, k in zip(thinned, places, strict=True)
        ]

    def _hopeless_of_few(self, others: Sequence[Replacement]) -> list[bool]:
        """Whether some samples of models are already more than the limit: all of them leave no less."""
        few = self._moments_of(others, FEW_STEP)
        return [self._hopeless(moments, y, o) for (moments, y), o in zip(few, others, strict=True)]

    @cached_property
    def _place(self) -> list[int]:
        """Which coordinates the rows are."""
        return [self.machine.coordinates.index(r) for r in self.rows]

    def _hopeless(self, moments: SecondMoments, y: Array, other: Replacement) -> bool:
        """Whether all parameters of a model leave some channel clearly more than the data as they are, by these equations of it.

        A model that does not has ‖r_j‖² ≤ exp(STRONG/n_j) ‖own_j‖² in all of them (:meth:`_gain`), and so the sum of these ratios, which
        least squares with weights of its own minimises, is below the sum of the limits.
        """
        weights = 1.0 / self._own_squares
        if other.forces is not None:
            forces = other.forces[np.ix_(self._place, self._place)]
            if np.any(np.count_nonzero(forces, axis=0) != 1) or np.any(np.count_nonzero(forces, axis=1) != 1):
                return False  # the noise of several channels is in a row
            channel = np.argmax(forces != 0.0, axis=1)
            weights = weights[channel] / forces[np.arange(len(channel)), channel] ** 2
        return moments.least(y, weights) > self._most_left

    @cached_property
    def _most_left(self) -> float:
        """Σ_j exp(STRONG/n_j) of the data as they are."""
        count = independent(self._own_residual) * (1.0 - 1.0 / MIN_SAMPLES_PER_COLUMN)
        return float(np.sum(np.exp(STRONG / np.maximum(count, 1.0))))

    def _gain(self, r: Array) -> float:
        """2 Δ log L of residuals (rows, N) over those of the data as they are."""
        own, least = self._own_residual, np.square(RESOLUTION * self._own_sizes[1])
        ratio = self._own_squares / np.maximum(squares(r), least)
        count = np.where(ratio > 1.0, independent(r), independent(own))
        total, columns = float(count.sum()), self.own.W.shape[2]
        if total < MIN_SAMPLES_PER_COLUMN * columns:
            return 0.0
        each = count * np.log(ratio) * (1.0 - columns / total)
        return float(each.sum()) if each.min() > -STRONG else min(0.0, float(each.sum()))

    def replaced(
        self,
        kind: str,
        where: str,
        what: str,
        hint: str,
        *,
        coordinates: Array | None = None,
        forces: Array | None = None,
        estimated: int = 0,
        size: float = np.nan,
    ) -> Replacement:
        """The model whose coordinates are T_q q, `coordinates` T_q (n, n), and whose measured forces are T y, `forces` T (n, n)."""
        motion = self.motion if coordinates is None else self.with_coordinates(coordinates)
        if motion is not None and forces is not None:
            other = self.with_forces(forces)
            motion = replace(motion, forces=other.forces, signals=other.signals)
        return Replacement(
            kind=kind, where=where, what=what, hint=hint, motion=motion, forces=forces, estimated=estimated, size=size
        )

    def reduced(self, m: Motion, machine: Machine | None = None) -> tuple[SecondMoments, Array]:
        """Second moments of the columns, and the measured side (rows, N), of a motion, maybe of another machine."""
        if machine is None and self._moves_alike(m, self.motion):
            known = self.own.known + self._by_drives(m) - self._by_drives(self.motion)
            return self._own_moments, self._forces(m, self.machine) - known
        columns = columns_of(machine or self.machine, m, self.rows, every=machine is not None)
        return SecondMoments.of(columns.W, columns.acting), self._forces(m, self.machine) - columns.known

    @cached_property
    def own(self) -> Columns:
        """The columns of the samples as they are."""
        return columns_of(self.machine, self.motion, self.rows, parts=True)

    @cached_property
    def _own_sizes(self) -> tuple[Array, Array]:
        """The measured side (rows, N) of the samples as they are, and the size of each row."""
        y = self._forces(self.motion, self.machine) - self.own.known
        return y, _sizes(y, self.own.parts)

    @cached_property
    def _own_moments(self) -> SecondMoments:
        return SecondMoments.of(self.own.W, self.own.acting)

    @cached_property
    def _own_residual(self) -> Array:
        return self._own_moments.residual(self._own_sizes[0])

    @cached_property
    def _own_squares(self) -> Array:
        """‖own_j‖² of each row (rows,), no smaller than second moments resolve."""
        return np.maximum(squares(self._own_residual), np.square(RESOLUTION * self._own_sizes[1]))

    def _moves_alike(self, m: Motion, other: Motion) -> bool:
        """Whether only the forces of two motions differ, measured or by drives of known gains, so that their columns are the same."""
        pairs = [(m.q, other.q), (m.qd, other.qd), (m.qdd, other.qdd)]
        for name in ("wrenches", "signals"):
            a, b = getattr(m, name), getattr(other, name)
            if a.keys() != b.keys():
                return False
            pairs += [(a[k], b[k]) for k in a if k not in self._known_drives]
        return all(a is b for a, b in pairs)

    @cached_property
    def _known_drives(self) -> dict[str, tuple[int, float]]:
        """Signal → which of the rows it drives, and by which known gain; of signals that nothing else depends on."""
        p, used = self.machine.parameters, [e.signal for e in self.machine.elements]
        out: dict[str, tuple[int, float]] = {}
        for e in self.machine.elements:
            if e.kind != "drive_gain" or len(e.on) > 1 or used.count(e.signal) > 1:
                continue
            (c, a), k = next(iter(e.on.items())), p.index(e.parameter_name)
            if p.states[k] == "known" and c in self.rows:
                out[e.signal] = self.rows.index(c), a * float(p.values[k])
        return out

    def _by_drives(self, m: Motion) -> Array:
        """What known gains of drives are on the known side of the rows (rows, N): −K i."""
        out = np.zeros((len(self.rows), len(m)))
        for signal, (row, gain) in self._known_drives.items():
            out[row] -= gain * m.signals[signal]
        return out

    def _forces(self, m: Motion, machine: Machine) -> Array:
        y = np.zeros((len(m), len(machine.rows)))
        if m.forces is not None:
            y[:, len(machine.rows) - machine.n :] = np.where(np.isfinite(m.forces), m.forces, 0.0)
        return y[:, list(machine.select_rows(list(self.rows)))].T

    def with_coordinates(self, T: Array) -> Motion | None:
        """The motion with coordinates T q: swapped, turned round or scaled. None where loops cannot be closed like that."""
        key = T.tobytes()
        if key not in self._changed:
            self._changed[key] = self._with_coordinates(T)
        return self._changed[key]

    @cached_property
    def _changed(self) -> dict[bytes, Motion | None]:
        """Motions with other coordinates, by T_q: models that differ in their forces alone share one."""
        return {}

    def _with_coordinates(self, T: Array) -> Motion | None:
        m, machine = self.motion, self.machine
        if not machine.closed:
            return replace(m, q=m.q @ T.T, qd=m.qd @ T.T, qdd=m.qdd @ T.T)
        split = splitting(tree_of(machine), self.given)
        own = list(split.given)
        q, qd, qdd = (x[:, own] @ T[np.ix_(own, own)].T for x in (m.q, m.qd, m.qdd))
        whole = closed_or_none(split, Motion(m.t, q, qd, qdd, m.base), m.q)
        return None if whole is None else replace(m, q=whole.q, qd=whole.qd, qdd=whole.qdd)

    def with_forces(self, T: Array) -> Motion:
        """The motion with forces T Γ; signals that drive gains multiply are taken along."""
        m, names = self.motion, self.machine.coordinates
        forces = m.forces
        if forces is not None:
            blank = np.isnan(forces).all(axis=0)
            forces = np.where(np.isfinite(forces), forces, 0.0) @ T.T
            forces[:, blank] = np.nan
        drives = drives_of(self.machine)
        signals = dict(m.signals)
        for c, own in drives.items():
            row = T[names.index(c)]
            parts = [a * m.signals[drives[o]] for o, a in zip(names, row, strict=True) if a != 0.0 and o in drives]
            signals[own] = np.sum(parts, axis=0) if parts else m.signals[own]
        return replace(m, forces=forces, signals=signals)


def _sizes(y: Array, parts: Array) -> Array:
    """‖y_j‖ of each row (rows,), or what known parameters ask of it where that is more; one where neither is anything."""
    sizes = np.maximum(np.linalg.norm(y, axis=1), np.linalg.norm(parts, axis=1))
    return np.where(sizes > 0.0, sizes, 1.0)


def drives_of(machine: Machine) -> dict[str, str]:
    """Coordinate → the signal that drives it, where one does."""
    return {next(iter(e.on)): e.signal for e in machine.elements if e.kind == "drive_gain" and len(e.on) == 1}


def measured_coordinates(machine: Machine, motion: Motion) -> tuple[str, ...]:
    """Coordinates whose force, or whose drive, is measured."""
    forces = np.full((1, machine.n), np.nan) if motion.forces is None else motion.forces
    seen = [bool(np.isfinite(column).any()) for column in forces.T]
    return tuple(c for c, finite in zip(machine.coordinates, seen, strict=True) if finite or c in drives_of(machine))


@takes_machine
def evidence(
    machine: Machine,
    motions: Sequence[Motion],
    rows: Sequence[str],
    sampling: Sampling,
    positions: Sequence[str] | None = None,
    samples: int = SAMPLES,
) -> Evidence:
    """So many `samples` spread over all motions, those that every row uses where there are enough of them.

    `positions`: the coordinates that were measured; all with an equation of their own if left out.
    """
    if not motions:
        raise DataError("there is no motion to look at.", where="evidence, motions")
    total = sum(len(m) for m in motions)
    parts, rates, noises, before = [], [], [], 0
    for m in motions:
        low, forces = sampling.filter, m.forces
        noises.append(_white_noise(np.full((len(m), machine.n), np.nan) if forces is None else forces))
        if low is not None and forces is not None and len(m) > low.padding:
            whole = np.isfinite(forces).all(axis=0)
            forces = forces.copy()
            forces[:, whole] = zero_phase(forces[:, whole], uniform_rate(m.t), low)
            noises[-1] = np.where(whole, low.white_gain(uniform_rate(m.t)) * noises[-1], noises[-1])
        numbers = np.arange(len(m))
        used = np.all([sampling.uses(machine, row, m.qd, numbers, len(m), before) for row in rows], axis=0)
        before += len(m)
        calm = used & ~_reversing(machine, m, low)
        chosen = next((np.flatnonzero(mask) for mask in (calm, used) if mask.sum() >= SAMPLES // FEW_STEP), numbers)
        count = max(2, min(len(chosen), round(samples * len(m) / total)))
        picked = chosen[np.unique(np.linspace(0, len(chosen) - 1, count).astype(int))]
        parts.append(replace(m, forces=forces)[picked])
        given = np.full((len(m), machine.n), np.nan) if forces is None else forces
        rates.append(_rates_at(given, m.t, picked))
    whole = joined(parts)
    own = measured_coordinates(machine, whole)
    measured = tuple(machine.coordinates[k] for k in machine.independent) if positions is None else tuple(positions)
    used = tuple(r for r in rows if r in own)
    return Evidence(
        machine=machine,
        motion=whole,
        rows=used,
        force_rates=np.concatenate(rates),
        given=measured,
        noise=np.min(noises, axis=0),
    )


def _rates_at(x: Array, t: Array, picked: NDArray[np.intp]) -> Array:
    """Slopes of x (N, n) between the neighbours of the samples `picked`."""
    low, high = np.maximum(picked - 1, 0), np.minimum(picked + 1, len(x) - 1)
    return (x[high] - x[low]) / (t[high] - t[low])[:, None]


def _white_noise(x: Array) -> Array:
    """(n,) from third differences, which leave √20 of white noise and next to nothing of a smooth signal; zero where some are missing."""
    third = np.diff(x[:FIRST_SAMPLES], 3, axis=0)
    if not len(third):
        return np.zeros(x.shape[1])
    sigma = white_deviation(third)
    return np.where(np.isfinite(sigma), sigma, 0.0)


def _reversing(machine: Machine, m: Motion, low: Butterworth | None) -> NDArray[np.bool_]:
    """Samples within half a period of the cut-off of a reversal of dry friction: its step is filtered in the forces, not in the columns."""
    if low is None or len(m) < 3:
        return np.zeros(len(m), dtype=bool)
    reach = max(1, round(0.5 / (float(np.min(low.cutoff)) * float(np.median(np.diff(m.t))))))
    return near_reversals(machine, m.qd, reach)


def near_reversals(machine: Machine, qd: Array, reach: int) -> NDArray[np.bool_]:
    """Samples (N,) within `reach` of those between which the speed of dry friction changes its sign."""
    near = np.zeros(len(qd), dtype=bool)
    for e in machine.elements:
        if e.jumps:
            speed = qd @ np.array([e.on.get(c, 0.0) for c in machine.coordinates])
            for k in np.flatnonzero(np.diff(np.sign(speed)) != 0.0):
                near[max(0, k - reach) : k + reach + 2] = True
    return near
