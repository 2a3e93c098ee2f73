"""What a prior makes of z: values within bounds, and the bounds of z."""

import numpy as np
import pytest

from veridyn.model.parameter_fit import ParameterGuess


def test_a_parameter_moves_by_deviations_or_by_factors() -> None:
    plain = ParameterGuess(value=2.0, sigma=0.5, upper=2.75)
    assert plain.at(1.0) == 2.5 and plain.at(3.0) == 2.75 and plain.spread(2.5) == 0.5
    assert plain.ends == (-np.inf, 1.5)
    factor = ParameterGuess(value=2.0, sigma=0.5, lower=1.0, positive=True)
    assert factor.at(1.0) == pytest.approx(2.0 * np.exp(0.25)) and factor.spread(4.0) == 1.0
    assert factor.at(factor.ends[0]) == pytest.approx(1.0) and factor.ends[1] == np.inf
