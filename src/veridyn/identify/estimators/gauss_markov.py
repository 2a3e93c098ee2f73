"""Gauss-Markov: the best linear unbiased estimate (9), with noise correlated across rows and, where it remembers, in time.

    p̂ = (ΨᵀΣ⁻¹Ψ)⁻¹ ΨᵀΣ⁻¹Γ,   P = (ΨᵀΣ⁻¹Ψ)⁻¹ (10)

Σ is never written down: each block of samples is whitened by a :class:`NoiseModel` and taken
into one small triangle. Where the noise is not given (from the differences of periods, :mod:`veridyn.signals.frequency`), it is estimated
from the residuals of weighted least squares in one more pass. Such noise is a vector autoregression, and a filter makes it white:

    e_t = Σ_i Φ_i e_{t−i} + u_t,   cov u = Σ_u,   i = 1 … p

With p = 0 rows are correlated at one instant only. The coefficients solve the Yule–Walker equations of the noise's autocovariances
R_l = E e_t e_{t−l}ᵀ; the order, and whether rows remember each other's past, are those with the least BIC. Whitening
multiplies equations by Σ^(−1/2) without ever writing that matrix: A_t − Σ_i Φ_i A_{t−i}, then L⁻¹ with Σ_u = L Lᵀ.
H. Lütkepohl, "New Introduction to Multiple Time Series Analysis", 2005, chapters 2 to 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_toeplitz

from veridyn.arrays import Array
from veridyn.errors import IdentificationError
from veridyn.identify.estimator import Estimator, FitProblem, fit_of
from veridyn.identify.estimators.least_squares import Solution, solved
from veridyn.identify.regression.equation_plan import EquationPlan, Job
from veridyn.identify.regression.factor import one_blas_thread, triangle_of
from veridyn.identify.regression.observation import EquationStream
from veridyn.identify.result import Fit
from veridyn.identify.settings import Auto, Hac
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.settings import Rule, at_least

Mask = NDArray[np.bool_]
Memory = Literal["common", "own", "full"]

MODELLED = "models the autocorrelation of the noise itself, and its standard deviations follow from that model."
MODELLED_HINT = "Give it an order above 0 instead."


def _is_noise(value: Any) -> bool:
    """A noise model, or a square covariance of finite numbers; its size is checked against the rows later."""
    if value is None or isinstance(value, NoiseModel):
        return True
    try:
        C = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return C.ndim == 2 and C.shape[0] == C.shape[1] and bool(np.isfinite(C).all())


NOISE = Rule(_is_noise, "a NoiseModel, a covariance (rows, rows), or None")


@dataclass(frozen=True, eq=False, repr=False)
class GaussMarkov(Estimator):
    """Gauss-Markov: the best linear unbiased estimate for noise that is correlated across rows and, if so chosen, in time.

    Parameters
    ----------
    noise : NoiseModel, array (rows, rows), or None
        The noise, or the covariance of one sample's noise in N² or (N*m)², in the order of the rows. None, the default: it is estimated
        from the residuals of weighted least squares.
    order : int of at least 0
        Samples over which noise from residuals may be correlated, at most; the order is chosen by BIC. 0, the default: white in time.
    periodic : bool
        The motion is one whole period, so that its last sample comes before its first; False by default.

    Examples
    --------
    >>> fit = vd.identify(robot, motion, vd.estimators.GaussMarkov(order=2))  # robot and motion as in the example of vd.identify
    >>> fit.estimator
    'Gauss-Markov'
    """

    name: ClassVar[str] = "gauss_markov"
    title: ClassVar[str] = "Gauss-Markov"

    noise: Annotated[NoiseModel | ArrayLike | None, NOISE] = None
    order: Annotated[int, at_least(0)] = 0
    periodic: bool = False

    @property
    def every_sample(self) -> bool:
        return self.periodic

    @property
    def weighs_differences(self) -> bool:
        return self.order > 0 or (isinstance(self.noise, NoiseModel) and self.noise.order > 0)

    def check(self, machine: Machine, rows: Rows, covariance: Hac | Auto | None) -> None:
        super().check(machine, rows, covariance)
        self.refuse_hac(covariance, MODELLED, MODELLED_HINT)
        names = [machine.rows[r] for r in machine.select_rows(rows)]
        shape = _shape(self.noise)
        if shape is not None and shape != (len(names), len(names)):
            raise IdentificationError(
                "the noise is not that of these rows.",
                where="GaussMarkov.noise",
                expected=f"({len(names)}, {len(names)}) for {', '.join(names)}",
                found=f"{shape}",
            )

    def fit(self, problem: FitProblem) -> Fit:
        """Weighted least squares first, for the groups and, where the noise is not given, for its residuals."""
        found, noise = gauss_markov(problem.samples, problem.weighted, self)
        fit = fit_of(problem.machine, found, self.title, problem.settings.acceptance)
        return replace(fit, notes=(*fit.notes, noise.summary()))


def _shape(noise: NoiseModel | ArrayLike | None) -> tuple[int, ...] | None:
    if noise is None:
        return None
    return noise.news.shape if isinstance(noise, NoiseModel) else np.shape(noise)


def _whole(plan: EquationPlan, job: Job, place: dict[int, int]) -> tuple[Array, NDArray[np.intp], Mask]:
    """All equations of a job's samples as (N, rows, columns + 1), their numbers, and which samples every row uses."""
    parts, numbers, used = [], [], []
    for block in plan.blocks(job):
        dense = np.zeros((len(block.numbers), len(plan.rows), len(place) + 1))
        good = np.ones(len(block.numbers), dtype=bool)
        for k, (A, mask) in enumerate(zip(block.equations, block.used, strict=True)):
            dense[np.ix_(np.flatnonzero(mask).tolist(), [k], [place[c] for c in plan.columns[k]])] = A[:, None, :-1]
            dense[mask, k, -1] = A[:, -1]
            good &= mask
        parts.append(dense)
        numbers.append(block.numbers)
        used.append(good)
    return np.concatenate(parts), np.concatenate(numbers), np.concatenate(used)


@dataclass(frozen=True, eq=False)
class _Residuals:
    """One pass that sums products of residuals at lags 0 … p, and counts the samples that entered each."""

    values: Array
    place: dict[int, int]
    order: int

    def __call__(self, plan: EquationPlan, job: Job) -> tuple[Array, Array]:
        A, numbers, used = _whole(plan, job, self.place)
        e = A[:, :, -1] - A[:, :, :-1] @ self.values
        products = np.zeros((self.order + 1, len(plan.rows), len(plan.rows)))
        counts = np.zeros(self.order + 1)
        own = used & (numbers >= job.start)
        for lag in range(self.order + 1):
            both = own[lag:] & used[: len(used) - lag]
            products[lag] = e[lag:][both].T @ e[: len(e) - lag][both]
            counts[lag] = both.sum()
        return products, counts


@dataclass(frozen=True, eq=False)
class _Whitened:
    """One pass that takes whitened equations into a triangle."""

    noise: NoiseModel
    place: dict[int, int]
    periodic: bool

    def __call__(self, plan: EquationPlan, job: Job) -> tuple[Array, int]:
        A, numbers, used = _whole(plan, job, self.place)
        p = self.noise.order
        if self.periodic:
            if not (job.start == 0 and job.stop == job.total and used.all()):
                raise IdentificationError(
                    "a periodic motion must be one short stretch with no sample left out.",
                    where="GaussMarkov.periodic",
                    hint="Average the periods first (veridyn.signals.frequency), and leave out dead zones and masks.",
                )
            white = self.noise.whitened(A)
        else:
            white = self.noise.whitened(A, periodic=False)
            good = np.array(used)
            for lag in range(1, p + 1):
                good[lag:] &= used[: len(used) - lag]
            white = white[(good & (numbers >= job.start))[p:]]
        with one_blas_thread():
            flat = white.reshape(-1, A.shape[2])
            return (triangle_of(flat) if len(flat) >= A.shape[2] else flat), len(flat)


def gauss_markov(stream: EquationStream, start: Solution, how: GaussMarkov) -> tuple[Solution, NoiseModel]:
    """The Gauss-Markov solution over the groups of a weighted one, and the noise it was weighted by."""
    observed = start.observation
    place = {c: k for k, c in enumerate(observed.columns)}
    if how.noise is None:
        noise = _from_residuals(stream, start, how, place)
    else:
        noise = how.noise if isinstance(how.noise, NoiseModel) else NoiseModel.white(how.noise)
    R, equations = np.zeros((0, len(place) + 1)), 0
    with one_blas_thread():
        work = _Whitened(noise, place, how.periodic)
        for part, count in stream.each(work, noise.order, "whitening samples"):
            R = np.vstack([R, part])
            R = triangle_of(R) if len(R) > R.shape[1] else R
            equations += count
        found = solved(observed, R, start.groups, start.row_sigma, start.tolerance)
        freedom = equations - len(found.values)
        if freedom <= 0:
            raise IdentificationError(
                "there are fewer equations than parameters.", where="GaussMarkov", found=f"{equations} equations"
            )
        sigma = found.sigma * np.sqrt(found.freedom / freedom)
    return replace(
        found, sigma=float(sigma), freedom=freedom, row_sigma=np.sqrt(np.diag(noise.autocovariances(0)[0]))
    ), noise


def _from_residuals(stream: EquationStream, start: Solution, how: GaussMarkov, place: dict[int, int]) -> NoiseModel:
    values = np.zeros(len(place))
    values[[place[c] for c in start.columns]] = start.values
    rows = len(stream.plan.rows)
    products, counts = np.zeros((how.order + 1, rows, rows)), np.zeros(how.order + 1)
    for summed, counted in stream.each(_Residuals(values, place, how.order), how.order, "residuals of all rows"):
        products, counts = products + summed, counts + counted
    samples = float(counts[0])
    lost = samples / max(samples - len(start.values) / rows, 1.0)
    R = lost * products / np.maximum(counts, 1.0)[:, None, None]
    return NoiseModel.chosen(R, int(samples))


@dataclass(frozen=True, eq=False)
class ArrayEstimate:
    """Estimates of arrays of equations: `values` (…, p) and their `covariance` (…, p, p)."""

    values: Array
    covariance: Array

    @property
    def sigma(self) -> Array:
        return np.sqrt(np.einsum("...ii->...i", self.covariance))


def estimated(A: Array, y: Array, noise: NoiseModel, weights: NoiseModel | None = None) -> ArrayEstimate:
    """Estimates from equations of whole periods A (…, N, r, p), y (…, N, r), with deviations for the actual noise.

    Without `weights` by Gauss and Markov, P = (ΨᵀΣ⁻¹Ψ)⁻¹. With `weights`, least squares that assumes another noise: the values are
    its own, the deviations those of the actual noise, (ΨᵀVΨ)⁻¹ ΨᵀVΣVΨ (ΨᵀVΨ)⁻¹. Many trials at once by the leading axes.
    """
    assumed = noise if weights is None else weights
    both = np.concatenate([A, y[..., None]], axis=-1)
    W = assumed.whitened(both)
    flat = W.reshape(*W.shape[:-3], -1, W.shape[-1])
    Q, R = np.linalg.qr(flat[..., :-1])
    inverse = np.linalg.inv(R)
    values = (inverse @ (np.swapaxes(Q, -1, -2) @ flat[..., -1:]))[..., 0]
    if weights is None:
        return ArrayEstimate(values, inverse @ np.swapaxes(inverse, -1, -2))
    # VΨ, sample by sample, with the assumed noise; then how much the actual noise moves (VΨ)ᵀe
    V = assumed.unwhitened(W[..., :-1])
    S = noise.spread(V)
    bread = inverse @ np.swapaxes(inverse, -1, -2)
    return ArrayEstimate(values, bread @ S @ bread)


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """`coefficients` Φ (p, r, r) and the covariance Σ_u (r, r) of the news u."""

    news: Array
    coefficients: Array

    @classmethod
    def white(cls, covariance: ArrayLike) -> NoiseModel:
        """Correlated across rows only."""
        C = np.asarray(covariance, dtype=np.float64)
        return cls(C, np.zeros((0, *C.shape)))

    @classmethod
    def from_autocovariances(cls, R: Array, kind: Memory = "full") -> NoiseModel:
        """By Yule and Walker from R_0 … R_p (p + 1, r, r): all rows remember alike ("common"), each its own past, or all of it ("full")."""
        p, r = len(R) - 1, R.shape[1]
        if p == 0:
            return cls.white(R[0])
        if kind == "full":
            # Σ_i Φ_i R_{l−i} = R_l for l = 1 … p, with R_{−l} = R_lᵀ
            T = np.block([[R[l - i] if l >= i else R[i - l].T for l in range(1, p + 1)] for i in range(1, p + 1)])
            flat = np.linalg.solve(T.T, np.concatenate(list(R[1:]), axis=1).T).T  # (r, p r)
            phi = np.stack(np.split(flat, p, axis=1))
        elif kind == "own":
            each = [_scalar(R[:, k, k] / R[0, k, k]) for k in range(r)]
            phi = np.stack([np.diag([one[i] for one in each]) for i in range(p)])
        else:
            shared = np.linalg.solve(R[0], R)  # in units in which rows are independent
            phi = _scalar(np.trace(shared, axis1=1, axis2=2) / r)[:, None, None] * np.eye(r)
        C = np.concatenate([np.eye(r)[None], -phi])
        news = np.zeros((r, r))
        for i in range(p + 1):
            for j in range(p + 1):
                news += C[i] @ (R[j - i] if j >= i else R[i - j].T) @ C[j].T  # E e_{t−i} e_{t−j}ᵀ = R_{j−i}
        return cls(0.5 * (news + news.T), phi)

    @classmethod
    def chosen(cls, R: Array, samples: int) -> NoiseModel:
        """Of the orders 0 … p that R_0 … R_p allow, and the three ways to remember, the model with the least BIC for so many samples.

        The fewer coefficients it has, the less an estimate that is weighted by it suffers from their being estimates.
        """
        r = R.shape[1]
        best, least = cls.white(R[0]), np.inf
        for order in range(len(R)):
            kinds: tuple[tuple[Memory, int], ...] = (("common", 1), ("own", r), ("full", r * r))
            for kind, each in kinds:
                model = cls.from_autocovariances(R[: order + 1], kind)
                sign, size = np.linalg.slogdet(model.news)
                cost = samples * size + np.log(samples) * order * each if sign > 0 else np.inf
                if cost < least:
                    best, least = model, cost
        return best

    @classmethod
    def from_runs(cls, e: Array, order: int, freedom: float | None = None) -> NoiseModel:
        """From noise seen in runs (runs, N, r), `freedom` samples' worth of it (see :func:`autocovariances`).

        Σ̂⁻¹ is too large by f/(f − r − 1) in the mean (Wishart), and stated deviations too small; the news are widened by that.
        """
        f = float(e.shape[0] * e.shape[1]) if freedom is None else float(freedom)
        r = e.shape[2]
        if f <= r + 1:
            raise IdentificationError(
                "there is too little noise to learn its covariance from.",
                where="noise",
                expected=f"more than {r + 1} samples' worth",
                found=f"{f:g}",
            )
        return cls.chosen(autocovariances(e, order, f), int(f)).scaled(f / (f - r - 1.0))

    @property
    def order(self) -> int:
        return len(self.coefficients)

    @property
    def rows(self) -> int:
        return len(self.news)

    def scaled(self, factor: float) -> NoiseModel:
        """The same noise with `factor` times the variance: 1/N_m for the mean of N_m periods."""
        return NoiseModel(factor * self.news, self.coefficients)

    def whitened(self, A: Array, periodic: bool = True) -> Array:
        """Equations (…, N, r, c) whose noise is this one, as equations with independent noise of unit variance.

        `periodic`: the sample before the first is the last; otherwise the first p samples, whose past is not known, are left out.
        """
        out = np.array(A, dtype=np.float64)
        for i, phi in enumerate(self.coefficients, 1):
            out -= phi @ np.roll(A, i, axis=-3)
        if not periodic:
            out = out[..., self.order :, :, :]
        return np.linalg.inv(self._root) @ out

    def summary(self) -> str:
        """How the rows are correlated, and how long the noise remembers, in one line."""
        C = self.autocovariances(0)[0]
        s = np.sqrt(np.diag(C))
        between = np.abs(C / np.outer(s, s) - np.eye(len(C))).max(initial=0.0)
        memory = f"remembers {self.order} sample(s)" if self.order else "is white in time"
        return f"noise of the rows is correlated by up to {between:.2f} and {memory}"

    def unwhitened(self, W: Array) -> Array:
        """Σ^(−½)ᵀ W: the transpose of :meth:`whitened` of periodic equations, so that both together are Σ⁻¹."""
        U = np.linalg.inv(self._root).T @ W
        out = np.array(U)
        for i, phi in enumerate(self.coefficients, 1):
            out -= phi.T @ np.roll(U, -i, axis=-3)
        return out

    def spread(self, V: Array) -> Array:
        """VᵀΣV (…, c, c) of periodic V (…, N, r, c): the covariance of Vᵀe, bin by bin with the spectrum of the noise."""
        N, c = V.shape[-3], V.shape[-1]
        w = 2.0 * np.pi * np.arange(N // 2 + 1) / N
        response = np.eye(self.rows) - sum(
            (np.exp(-1j * i * w)[:, None, None] * phi for i, phi in enumerate(self.coefficients, 1)),
            np.zeros((len(w), self.rows, self.rows)),
        )
        shaped = np.linalg.inv(response) @ self._root  # of the news, in each bin
        Z = np.conj(np.swapaxes(shaped, -1, -2)) @ np.fft.rfft(V, axis=-3)
        Z[..., 1 : (N + 1) // 2, :, :] *= np.sqrt(2.0)  # bins that stand for two
        flat = Z.reshape(*Z.shape[:-3], -1, c)
        return (np.swapaxes(flat.real, -1, -2) @ flat.real + np.swapaxes(flat.imag, -1, -2) @ flat.imag) / N

    @property
    def _root(self) -> Array:
        try:
            return np.asarray(np.linalg.cholesky(self.news), dtype=np.float64)
        except np.linalg.LinAlgError as error:
            raise IdentificationError(
                "the covariance of the noise is not positive definite.",
                where="noise",
                expected="rows that do not follow exactly from each other",
                found=f"least eigenvalue {np.linalg.eigvalsh(self.news)[0]:.3g}",
            ) from error

    def autocovariances(self, lags: int) -> Array:
        """R_0 … R_lags (lags + 1, r, r) of noise that has gone on forever, by doubling."""
        p, r = self.order, self.rows
        if p == 0:
            return np.concatenate([self.news[None], np.zeros((lags, r, r))])
        F = np.zeros((p * r, p * r))
        F[:r] = np.concatenate(list(self.coefficients), axis=1)
        F[r:, :-r] = np.eye((p - 1) * r)
        largest = float(np.abs(np.linalg.eigvals(F)).max())
        if largest >= 1.0:
            what = "the noise does not forget: its memory grows."
            raise IdentificationError(what, where="noise", expected="roots below 1", found=f"{largest:.3g}")
        S = np.zeros_like(F)
        S[:r, :r] = self.news
        while np.abs(F).max() > 1e-12:
            S = S + F @ S @ F.T
            F = F @ F
        # block i of the first row of S is E e_t e_{t−i}ᵀ
        R = [S[:r, i * r : (i + 1) * r] for i in range(p)]
        for _ in range(p, lags + 1):
            R.append(sum((phi @ R[-i] for i, phi in enumerate(self.coefficients, 1)), np.zeros((r, r))))
        return np.stack(R[: lags + 1])

    def drawn(self, samples: int, rng: np.random.Generator, lead: int = 200, trials: int = 1) -> Array:
        """Noise (trials, samples, r) that has gone on for `lead` samples before."""
        L = self._root
        u = rng.standard_normal((lead + samples, trials, self.rows)) @ L.T
        out = np.zeros_like(u)
        for t in range(len(u)):
            out[t] = u[t]
            for i, phi in enumerate(self.coefficients, 1):
                if t >= i:
                    out[t] += out[t - i] @ phi.T
        return np.moveaxis(out[lead:], 0, 1)


def _scalar(rho: Array) -> Array:
    """The coefficients (p,) of an autoregression from its autocorrelations 1, ρ_1 … ρ_p."""
    return np.asarray(solve_toeplitz(rho[:-1], rho[1:]), dtype=np.float64)


def autocovariances(e: Array, lags: int, freedom: float | None = None) -> Array:
    """R_l (lags + 1, r, r) of noise seen in runs (runs, N, r); divided by `freedom` per lag-0 sample count, by default runs · N.

    Deviations from a mean over N_m periods have lost one run: freedom = N (N_m − 1).
    """
    runs, N, r = e.shape
    share = (runs * N if freedom is None else freedom) / (runs * N)
    flat = [np.einsum("kti,ktj->ij", e[:, l:], e[:, : N - l]) / (share * runs * (N - l)) for l in range(lags + 1)]
    return np.stack(flat).reshape(lags + 1, r, r)
