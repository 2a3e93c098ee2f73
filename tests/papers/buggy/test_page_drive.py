"""Fixes of a receiver and bands of an observer as layers of a scene."""

import numpy as np

from veridyn.papers.buggy.page_drive import CROSS, RING, band_layer, fixes_layer


def test_a_fix_appears_when_it_is_heard():
    heard, fixes = np.array([0.0, 1.0, 2.0]), np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 1.0, 0.0]])
    layer = fixes_layer(np.array([0.0, 1.5, 2.0]), heard, fixes, "GPS")
    assert layer.points.shape == (3, 12, 3) and len(layer.segments) == 6
    middles = layer.points.reshape(3, 3, 4, 3).mean(axis=2)
    np.testing.assert_allclose(middles, [fixes[[0, 0, 0]], fixes[[0, 1, 1]], fixes])
    for a, b in layer.segments:
        np.testing.assert_allclose(np.linalg.norm(layer.points[:, a] - layer.points[:, b], axis=1), 2.0 * CROSS)


def test_a_band_is_an_ellipse_of_so_many_deviations():
    """(x − p)ᵀ C⁻¹ (x − p) is the square of the deviations at every corner."""
    C = np.array([[[4.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 9.0]]])
    p = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.5]])
    layer = band_layer(p, C, 3.0, "band")
    assert layer.points.shape == (2, RING, 3)
    d = layer.points[:, :, :2] - p[:, None, :2]
    np.testing.assert_allclose(np.einsum("nki,nij,nkj->nk", d, np.linalg.inv(C), d), 9.0)
    np.testing.assert_allclose(layer.points[:, :, 2], p[:, 2:] * np.ones(RING))
