"""Drive gains that nothing known carries, or that do not feel it, are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from identify.test_payload import IV, LOAD, driven, unknown
from veridyn.errors import IdentificationError
from veridyn.identify.estimate import identify
from veridyn.identify.payload import carrying


def test_gains_without_a_load_are_refused_by_name():
    with pytest.raises(
        IdentificationError, match=r"drive gains K1, K2, K3, K4: the measured side is zero[\s\S]*a load that is known"
    ):
        identify(unknown(), [driven(), driven(loaded=True)])


def test_gains_that_do_not_feel_what_is_known_are_refused_by_name():
    """A load of a gram in all that noise: the gains cannot be told from zero."""
    tree, rng = unknown(), np.random.default_rng(0)
    runs = [driven(rng, size=3.0), carrying(tree, driven(rng, size=3.0), "4", 1e-3 * LOAD)]
    with pytest.raises(
        IdentificationError, match=r"drive gain K1: it cannot be told from zero|instruments hardly resemble"
    ):
        identify(tree, runs, estimator="iv", settings=IV)
    with pytest.raises(
        IdentificationError, match=r"drive gain K1: it cannot be told from zero[\s\S]*more than 3 deviations"
    ):
        identify(tree, runs)
