"""Weighted least squares: (23) to (28) of paper 000, its (23) corrected, shown by Monte Carlo."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from veridyn.errors import IdentificationError, IdentificationWarning
from veridyn.identify.estimators.least_squares import Solution, row_deviation, separable, solve
from veridyn.identify.regression.factor import RowFactors, empty
from veridyn.model.parameters import ParameterSet

# FACTS 2.18: five rows whose noise spans .1 to 50.
SIGMAS = np.array([0.1, 0.2, 1.0, 10.0, 50.0])
ROWS = tuple(f"row{j}" for j in range(5))
N, P, TRIALS = 60, 6, 5000
TRUTH = np.array([3.0, -2.0, 0.5, 10.0, -7.0, 1.5])


def parameters(p: int = P) -> ParameterSet:
    return ParameterSet(
        names=tuple(f"p{k}" for k in range(p)),
        units=("kg",) * p,
        values=np.full(p, np.nan),
        typical=np.ones(p),
        states=("estimated",) * p,
    )


@cache
def regressors() -> np.ndarray:
    """W_j of each row, (rows, N, P)."""
    return np.random.default_rng(0).normal(size=(5, N, P))


@cache
def measured() -> np.ndarray:
    """Many noisy measurements of each row: (rows, N, trials)."""
    noise = np.random.default_rng(1).normal(size=(5, N, TRIALS))
    return regressors() @ TRUTH[:, None] + SIGMAS[:, None, None] * noise


def observed(W: np.ndarray, Y: np.ndarray, columns: tuple[tuple[int, ...], ...] | None = None) -> RowFactors:
    """Row factors of W_j (N, p) and Y_j (N,); where `columns` says so, a row has some of the columns only."""
    rows = []
    for j in range(len(W)):
        own = tuple(range(W[j].shape[1])) if columns is None else columns[j]
        rows.append(empty(f"row{j}", own).absorb(np.column_stack([W[j][:, list(own)], Y[j]])))
    return RowFactors(parameters(W[0].shape[1]), tuple(rows))


def known() -> dict[str, float]:
    return dict(zip(ROWS, SIGMAS, strict=True))


def weighted(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of all trials at once with P = diag(weights): values (P, trials), σ̂² of (26) (trials,), and (W_PᵀW_P)⁻¹."""
    Wp = (weights[:, None, None] * regressors()).reshape(-1, P)
    Yp = (weights[:, None, None] * measured()).reshape(-1, TRIALS)
    Q, R = np.linalg.qr(Wp)
    values = np.linalg.solve(R, Q.T @ Yp)
    residual = ((Yp - Wp @ values) ** 2).sum(axis=0)
    inverse = np.linalg.inv(R)
    return values, residual / (5 * N - P), inverse @ inverse.T


def ratios(weights: np.ndarray) -> np.ndarray:
    """σ by (27), its root mean square over the trials, over the empirical deviation; for each parameter."""
    values, variance, C = weighted(weights)
    return np.sqrt(variance.mean() * np.diag(C)) / values.std(axis=1, ddof=1)


def test_known_weights_give_a_residual_of_one() -> None:
    """(26) is 1 within 1 ± 3 √(2/dof) in 99 % of 5000 single trials, and its mean square within that of the mean of all."""
    _, variance, _ = weighted(1.0 / SIGMAS)
    band = 3.0 * np.sqrt(2.0 / (5 * N - P))
    inside = np.mean(np.abs(variance - 1.0) < band)
    print(f"(26)²: mean {variance.mean():.4f}, {100 * inside:.2f} % of single trials within 1 ± {band:.3f}")
    assert abs(variance.mean() - 1.0) < band / np.sqrt(TRIALS)
    assert inside > 0.99


def test_deviations_are_those_of_the_estimates() -> None:
    """(27) over the empirical deviation within [0.95, 1.05] for every parameter; 5000 trials make ± 1 % of sampling error."""
    found = ratios(1.0 / SIGMAS)
    print(f"(27)/empirical: {found.min():.3f} to {found.max():.3f}")
    assert np.all((found > 0.95) & (found < 1.05))
    values, _, C = weighted(1.0 / SIGMAS)
    assert np.abs(values.mean(axis=1) - TRUTH).max() < 4.0 * np.sqrt(np.diag(C).max() / TRIALS)  # no bias


def test_weights_as_printed_understate_the_deviations() -> None:
    """(23) literally, S_j = I/σ_j² with Y_P = P Y: (27) comes out near half, (26) far from 1, and the estimates are worse."""
    found = ratios(1.0 / SIGMAS**2)
    assert np.all((found > 0.45) & (found < 0.65))
    _, variance, _ = weighted(1.0 / SIGMAS**2)
    assert variance.mean() > 20.0
    best, literal, ordinary = (weighted(w)[0].std(axis=1) for w in (1.0 / SIGMAS, 1.0 / SIGMAS**2, np.ones(5)))
    assert np.all(literal > 1.02 * best) and np.all(ordinary > 20.0 * best)


@pytest.mark.parametrize("trial", range(0, TRIALS, 500))
def test_factors_give_what_the_algebra_gives(trial: int) -> None:
    """The path through row factors on some of the same trials: values, (26) and (27) to 1e-10."""
    s = solve(observed(regressors(), measured()[:, :, trial]), sigma=known())
    values, variance, C = weighted(1.0 / SIGMAS)
    assert s.values == pytest.approx(values[:, trial], rel=1e-10)
    assert s.sigma**2 == pytest.approx(variance[trial], rel=1e-10)
    assert s.covariance == pytest.approx(variance[trial] * C, rel=1e-9, abs=1e-12 * np.abs(C).max())
    assert s.freedom == 5 * N - P and np.array_equal(s.row_sigma, SIGMAS)


def test_estimated_weights_do_as_well() -> None:
    """σ_j by (24) from each row's own least squares: deviations still honest, over 400 trials through the factors."""
    trials = [solve(observed(regressors(), measured()[:, :, k])) for k in range(400)]
    rows = np.array([s.row_sigma for s in trials])
    assert np.sqrt((rows**2).mean(axis=0)) == pytest.approx(SIGMAS, rel=0.03)
    deviation = np.array([s.values for s in trials]).std(axis=0, ddof=1)
    stated = np.sqrt(np.mean([np.diag(s.covariance) for s in trials], axis=0))
    # 400 trials: ± 3.5 % at one sigma; weights made of 54 degrees of freedom a row cost a little more.
    assert np.all(np.abs(stated / deviation - 1.0) < 0.12)
    assert np.mean([s.sigma**2 for s in trials]) == pytest.approx(1.0, abs=0.05)


def test_a_row_counts_only_the_columns_it_excites() -> None:
    """(24) with n_Bj the rank of the row's own columns: a row that feels two of six, one of them twice (FACTS 2.19)."""
    rng = np.random.default_rng(2)
    W = rng.normal(size=(40, 3))
    W[:, 2] = 2.0 * W[:, 0]
    y = rng.normal(size=40)
    o = RowFactors(parameters(3), (empty("row0", (0, 1, 2)).absorb(np.column_stack([W, y])),))
    residual = np.linalg.lstsq(W, y, rcond=None)[0]
    expected = np.linalg.norm(y - W @ residual) / np.sqrt(40 - 2)
    assert row_deviation(o.rows[0], o) == pytest.approx(expected, rel=1e-12)


def test_ordinary_weighs_all_alike() -> None:
    s = solve(observed(regressors(), measured()[:, :, 0]), "none")
    W, y = regressors().reshape(-1, P), measured()[:, :, 0].reshape(-1)
    assert s.values == pytest.approx(np.linalg.lstsq(W, y, rcond=None)[0], rel=1e-10)
    assert np.array_equal(s.row_sigma, np.ones(5))
    assert s.condition == pytest.approx(np.linalg.cond(W), rel=1e-10)


def test_condition_numbers() -> None:
    """Of the weighted base regressor as it is, and with columns times typical sizes."""
    W, Y = regressors() * np.array([1.0, 1.0, 1e3, 1.0, 1.0, 1.0]), measured()[:, :, 0]
    typical = np.array([1.0, 1.0, 1e-3, 1.0, 1.0, 1.0])
    o = observed(W, Y)
    o = RowFactors(
        ParameterSet(
            names=o.parameters.names,
            units=o.parameters.units,
            values=np.full(P, np.nan),
            typical=typical,
            states=("estimated",) * P,
        ),
        o.rows,
    )
    s = solve(o, sigma=known())
    Wp = (W / SIGMAS[:, None, None]).reshape(-1, P)
    assert s.condition == pytest.approx(np.linalg.cond(Wp), rel=1e-9)
    assert s.condition_scaled == pytest.approx(np.linalg.cond(Wp * typical), rel=1e-9)
    assert s.condition > 100 * s.condition_scaled


def test_rows_with_columns_of_their_own() -> None:
    """Each row feels other parameters; together they are one system."""
    columns = ((0, 1), (1, 2, 3), (3, 4, 5), (0, 5), (0, 1, 2, 3, 4, 5))
    W = [np.zeros((N, P)) for _ in range(5)]
    for j, own in enumerate(columns):
        W[j][:, own] = regressors()[j][:, own]
    Y = [W[j] @ TRUTH + SIGMAS[j] * np.random.default_rng(j).normal(size=N) for j in range(5)]
    s = solve(observed(W, Y, columns), sigma=known())
    Wp = np.vstack([w / sd for w, sd in zip(W, SIGMAS, strict=True)])
    Yp = np.concatenate([y / sd for y, sd in zip(Y, SIGMAS, strict=True)])
    assert s.values == pytest.approx(np.linalg.lstsq(Wp, Yp, rcond=None)[0], rel=1e-10)


def test_columns_the_data_cannot_separate_are_grouped() -> None:
    W = regressors().copy()
    W[:, :, 4] = W[:, :, 1] - W[:, :, 2]
    Y = [w @ TRUTH for w in W]
    s = solve(observed(W, Y), sigma=known())
    assert s.columns == (0, 1, 2, 3, 5)
    assert s.values == pytest.approx([3.0, -9.0, 7.5, 10.0, 1.5], rel=1e-10)


def test_exact_data_are_recovered() -> None:
    """Noise-free measurements give the truth, although no deviation can be made of their residual."""
    s = solve(observed(regressors(), regressors() @ TRUTH))
    assert s.values == pytest.approx(TRUTH, rel=1e-10)
    assert np.all(np.sqrt(np.diag(s.covariance)) < 1e-8)


def small() -> tuple[np.ndarray, np.ndarray]:
    return regressors()[:2], measured()[:2, :, 0]


def solved() -> Solution:
    return solve(observed(*small()))


def test_unknown_rows_and_wrong_deviations_are_refused() -> None:
    with pytest.raises(IdentificationError, match=r"sigma: 'fx' is not one of the rows\.[\s\S]*Known: row0, row1"):
        solve(observed(*small()), sigma={"fx": 1.0})
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(IdentificationError, match=r"sigma\['row0'\]: a deviation must be positive"):
            solve(observed(*small()), sigma={"row0": wrong})


def test_zero_measurements_everywhere_are_refused() -> None:
    W, Y = small()
    with pytest.raises(IdentificationError, match="the measured side is zero everywhere"):
        solve(observed(W, 0.0 * Y))


def test_one_row_that_measures_zero_is_warned_of() -> None:
    """A passive joint's row: it counts, with weight 1 unless its sigma is stated."""
    W, Y = small()
    Y = np.array([Y[0], 0.0 * Y[1]])
    W = np.array([W[0], 1e-3 * W[1]])
    with pytest.warns(IdentificationWarning, match="row 'row1': the row measures exactly zero throughout"):
        s = solve(observed(W, Y))
    assert s.row_sigma[1] == 1.0
    assert solve(observed(W, Y), sigma={"row0": 0.1, "row1": 0.5}).row_sigma[1] == 0.5


def test_zero_excitation_is_refused() -> None:
    W, Y = small()
    with pytest.raises(IdentificationError, match="nothing is excited: every column is zero in this motion"):
        solve(observed(0.0 * W, Y))


def test_fewer_equations_than_parameters_are_refused() -> None:
    W, Y = small()
    few = observed(W[:, :2], Y[:, :2])
    with pytest.raises(IdentificationError, match=r"row 'row0': the row has fewer samples than parameters"):
        solve(few)
    with pytest.raises(IdentificationError, match=r"fewer equations than parameters[\s\S]*found 4 in 2 rows"):
        solve(few, sigma={"row0": 1.0, "row1": 1.0})


def test_a_row_without_samples_is_refused() -> None:
    W, Y = small()
    o = RowFactors(parameters(), (observed(W, Y).rows[0], empty("row1", tuple(range(P)))))
    with pytest.raises(IdentificationError, match="row 'row1': no sample of it is left"):
        solve(o)


def test_nothing_estimated_is_refused() -> None:
    rows = (empty("row0", ()).absorb(np.ones((5, 1))),)
    with pytest.raises(IdentificationError, match="no estimated parameter affects these rows"):
        solve(RowFactors(parameters(), rows))


def nearly_dependent(noise: float, apart: float) -> Solution:
    """Column 5 is column 0 but for `apart` of another: their difference is known to about noise/(apart √300)."""
    rng = np.random.default_rng(5)
    W = rng.normal(size=(1, 300, P))
    W[0, :, 5] = W[0, :, 0] + apart * rng.normal(size=300)
    return solve(observed(W, W @ TRUTH + noise * rng.normal(size=(1, 300))))


def test_what_noise_leaves_open_is_grouped_and_the_known_sum_stays() -> None:
    """The difference is known to 6e4 typical sizes: a ghost. The sum, 3 + 1.5, is known to the noise over √300."""
    s = nearly_dependent(0.1, 1e-7)
    assert s.open == 1
    assert s.groups.kept == (0, 1, 2, 3, 4)
    assert s.groups.matrix[:, 5].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    deviation = np.sqrt(s.covariance[0, 0])
    assert deviation == pytest.approx(0.1 / np.sqrt(300), rel=0.2)
    assert abs(s.values[0] - 4.5) < 4.0 * deviation


@pytest.mark.parametrize(("noise", "apart"), [(0.1, 1e-3), (1e-9, 1e-7), (0.0, 1e-7)])
def test_what_noise_shows_stays_apart(noise: float, apart: float) -> None:
    """Known to 6 typical sizes, which is poor and still something; or hardly any noise."""
    s = nearly_dependent(noise, apart)
    assert s.open == 0
    assert s.groups.kept == (0, 1, 2, 3, 4, 5)


def test_conditions_are_ratios_of_singular_values() -> None:
    """Orthogonal columns of 0.3 and 0.02: 15; a direction that is not there at all has an infinite one; no columns, 1."""
    W = np.zeros((1, 4, 2))
    W[0, 0, 0], W[0, 1, 1] = 0.3, 0.02
    s = solve(observed(W, W @ np.array([1.0, 2.0])), "none")
    assert s.condition == pytest.approx(15.0) and s.condition_scaled == pytest.approx(15.0)
    assert replace(s, triangle=np.diag([1.0, 0.0])).condition_scaled == float("inf")
    W = np.zeros((1, 4, 3))
    W[0, 0, 0], W[0, 1, 1], W[0, 2, 2] = 1.0, 1.0, 1.0
    three = solve(observed(W, W @ np.array([1.0, 2.0, 3.0])), "none")
    assert replace(three, triangle=np.diag([1.0, 1.0, 0.0])).condition_scaled == float("inf")
    none = replace(s, triangle=np.zeros((0, 0)), groups=replace(s.groups, kept=()))
    assert none.condition == 1.0 and none.condition_scaled == 1.0


def test_one_equation_more_than_parameters_is_enough() -> None:
    """y = 1, 2, 4 on the columns (1, 1, 1) and (0, 1, 2): the parabola that is left has 1/6 of the square, with one degree of freedom."""
    W = np.array([[[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]])
    s = solve(observed(W, np.array([[1.0, 2.0, 4.0]])), "none")
    assert s.freedom == 1 and s.sigma == pytest.approx(np.sqrt(1.0 / 6.0))
    o = observed(W, np.array([[1.0, 2.0, 4.0]]))
    assert row_deviation(o.rows[0], o) == pytest.approx(np.sqrt(1.0 / 6.0))
    with pytest.raises(IdentificationError, match="fewer equations than parameters"):
        solve(observed(W[:, :2], np.array([[1.0, 2.0]])), "none")


def test_only_directions_below_the_noise_are_left_open() -> None:
    """Orthogonal columns of sizes v, noise of σ: those with σ/v above a thousand typical sizes go, whatever the others' sizes."""
    rng = np.random.default_rng(9)
    Q = np.linalg.qr(rng.normal(size=(200, 5)))[0]
    noise = Q[:, 4] * np.sqrt(196.0)  # σ = 1 with 196 degrees of freedom
    sizes = np.array([5e-4, 3e-3, 0.05, 100.0])
    s = solve(observed((Q[:, :4] * sizes)[None], (Q[:, :4] @ (sizes * [1.0, 2.0, 3.0, 4.0]) + noise)[None]), "none")
    assert s.sigma == pytest.approx(1.0, rel=0.01)
    assert s.open == 1 and s.groups.kept == (1, 2, 3)


def test_units_of_a_row_change_neither_groups_nor_ranks() -> None:
    """One row in a unit of 1e13: what it alone shows of two columns stays, and its deviation is in that unit."""
    rng = np.random.default_rng(3)
    W = rng.normal(size=(2, N, 4))
    Y = W @ np.array([1.0, -2.0, 0.5, 3.0]) + 0.1 * rng.normal(size=(2, N))
    both = observed(W, Y, ((0, 1), (2, 3)))
    small = observed(W * np.array([1.0, 1e-13])[:, None, None], Y * np.array([1.0, 1e-13])[:, None], ((0, 1), (2, 3)))
    assert separable(small).kept == separable(both).kept == (0, 1, 2, 3)
    assert row_deviation(small.rows[1], small) == pytest.approx(1e-13 * row_deviation(both.rows[1], both), rel=1e-9)


def test_rows_without_noise_have_the_deviation_of_rounding() -> None:
    """1e-7 of the rms of what they measure: 60 samples."""
    W = np.random.default_rng(4).normal(size=(1, N, 2))
    Y = W @ np.array([5.0, -2.0])
    exact = observed(W, Y)
    assert row_deviation(exact.rows[0], exact) == pytest.approx(1e-7 * np.sqrt((Y**2).mean()), rel=1e-9)
