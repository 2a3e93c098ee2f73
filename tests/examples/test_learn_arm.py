"""The example of learning by gradient: it comes to the answer of least squares."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest


def test_what_is_learned_is_the_answer_of_least_squares() -> None:
    """To 1e-6 of the numbers, and to the noise of the truth: 0.05 N·m on 6000 torques."""
    pytest.importorskip("torch")
    learned, solved, truth = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "learn_arm.py"))["main"]()
    np.testing.assert_allclose(learned, solved, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(learned, truth, rtol=0.02, atol=0.01)
