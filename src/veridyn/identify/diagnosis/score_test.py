"""Score tests of columns appended to a regressor: is there something in the residual that these columns explain?

W φ + c s = y + noise, weighted. With s_⊥ = s − W W⁺ s and the residual r = y − W W⁺ y, the score is g = Σ_t s_⊥tᵀ r_t, summed over the
rows of a sample t, and

    ĉ = g/‖s_⊥‖²,    z = g/√V,    V = long-run variance of the terms of g  (:mod:`veridyn.identify.estimators.coloured`)

z is standard normal where c = 0, whether neighbouring samples are correlated or not; few windows of that correlation make it Student's t.
V is no less than that of uncorrelated samples, which all of them together show, and z is normal where it is that. Columns that W explains
whole have s_⊥ = 0: no test of these data can see them, whatever their size.

Noise of the motion leaves something in the scores where there is no damage at all. Noise n_k of q̈_k is in the regressor, W + Σ_k n_k
∂W/∂q̈_k, in the residual, −Σ_k n_k M_k with M_k = ∂Γ̂/∂q̈_k, and in a trace s. With a = W⁺ s, what is left of the trace has the noise Σ_k
n_k (∂s/∂q̈_k − ∂W/∂q̈_k a), so that its score g = Σ s_⊥ᵀ r is about

    E[g] = −Σ_t Σ_r Σ_k v_rk (∂s_r/∂q̈_k − ∂W_r/∂q̈_k a) M_rk,      v_rk: variance of n_k as the weighted equations of row r have it

    ∂s/∂q̈_k = M_k in row j for the scale of force j,  1 in row j for the rotor of q_j = q_k,
              −∂M_k/∂q_i for the zero of q_i,  ∂M_k/∂c for the size c,  0 for the others.

A trace that the columns explain but for that noise has no other score. Noise of positions and speeds themselves is smaller by the square of
the band, and left out, as in :mod:`veridyn.identify.diagnosis.position_noise`.

The column of a machine of another size is s = ∂Γ̂/∂c, with every distance between joints (1 + c) times the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr, ndtri, stdtr  # scipy.stats takes a second to import

from veridyn.arrays import Array
from veridyn.identify.diagnosis.columns import DIFFERENCE, ROUNDING
from veridyn.identify.diagnosis.drives import coupled_drives
from veridyn.identify.diagnosis.evidence import FEW_SAMPLES
from veridyn.identify.diagnosis.position_noise import SMALL_NOISE, acceleration_slopes, at_rest
from veridyn.identify.estimators.coloured import MIN_SHARE_OF_BARTLETT, andrews_each, window_of
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.result import Fit
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.elsewhere import stretched
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion, joined

ONE_STEP = 1e-6  # of eigenvalues of AᵀA, from which products once keep ten digits; below ROUNDING too many are lost
LIKELY = 4.0  # deviations from which a column is taken out of the noise (chosen)
NOISE_KNOWN_TO = 0.2  # of scores that noise makes: to a fifth one log states a bias (:mod:`veridyn.identify.diagnosis.position_noise`)
# Of ‖s‖: what is left beside the regressor is no more than errors of the columns themselves (chosen)
INSEPARABLE = 1e-3
ROTOR = "rotor inertia"
MACHINE = ""  # in place of a coordinate, of what is said of the machine as a whole


@dataclass(frozen=True, eq=False)
class Scores:
    """`sizes` ĉ (k,) of the columns with deviations `sigma`, z scores, and tail probabilities `chance` (two-sided, of one test alone).

    Inseparable columns have a size and score of zero, an infinite deviation and a chance of one.
    """

    sizes: Array
    sigma: Array
    z: Array
    chance: Array


@dataclass(frozen=True, eq=False)
class Projected:
    """Equations of N samples with R rows: `columns` (N, R, p) of the weighted regressor A; `residual` (N, R).

    `back` (p, rank): A back = Z has orthonormal columns, parameters per unit of each; `share`: N R over the number of equations, the rest
    being zeros. `appended` (N, R, k): orthonormal columns beside A that were put into the regressor. Z itself is not made: what it asks
    for few columns, Z Zᵀ v = A back backᵀ Aᵀ v, is less than making it.
    """

    columns: Array
    residual: Array
    back: Array
    share: float
    appended: Array

    @classmethod
    def of(cls, W: Array, y: Array) -> Projected:
        """From the weighted regressor W (N, R, p) and measurement y (N, R), zero where a row leaves a sample out."""
        N, R, p = W.shape
        A = W.reshape(-1, p)
        G = A.T @ A
        norms = np.sqrt(np.diag(G))
        norms[norms == 0.0] = 1.0
        back = _orthonormalising(A, G, norms)
        flat = y.ravel()
        for _ in range(2):  # once more for the digits that an ill-conditioned regressor costs
            flat = flat - A @ (back @ (back.T @ (A.T @ flat)))
        share = N * R / max(np.count_nonzero(A.any(axis=1)), 1)
        return cls(W, flat.reshape(N, R), back, share, np.empty((N, R, 0)))

    @property
    def basis(self) -> Array:
        """Z (N, R, rank)."""
        return np.asarray(self.columns @ self.back, dtype=np.float64)

    def _inside(self, flat: Array) -> Array:
        """Zᵀ s (rank, k) of columns (N R, k)."""
        return np.asarray(self.back.T @ (self.columns.reshape(len(flat), -1).T @ flat), dtype=np.float64)

    def beside(self, S: Array) -> Array:
        """s_⊥ of columns S (N, R, k), zero where nothing is left."""
        flat = S.reshape(self.residual.size, S.shape[2])
        left = flat - self.columns.reshape(len(flat), -1) @ (self.back @ self._inside(flat))
        if self.appended.shape[2]:
            more = self.appended.reshape(len(flat), -1)
            left -= more @ (more.T @ flat)
        size, whole = (np.einsum("nk,nk->k", v, v) for v in (left, flat))
        left[:, size <= INSEPARABLE**2 * whole] = 0.0
        return left.reshape(S.shape)

    def tested(self, S: Array) -> Scores:
        """Each column of S (N, R, k) by itself; columns that are likely to be there are taken out of the noise, lest one hide another."""
        return self.tested_beside(self.beside(S))

    def tested_beside(self, rest: Array, by_noise: Callable[[Array], Array | None] = lambda _: None) -> Scores:
        """The same of columns beside the regressor, as :meth:`beside` gives them.

        `by_noise` makes of z scores the scores (k,) that noise of the columns makes by itself, which say nothing: z and chance are those of
        what is beyond them.
        """
        squares = np.einsum("nrk,nrk->nk", rest, rest)
        norms = squares.sum(axis=0)
        seen = norms > 0.0
        safe = np.where(seen, norms, 1.0)
        g = self.residual.ravel() @ rest.reshape(-1, rest.shape[2])
        noise = self._noise(rest, g, safe)
        terms = np.einsum("nrk,nr->nk", rest, noise)
        variance, windows = _long_run(terms - terms.sum(axis=0) / safe * squares)
        # No less than white noise: where a few samples hold most of s_⊥, ĉ takes the noise of these terms away.
        white = self._white(noise) * safe
        windows = np.where(variance > white, windows, float(len(rest)))
        variance = np.maximum(variance, white)
        sizes = np.where(seen, g / safe, 0.0)
        sigma = np.where(seen, np.sqrt(variance) / safe, np.inf)
        z = np.where(seen, g / np.sqrt(variance), 0.0)
        made = by_noise(z)
        if made is not None:
            beyond = np.sign(g) * np.maximum(np.abs(g) - np.abs(made), 0.0)
            z = np.where(seen, beyond / np.sqrt(variance + (NOISE_KNOWN_TO * made) ** 2), 0.0)
        chance = 2.0 * stdtr(windows, -np.abs(z))
        return Scores(sizes, sigma, z, np.where(seen, chance, 1.0))

    def _noise(self, rest: Array, g: Array, norms: Array) -> Array:
        """The residual (N, R) without the columns whose scores g (k,) are many deviations of what all of them together leave."""
        together = self.unexplained(rest)
        white = self._white(together) * norms
        if not np.any(g**2 > LIKELY**2 * white):
            return self.residual
        variance = np.maximum(_long_run(np.einsum("nrk,nr->nk", rest, together))[0], white)
        likely = g**2 > LIKELY**2 * variance
        return self.unexplained(rest[:, :, likely]) if likely.any() else self.residual

    @property
    def white_variance(self) -> float:
        """The variance of an equation, of the residual as it is."""
        return self._white(self.residual)

    def variance_beside(self, rest: Array) -> float:
        """The variance of an equation with columns beside the regressor (N, R, k) appended, for their number."""
        equations = self.residual.size / self.share - self.back.shape[1] - self.appended.shape[2]
        return self._white(self.unexplained(rest)) * equations / max(equations - rest.shape[2], 0.5 * equations)

    def sizes_of(self, rest: Array) -> Array:
        """Least-squares sizes (k,) of columns beside the regressor, all at once; zero of those that others make up."""
        flat = rest.reshape(-1, rest.shape[2])
        G, g = flat.T @ flat, self.residual.ravel() @ flat
        norms = np.sqrt(np.diag(G))
        scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
        sizes = np.linalg.lstsq(G * scale[:, None] * scale, g * scale, rcond=ROUNDING)[0] * scale
        return np.asarray(sizes, dtype=np.float64)

    def deviation_of_first(self, rest: Array) -> float:
        """Of the first of :meth:`sizes_of`, for white noise with these columns in the regressor."""
        flat = rest.reshape(-1, rest.shape[2])
        norms = np.linalg.norm(flat, axis=0)
        there = norms > 0.0
        if not there[0]:
            return np.inf
        unit = flat[:, there] / norms[there]
        inverse = np.linalg.pinv(unit.T @ unit, rcond=ROUNDING, hermitian=True)
        return float(np.sqrt(inverse[0, 0] * self.variance_beside(rest)) / norms[0])

    def gain_together(self, rest: Array) -> float:
        """By how much columns beside the regressor lessen the sum of squared residuals, all at once: gᵀ ĉ of least squares."""
        g = self.residual.ravel() @ rest.reshape(-1, rest.shape[2])
        return float(g @ self.sizes_of(rest))

    def gains_together(self, rest: Array, groups: NDArray[np.intp]) -> Array:
        """The same (m,) of several `groups` (m, k) of columns beside the regressor (N, R, K)."""
        columns = rest.reshape(-1, rest.shape[2]).T[groups]  # (m, k, N R)
        G, g = columns @ columns.transpose(0, 2, 1), columns @ self.residual.ravel()
        norms = np.sqrt(np.diagonal(G, axis1=1, axis2=2))
        scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
        inverse = np.linalg.pinv(G * scale[:, :, None] * scale[:, None], rcond=ROUNDING, hermitian=True)
        return np.asarray(np.einsum("mk,mkl,ml->m", g * scale, inverse, g * scale), dtype=np.float64)

    def scores(self, rest: Array) -> Array:
        """Σ s_⊥ᵀ r of columns beside the regressor (N, R, k): their sizes have its sign."""
        return np.asarray(self.residual.ravel() @ rest.reshape(-1, rest.shape[2]), dtype=np.float64)

    def gains(self, rest: Array) -> Array:
        """By how much each column beside the regressor lessens the sum of squared residuals (k,)."""
        g, norms = self.scores(rest), np.einsum("nrk,nrk->k", rest, rest)
        return np.divide(g**2, norms, out=np.zeros_like(g), where=norms > 0.0)

    def scores_of_row(self, row: int, lines: Array, sums: Array) -> Array:
        """z scores (m,) of columns lines @ sums, (N, k) (k, m), of one row by themselves, for white noise; zero for inseparable ones."""
        inside = np.concatenate([self.back.T @ (self.columns[:, row].T @ lines), self.appended[:, row].T @ lines])
        squares, taken, g = lines.T @ lines, inside.T @ inside, self.residual[:, row] @ lines
        whole = np.einsum("km,km->m", squares @ sums, sums)
        left = whole - np.einsum("km,km->m", taken @ sums, sums)
        seen = left > INSEPARABLE**2 * whole
        return np.where(seen, g @ sums, 0.0) / np.sqrt(self._white(self.residual) * np.where(seen, left, 1.0))

    def _white(self, noise: Array) -> float:
        """The variance of an equation, from its noise (N, R)."""
        return max(float(np.mean(noise**2)) * self.share, np.finfo(float).tiny)

    def effects(self, S: Array) -> Array:
        """W⁺ s (p, k) of columns S (N, R, k): by how much one unit of each moves the parameters where it is not in the regressor."""
        return np.asarray(self.back @ self._inside(S.reshape(self.residual.size, S.shape[2])), dtype=np.float64)

    def unexplained(self, rest: Array) -> Array:
        """The residual (N, R) that is left with columns (N, R, k), as :meth:`beside` gives them, in the regressor all at once."""
        return np.asarray(self.residual - rest @ self.sizes_of(rest), dtype=np.float64)

    def with_columns(self, S: Array) -> Projected:
        """The same with columns S (N, R, k) in the regressor; what the others explain whole adds nothing."""
        rest = self.beside(S).reshape(self.residual.size, S.shape[2])
        least, residual = INSEPARABLE * np.linalg.norm(S.reshape(rest.shape), axis=0), self.residual.ravel()
        units: list[Array] = []
        for k, own in enumerate(rest.T.copy()):
            for unit in units:
                own -= unit * float(unit @ own)
            size = float(np.linalg.norm(own))
            if size > least[k]:
                units.append(own / size)
                residual = residual - units[-1] * float(units[-1] @ residual)
        if not units:
            return self
        more = np.stack(units, axis=1).reshape(*self.residual.shape, -1)
        appended = np.concatenate([self.appended, more], axis=2)
        return replace(self, appended=appended, residual=residual.reshape(self.residual.shape))


def _orthonormalising(A: Array, G: Array, norms: Array) -> Array:
    """T (p, rank) such that A T has orthonormal columns, G = AᵀA and `norms` those of its columns.

    By products where A is well conditioned, twice where that takes digits, else by its R factor. ‖L⁻¹‖² in Frobenius' norm, L Lᵀ = G with
    columns of norm one, is at least the reciprocal of the smallest eigenvalue.
    """
    try:
        T = np.linalg.inv(np.linalg.cholesky(G / norms[:, None] / norms)).T
    except np.linalg.LinAlgError:
        pass
    else:
        smallest = 1.0 / float(np.sum(T**2))
        T /= norms[:, None]
        if smallest > ONE_STEP:
            return np.asarray(T, dtype=np.float64)
        if smallest > ROUNDING:
            B = A @ T
            return np.asarray(T @ np.linalg.inv(np.linalg.cholesky(B.T @ B)).T, dtype=np.float64)
    _, s, Vt = np.linalg.svd(np.linalg.qr(A / norms, mode="r"))
    kept = s > ROUNDING * s.max(initial=0.0)
    return Vt[kept].T / s[kept] / norms[:, None]


def _long_run(terms: Array) -> tuple[Array, Array]:
    """The long-run variance of sums over each column of terms (N, k), and how many windows of its correlation the samples hold."""
    N = len(terms)
    square = np.einsum("nk,nk->k", terms, terms)
    product = np.einsum("nk,nk->k", terms[1:], terms[:-1])
    widths = np.array([window_of(int(lags)) for lags in andrews_each(square, product, N)])
    variance, windows = square.copy(), np.full(len(square), float(N))
    sums = np.vstack([np.zeros((1, terms.shape[1])), np.cumsum(terms, axis=0)])
    for W in np.unique(widths[widths > 1]):
        own = widths == W
        wide, narrow = (_bartlett(sums[:, own], w) for w in (int(W), int(W) // 2))
        variance[own] = np.maximum(2.0 * wide - narrow, MIN_SHARE_OF_BARTLETT * wide)
        windows[own] = max(2.0, N / W)
    return variance, windows


def _bartlett(sums: Array, width: int) -> Array:
    """Bartlett's estimate for each column from its running sums (N + 1, k), zero first: Σ of squared sums over all windows, by their width.

    Windows that begin before the first sample or end behind the last are cut there.
    """
    inside = sums[width:] - sums[:-width]
    first, last = sums[1:width], sums[-1] - sums[-width:-1]
    return np.asarray(((inside**2).sum(axis=0) + (first**2).sum(axis=0) + (last**2).sum(axis=0)) / width)


def of_several(chance: Array, columns: NDArray[np.intp]) -> Array:
    """Chances (k,) of z scores of combinations that were chosen among so many columns each: z² is χ² of that many degrees of freedom."""
    z = -ndtri(np.maximum(0.5 * chance, np.finfo(float).tiny))
    return np.where(columns > 1, chdtrc(columns, z**2), chance)


def limit_of(alpha: float, tests: int) -> float:
    """The tail probability below which one of so many tests is significant, `alpha` being that of any of them (Šidák)."""
    return float(-np.expm1(np.log1p(-alpha) / max(tests, 1)))


def best_power(noncentrality: float, alpha: float = 0.01) -> float:
    """How often a test that knows the shape of a damage finds it at a rate `alpha` of false alarms.

    `noncentrality`: ‖c s_⊥‖ in deviations of the noise.
    """
    limit = -float(ndtri(alpha / 2.0))
    return float(ndtr(noncentrality - limit) + ndtr(-noncentrality - limit))


@dataclass(frozen=True, eq=False)
class TraceNoise:
    """`columns` (p,): Σ v (∂W/∂q̈)ᵀ M over the base columns; `own`: trace (kind, where) → Σ v (∂s/∂q̈) M."""

    columns: Array
    own: Callable[[tuple[str, str]], float]

    def scores(self, names: Sequence[tuple[str, str]], a: Array) -> Array:
        """E[g] (k,) of traces with these names and a = W⁺ s (p, k)."""
        return self.columns @ a - np.array([self.own(name) for name in names])


def passed_covariances(
    motions: Sequence[Motion], rows: Sequence[str], sampling: Sampling, window: int, lags: int
) -> Array | None:
    """(motions, R, n, lags + 1): autocovariances of the noise of q̈ behind the filters of rows, added over `window` samples and divided by
    the root of their number. None where the noise of a motion is not known.
    """
    every = []
    for m in motions:
        if m.noise_bands is None:
            return None
        bands = m.noise_bands
        turn = 2.0 * np.pi * bands.ends * sampling.decimate / bands.rate
        width = 1 if sampling.filtering else window
        added = np.abs(np.exp(1j * np.outer(np.arange(width), turn)).sum(axis=0)) ** 2 / width
        waves = added[:, None] * np.cos(np.outer(turn * width, np.arange(lags + 1)))
        filters = [sampling.filter_of(row) for row in rows]
        gains = {low: low.gain(bands.ends, bands.rate) ** 2 for low in filters if low is not None}
        every.append([(bands.variance if low is None else bands.variance * gains[low]) @ waves for low in filters])
    return np.asarray(every, dtype=np.float64)


def passed_variance(covariances: Array, filters: Sequence[Array]) -> Array:
    """(R, n): variance of such noise behind the `filters` (1, a_1 …) of the rows besides, Σ_ik a_i a_k C_|i−k|; the largest of motions."""
    out = []
    for j, a in enumerate(filters):
        pairs = np.correlate(a, a, "full")[len(a) - 1 :]
        pairs[1:] *= 2.0
        out.append(covariances[:, j, :, : len(a)] @ pairs)
    return np.max(out, axis=1)


@dataclass(frozen=True, eq=False)
class NoiseSlopes:
    """What unit noise of an acceleration makes of scores, for each row and coordinate: `columns` (R, n, p), `own` trace → (R, n), zero of
    others; `moved` makes those of traces that move the machine, where one is asked about."""

    columns: Array
    own: dict[tuple[str, str], Array]
    moved: Callable[[tuple[str, str]], Array | None]

    def of(self, equations: Array) -> TraceNoise:
        """Sums over all equations, `equations` (R, n): their number in each row times v_rk."""

        def own(name: tuple[str, str]) -> float:
            slopes = self.own[name] if name in self.own else self.moved(name)
            return 0.0 if slopes is None else float(np.sum(equations * slopes))

        return TraceNoise(np.tensordot(equations, self.columns, 2), own)


def noise_slopes(fit: Fit, motions: Sequence[Motion], rows: Sequence[str]) -> NoiseSlopes | None:
    """Means along some samples of the motions; None where accelerations are hardly noisy."""
    machine = fit.described
    step = max(1, sum(len(m) for m in motions) // FEW_SAMPLES)
    m = joined([part[::step] for part in motions])
    if m.qdd_noise is None:
        return None
    noisy = np.flatnonzero(m.qdd_noise > SMALL_NOISE * np.sqrt(np.mean(m.qdd**2, axis=0)))
    if not len(noisy) or not set(noisy.tolist()) <= set(machine.independent):
        return None
    still, shape = at_rest(m), (len(rows), machine.n)
    columns, own = np.zeros((*shape, len(fit.values))), dict[tuple[str, str], Array]()
    slopes = list(acceleration_slopes(machine, still, rows, list(fit.base.columns), noisy))
    motions_of_noise = [still.qdd, *(qdd for _, _, qdd in slopes)]
    forces = _forces(machine, fit.standard, [(still.q, qdd) for qdd in motions_of_noise], still, rows)
    every = forces[1:] - forces[0]
    for (k, slope, _), M in zip(slopes, every, strict=True):
        columns[:, k] = np.einsum("srp,sr->rp", slope, M) / len(m)
        for j, row in enumerate(rows):
            own.setdefault(("force scale", row), np.zeros(shape))[j, k] = float(M[:, j] @ M[:, j]) / len(m)
            if machine.coordinates[k] == row:
                own.setdefault((ROTOR, row), np.zeros(shape))[j, k] = float(M[:, j].sum()) / len(m)
        for d in coupled_drives(machine):
            acts = d.rows(machine, tuple(rows))
            if acts is not None:
                load = M @ d.moves[[machine.coordinates.index(row) for row in rows]]
                own.setdefault(("force scale", d.name), np.zeros(shape))[:, k] = acts * (load @ M) / len(m)
                own.setdefault((ROTOR, d.name), np.zeros(shape))[:, k] = acts * d.turns[k] * M.sum(axis=0) / len(m)

    @cache
    def moved(name: tuple[str, str]) -> Array | None:
        other = None if machine.closed or machine.base != "fixed" else _moved(machine, still, name)
        if other is None:
            return None
        states = [(other[1], qdd) for qdd in motions_of_noise]
        changed, line = _forces(other[0], fit.standard, states, still, rows), np.zeros(shape)
        for (k, _, _), M, after in zip(slopes, every, changed[1:], strict=True):
            line[:, k] = np.sum(M * (after - changed[0] - M), axis=0) / other[2] / len(m)
        return line

    return NoiseSlopes(columns, own, moved)


def _moved(machine: Machine, still: Motion, trace: tuple[str, str]) -> tuple[Machine, Array, float] | None:
    """Machine, positions, and step of the derivative that a trace is; None of one that moves nothing."""
    kind, where = trace
    if kind == "machine size":
        return stretched(machine, 1.0 + DIFFERENCE), still.q, DIFFERENCE
    if kind != "encoder zero":
        return None
    drive = next((d for d in coupled_drives(machine) if d.name == where), None)
    moves = np.eye(machine.n)[machine.coordinates.index(where)] if drive is None else drive.moves
    return machine, still.q + DIFFERENCE * moves, -DIFFERENCE


def _forces(
    machine: Machine, values: Array, states: Sequence[tuple[Array, Array]], still: Motion, rows: Sequence[str]
) -> Array:
    """(states, N, rows) of a motion at rest with other positions and accelerations, all at once."""
    several = joined([replace(still, q=q, qdd=qdd) for q, qdd in states])
    return inverse_dynamics(machine, several, list(rows), values, engine="numpy").reshape(len(states), len(still), -1)


def size_slopes(machine: Machine, values: Array, m: Motion, rows: Sequence[str], forces: Array) -> Array:
    """s (N, rows) along a motion with standard parameters `values` (p,), which ask for the `forces` (N, rows) as the model has it."""
    longer = inverse_dynamics(stretched(machine, 1.0 + DIFFERENCE), m, list(rows), values, engine="numpy")
    return (longer - forces) / DIFFERENCE
