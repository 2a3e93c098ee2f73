"""What the filters accept, and the words in which they refuse."""

import numpy as np
import pytest

from veridyn.errors import DataError
from veridyn.signals.samples import as_rate, as_samples


def test_finite_numbers_pass_unchanged():
    x = np.arange(6.0).reshape(3, 2)
    assert np.array_equal(as_samples(x.tolist()), x)


def test_not_a_number_is_named_with_its_place():
    x = np.zeros((5, 3))
    x[4, 2] = np.nan
    with pytest.raises(DataError, match=r"1 others, the first at sample 4 in column 2 \(nan\)"):
        as_samples(x, where="y")


def test_infinity_counts_as_not_a_number():
    with pytest.raises(DataError, match=r"sample 1 \(inf\)"):
        as_samples([0.0, np.inf])


def test_too_short_and_scalar():
    with pytest.raises(DataError, match="at least 4 samples, found 3"):
        as_samples([1, 2, 3], least=4)
    with pytest.raises(DataError, match="it is one number"):
        as_samples(3.0)


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_rate_must_be_positive_and_finite(rate):
    with pytest.raises(DataError, match="sampling rate is not usable"):
        as_rate(rate)
