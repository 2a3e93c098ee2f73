"""A mechanism made ready."""

from __future__ import annotations

import numpy as np
import pytest

from strangers.natural_mechanisms import fourbar
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.natural.system import system_of


def test_everything_has_the_size_of_the_coordinates() -> None:
    system = system_of(fourbar())
    assert system.n == 5 == len(system.coordinates) == len(system.guess)
    assert system.mass.shape == (5, 5)
    assert system.constraints.m == 4
    assert system.select(["phi", "1.x"]).tolist() == [4, 0]
    # Appendix A.3.1 of paper 003: thirds and sixths of the masses of uniform bars.
    expected = np.zeros((5, 5))
    expected[:2, :2] = (2 / 3 + 8 / 3) * np.eye(2)
    expected[2:4, 2:4] = (8 / 3 + 5 / 3) * np.eye(2)
    expected[:2, 2:4] = expected[2:4, :2] = 8 / 6 * np.eye(2)
    assert system.mass == pytest.approx(expected, abs=1e-14)
    assert system.forces.weight[:5] == pytest.approx(9.806 * np.array([0, -5.0, 0, -6.5, 0]))


def test_wrong_vectors_and_names() -> None:
    system = system_of(fourbar())
    with pytest.raises(DataError, match=r"(?s)no pose of this mechanism.*\(5,\) finite, found shape \(4,\)"):
        system.vector(np.zeros(4), "pose")
    with pytest.raises(DataError, match="values that are not finite"):
        system.vector(np.full(5, np.nan), "pose")
    with pytest.raises(ModelError, match="no coordinate 'x'"):
        system.select(["x"])
