"""The share of validation samples that the fit did not use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from studies.small_arm import small_study
from veridyn.studies.held_out import held_out_share


def test_the_share_is_that_of_the_samples_that_are_not_in_the_training_motions() -> None:
    study = small_study()
    a, b = study.training, study.validation
    n = len(a)
    assert held_out_share([a], [b]) == 1.0
    assert held_out_share([a], [a]) == 0.0
    assert held_out_share([a[: n // 2]], [a[n // 2 :]]) == 1.0
    assert held_out_share([a[: n // 2]], [a[n // 4 :]]) == pytest.approx(1.0 - (n // 2 - n // 4) / (n - n // 4))
    assert held_out_share([a, b], [a, b]) == 0.0


def test_the_same_path_recorded_again_is_held_out() -> None:
    """Exactly the same coordinates on the same clock, but forces with noise of their own."""
    a = small_study().training
    assert a.forces is not None
    again = replace(a, forces=a.forces + 0.01 * np.random.default_rng(0).normal(size=a.forces.shape))
    assert held_out_share([a], [again]) > 0.99
