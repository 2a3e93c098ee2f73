"""Spikes and dropouts bridged, everything else untouched."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.model.experiment import Channel, Experiment
from veridyn.signals.mend import damaged, mended, repaired
from veridyn.signals.mending import Mending

T = np.arange(1000) / 100.0


def log(t: np.ndarray = T, x: np.ndarray | None = None) -> Experiment:
    values = np.sin(t) + 1e-6 * np.arange(len(t)) if x is None else x
    return Experiment.from_arrays(t, {"a": values, "b": np.cos(t)}, {"a": "rad", "b": "N*m"}, "run")


def test_a_good_log_stays_as_it_is() -> None:
    made = mended(log())
    assert len(made.pieces) == 1 and not made.told
    np.testing.assert_array_equal(made.pieces[0]["a"].values, log()["a"].values)


def test_a_gap_cuts_the_log_and_a_short_one_is_bridged() -> None:
    keep = (T < 4.0) | (T > 4.5)
    made = mended(log(T[keep]))
    assert [len(p["a"]) for p in made.pieces] == [400, 549]
    assert any("cut into 2 pieces" in str(f) for f in made.told)
    assert len(mended(log(T[keep]), Mending(gaps="bridge")).pieces) == 1
    assert len(mended(log(T[keep]), Mending(max_gap=0.6)).pieces) == 1
    with pytest.raises(DataError, match=r"1 gap\(s\) without a sample"):
        mended(log(T[keep]), Mending(gaps="refuse"))


def test_a_span_of_20_ms_is_never_a_hole_however_fast_the_clock() -> None:
    t = np.arange(3000) / 1000.0
    keep = (t < 1.0) | (t > 1.012)
    made = mended(log(t[keep]))
    assert len(made.pieces) == 1
    assert any("gap(s) without a sample" in str(f) for f in made.told)  # bridged, and said


def test_a_reset_is_refused_or_cut() -> None:
    t = np.where(T >= 5.0, T - 5.0, T)
    with pytest.raises(DataError, match="runs backwards 1 time"):
        mended(log(t))
    pieces = mended(log(t), Mending(backwards="cut")).pieces
    assert [p["a"].t[0] for p in pieces] == [0.0, 0.0]
    assert [len(p["a"]) for p in pieces] == [500, 500]


def test_a_reset_of_channels_with_clocks_of_their_own_cannot_be_cut() -> None:
    t = np.where(T >= 5.0, T - 5.0, T)
    odd = Experiment({"a": Channel("a", t, np.sin(T), "rad"), "b": Channel("b", T, np.cos(T), "N*m")}, "run")
    with pytest.raises(DataError, match="clocks of their own"):
        mended(odd, Mending(backwards="cut"))


def test_repeated_stamps_are_refused_or_dropped() -> None:
    t = T.copy()
    t[300] = t[299]
    with pytest.raises(DataError, match="repeat the one before"):
        mended(log(t))
    piece = mended(log(t), Mending(duplicates="drop")).pieces[0]
    assert len(piece["a"]) == 999 and (np.diff(piece["a"].t) > 0.0).all()


def test_missing_values_are_refused_or_cut_out() -> None:
    x = np.sin(T)
    x[600:610] = np.nan
    with pytest.raises(DataError, match="10 of its 1000 values are not finite"):
        mended(log(x=x))
    pieces = mended(log(x=x), Mending(missing="cut")).pieces
    assert [len(p["a"]) for p in pieces] == [600, 390]
    assert [len(p["b"]) for p in pieces] == [600, 390]
    assert all(np.isfinite(p["a"].values).all() for p in pieces)


def test_spikes_are_repaired_kept_or_refused() -> None:
    x = np.sin(T)
    x[500] += 40.0
    made = mended(log(x=x))
    assert made.pieces[0]["a"].values[500] == pytest.approx(np.sin(5.0), abs=1e-3)
    assert any("1 spike(s)" in str(f) for f in made.told)
    assert mended(log(x=x), Mending(spikes="keep")).pieces[0]["a"].values[500] == x[500]
    with pytest.raises(DataError, match=r"1 spike\(s\)"):
        mended(log(x=x), Mending(spikes="refuse"))


def test_a_dead_channel_is_refused_or_told() -> None:
    with pytest.raises(DataError, match=r"(?s)never changes.*Or go on with 'dead: warn'"):
        mended(log(x=np.full(1000, 0.3)))
    assert any("never changes" in str(f) for f in mended(log(x=np.full(1000, 0.3)), Mending(dead="warn")).told)


def test_pieces_too_short_are_left_out_and_counted() -> None:
    keep = (T < 0.5) | (T > 1.0)
    made = mended(log(T[keep]))
    assert len(made.pieces) == 1
    assert any("50 samples left out" in str(f) for f in made.told)
    scattered = np.concatenate([T[k : k + 50] for k in range(0, 1000, 100)])
    with pytest.raises(DataError, match="nothing is left of it"):
        mended(log(scattered))


def test_all_that_is_refused_comes_at_once() -> None:
    x = np.full(1000, np.nan)
    x[:990] = 1.0
    t = T.copy()
    t[5] = t[4]
    with pytest.raises(DataError) as caught:
        mended(log(t, x))
    assert {"repeat the one before", "not finite", "never changes"} <= {
        part for part in ("repeat the one before", "not finite", "never changes") if part in str(caught.value)
    }


def test_stamps_out_of_order_in_a_clock_that_goes_on_cost_these_samples_alone() -> None:
    """Two wrong stamps in a row used to leave a piece of one sample, which no filter takes."""
    for wrong in ({500: 490}, {500: 490, 501: 480}, {500: 700}, {500: 490, 700: 950}):
        t = T.copy()
        for at, other in wrong.items():
            t[at] = T[other]
        made = mended(log(t, np.sin(T)), Mending(backwards="cut", duplicates="drop"))
        (piece,) = made.pieces
        kept = np.delete(np.arange(1000), list(wrong))
        np.testing.assert_array_equal(piece["a"].t, T[kept])
        np.testing.assert_array_equal(piece["a"].values, np.sin(T)[kept])
        assert any(f"{len(wrong)} sample(s) left out whose stamps are out of order" in str(f) for f in made.told)


def test_a_clock_that_is_set_back_by_little_cuts_the_log() -> None:
    """What follows is late by five samples, so joining it would move the motion."""
    t = np.where(T >= 5.0, T - 0.05, T)
    made = mended(log(t), Mending(backwards="cut"))
    assert [len(p["a"]) for p in made.pieces] == [500, 500]


def test_pieces_between_resets_that_are_too_short_are_left_out_and_counted() -> None:
    t = np.where(T >= 5.0, T - 5.0, T)
    t[480:500] = T[:20]
    made = mended(log(t), Mending(backwards="cut"))
    assert [len(p["a"]) for p in made.pieces] == [480, 500]
    assert any("cut into 2 pieces where its clock was reset, and 20 samples left out" in str(f) for f in made.told)


X = 4.0 * np.sin(2.0 * T) + 0.1 * np.random.default_rng(0).normal(size=len(T))


def test_damaged_samples_are_on_the_line_between_their_neighbours():
    x = X.copy()
    x[300] = 1e6
    x[500:505] = 0.0
    assert damaged(x, 10.0).tolist() == [300, *range(500, 505)]
    y = repaired(Channel("force.q1", T, x, "N*m"), 10.0).values
    untouched = np.delete(np.arange(len(T)), [300, *range(500, 505)])
    assert np.array_equal(y[untouched], X[untouched])
    assert np.isclose(y[300], (X[299] + X[301]) / 2)
    assert np.allclose(np.diff(y[499:506], 2), 0.0, atol=1e-9)


def test_a_good_channel_is_the_same_object_and_kinds_can_be_left_alone():
    good = Channel("force.q1", T, X, "N*m")
    assert repaired(good, 10.0) is good
    x = X.copy()
    x[300], x[500:505] = 1e6, 0.0
    only = repaired(Channel("force.q1", T, x, "N*m"), 10.0, ("spike",)).values
    assert only[300] < 10.0 and np.all(only[500:505] == 0.0)
