"""What is known, estimated and tied; and searches that move parameters by name."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import DataError, ModelError
from veridyn.model.parameters import Drift, ParameterGuess, ParameterSet, Tie, Uncertainty

C = np.array([[4.0, 1.0], [1.0, 1.0]])
NAN = float("nan")


@pytest.mark.parametrize(
    ("names", "covariance", "message"),
    [
        (("a",), C, "does not fit"),
        (("a", "a"), C, "named twice"),
        (("a", "b"), [[1.0, 2.0], [2.0, 1.0]], "not positive semi-definite"),
        (("a", "b"), [[-1.0, 0.0], [0.0, 1.0]], "not positive semi-definite"),
        (("a", "b"), [[np.nan, 0.0], [0.0, 1.0]], "does not fit"),
    ],
)
def test_what_is_no_covariance_is_refused(names: tuple[str, ...], covariance, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Uncertainty(names, covariance)


def test_deviations_and_parts() -> None:
    u = Uncertainty(("a", "b"), C)
    np.testing.assert_allclose(u.sigma, [2.0, 1.0])
    assert u.without(("a",)).names == ("b",) and u.without(("a",)).covariance[0, 0] == 1.0


def test_draws_have_the_covariance() -> None:
    drawn = Uncertainty(("a", "b"), C).draw(np.array([1.0, 2.0]), np.random.default_rng(0), 200_000)
    np.testing.assert_allclose(np.cov(drawn.T), C, atol=0.05)
    np.testing.assert_allclose(drawn.mean(axis=0), [1.0, 2.0], atol=0.02)


def five() -> ParameterSet:
    return ParameterSet(
        names=tuple("abcde"),
        units=("kg",) * 5,
        values=np.array([1.0, 2.0, NAN, 4.0, 5.0]),
        typical=np.ones(5),
        states=("estimated",) * 5,
    )


def test_everything_is_estimated_at_first() -> None:
    p = five()
    assert p.select("estimated") == (0, 1, 2, 3, 4)
    assert p.missing() == ("c",)
    assert p["d"] == 4.0
    assert len(p) == 5


def test_known_with_the_values_they_have_or_others() -> None:
    p = five().known(["a", "d"])
    assert p.select("known") == (0, 3)
    p = p.known({"c": 9.0})
    assert p.select("known") == (0, 2, 3)
    assert p["c"] == 9.0
    assert p.estimated(["a"]).select("known") == (2, 3)


def test_a_parameter_without_a_value_cannot_be_known() -> None:
    with pytest.raises(ModelError, match=r"parameters c: a parameter without a value cannot be known.\nGive a mapping"):
        five().known(["a", "c"])


def test_replacing() -> None:
    np.testing.assert_array_equal(five().replacing([5, 4, 3, 2, 1]).values, [5, 4, 3, 2, 1])
    assert five().replacing({"b": -1.0})["b"] == -1.0
    with pytest.raises(DataError, match=r"does not fit this model.\nExpected \(5,\), found \(4,\)"):
        five().replacing(np.zeros(4))


def test_copies_leave_the_original_alone() -> None:
    p = five()
    p.known(["a"]).tied({"b": "d"})
    assert p.states == ("estimated",) * 5
    assert not p.ties
    with pytest.raises(ValueError, match="read-only"):
        p.values[0] = 3.0


def test_unknown_names_are_answered_with_the_nearest() -> None:
    p = ParameterSet(
        names=("XX_arm", "M_arm"), units=("", ""), values=np.zeros(2), typical=np.ones(2), states=("estimated",) * 2
    )
    for ask in (
        lambda: p["XX_am"],
        lambda: p.known(["XX_am"]),
        lambda: p.estimated(["XX_am"]),
        lambda: p.tied({"M_arm": "XX_am"}),
    ):
        with pytest.raises(ModelError, match=r"no parameter 'XX_am'.\nKnown: XX_arm, M_arm. Did you mean 'XX_arm'\?"):
            ask()


def test_tie_matrix_adds_columns() -> None:
    """D T has the tied columns, times their factors, in those they are tied to: D φ = D T φ wherever the ties hold."""
    rng = np.random.default_rng(0)
    p = five().tied({"b": "a", "e": Tie("d", -2.0)})
    D = rng.standard_normal((7, 5))
    DT = D @ p.tie_matrix()
    np.testing.assert_array_equal(DT[:, [1, 4]], 0.0)
    np.testing.assert_array_equal(DT[:, 0], D[:, 0] + D[:, 1])
    np.testing.assert_array_equal(DT[:, 3], D[:, 3] - 2 * D[:, 4])
    phi = rng.standard_normal(5)
    phi[1], phi[4] = phi[0], -2.0 * phi[3]
    np.testing.assert_allclose(DT @ phi, D @ phi, rtol=0, atol=1e-14)
    assert p.states == ("estimated", "tied", "estimated", "estimated", "tied")


def test_without_ties_the_matrix_is_one() -> None:
    np.testing.assert_array_equal(five().known(["a"]).tie_matrix(), np.eye(5))


def test_chains_of_ties_are_refused() -> None:
    with pytest.raises(ModelError, match="'a' is tied to 'b', which is tied itself"):
        five().tied({"a": "b", "b": "d"})
    with pytest.raises(ModelError, match="which is tied itself"):
        five().tied({"a": "b"}).tied({"d": "a"})
    with pytest.raises(ModelError, match="which is tied itself"):
        five().tied({"a": "b"}).tied({"b": "d"})
    with pytest.raises(ModelError, match="which is tied itself"):
        five().tied({"a": "a"})


def test_a_tie_ends_when_the_parameter_is_known_or_estimated() -> None:
    p = five().tied({"a": "b"})
    assert not p.known(["a"]).ties
    assert not p.estimated(["a"]).ties
    assert dict(p.known(["b"]).ties) == {"a": Tie("b")}
    assert dict(p.tied({"d": "b"}).ties) == {"a": Tie("b"), "d": Tie("b")}


def test_they_pickle() -> None:
    p = five().known(["a"]).tied({"b": Tie("d", 2.0)})
    again = pickle.loads(pickle.dumps(p))
    assert (again.names, again.states, dict(again.ties)) == (p.names, p.states, dict(p.ties))
    np.testing.assert_array_equal(again.values, p.values)


def test_bounds_stay_with_their_parameters() -> None:
    p = replace(five(), bounds={"a": (0.0, 2.0), "b": (-1.0, 5.0)})
    assert pickle.loads(pickle.dumps(p)).bounds == p.bounds
    assert p.replacing({"a": 1.5}).known(["a"]).bounds["a"] == (0.0, 2.0)
    assert dict(p.without(["a"]).bounds) == {"b": (-1.0, 5.0)}
    assert p.extended(five()).bounds == p.bounds


def test_drifts_stay_with_their_parameters() -> None:
    p = five().drifting({"a": Drift(0.1, 60.0)}).drifting({"b": Drift(2.0, 10.0)})
    assert pickle.loads(pickle.dumps(p)).drifts == p.drifts and p.replacing({"a": 1.5}).drifts == p.drifts
    assert dict(p.without(["a"]).drifts) == {"b": Drift(2.0, 10.0)}
    assert p.extended(five()).drifts == p.drifts and five().taking(p).drifts == p.drifts
    assert p.drifts["b"].density == pytest.approx(0.4)  # 2² in 10 s
    with pytest.raises(ModelError, match="there is no parameter 'z'"):
        five().drifting({"z": Drift(1.0, 1.0)})
    with pytest.raises(ModelError, match="by 0 within 60 s"):
        Drift(0.0, 60.0)


def test_a_parameter_moves_by_deviations_or_by_factors() -> None:
    plain = ParameterGuess(value=2.0, sigma=0.5, upper=2.75)
    assert plain.at(1.0) == 2.5 and plain.at(3.0) == 2.75 and plain.spread(2.5) == 0.5
    assert plain.ends == (-np.inf, 1.5)
    factor = ParameterGuess(value=2.0, sigma=0.5, lower=1.0, positive=True)
    assert factor.at(1.0) == pytest.approx(2.0 * np.exp(0.25)) and factor.spread(4.0) == 1.0
    assert factor.at(factor.ends[0]) == pytest.approx(1.0) and factor.ends[1] == np.inf
