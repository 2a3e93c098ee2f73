import numpy as np
import pytest

from observe import textbook
from observe.builders import log_of, start_of, system_of
from observe.linear import Kalman
from veridyn.errors import DataError
from veridyn.observe.filters.run import run


@pytest.fixture(scope="module")
def estimates():
    case = textbook.oscillator()
    truth, y = case.simulate(400, np.random.default_rng(0))
    y[7, 0] = np.nan
    return truth, run(Kalman(), system_of(Kalman, case), log_of(case, y), start_of(case))


def test_states_by_name_with_bands_that_hold_their_share(estimates):
    truth, e = estimates
    low, high = e.band("s1", 0.9)
    assert np.array_equal(e.state("s1"), e.x[:, 1]) and (high - low) == pytest.approx(
        2 * 1.644854 * e.sigma[:, 1], rel=1e-6
    )
    assert np.mean((truth[:, 1] > low) & (truth[:, 1] < high)) == pytest.approx(0.9, abs=0.06)
    with pytest.raises(DataError, match=r"Kalman: there is no state 'speed'(.|\n)*Known: s0, s1, s2"):
        e.state("speed")
    with pytest.raises(DataError, match="not a probability"):
        e.band("s0", 95)


def test_spread_of_what_is_computed_from_the_state(estimates):
    _, e = estimates
    J = np.array([[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    s = e.spread(J)
    assert s[:, 1] == pytest.approx(2 * e.sigma[:, 1])
    assert s[:, 0] ** 2 == pytest.approx(e.P[:, 0, 0] + e.P[:, 2, 2] + 2 * e.P[:, 0, 2])
    assert e.spread(np.tile(J, (400, 1, 1))) == pytest.approx(s)


def test_summary_tells_states_readings_and_consistency(estimates):
    text = estimates[1].summary()
    assert "Kalman: 400 samples from 0 s to 39.9 s" in text and "399 used, 1 not finite" in text
    assert "NIS per reading" in text and "s2" in text
    assert estimates[1].last.t == pytest.approx(39.9)
