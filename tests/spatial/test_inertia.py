"""Ten parameters against clouds of point masses, whose moments are sums, and against what physics allows."""

import numpy as np
import pytest

from strangers.random_trees import random_rotation
from veridyn.spatial.inertia import (
    INERTIAL,
    INERTIAL_UNITS,
    broken_law,
    cross_matrix,
    from_centre,
    inertia_matrix,
    move_matrix,
    moved,
    pseudo_inertia,
    six,
    to_centre,
)

SEEDS = range(10)


def cloud(seed: int, points: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 2.0, points), rng.standard_normal((points, 3)) + rng.standard_normal(3)


def ten(m: np.ndarray, r: np.ndarray) -> np.ndarray:
    """XX = Σ m (y² + z²), XY = −Σ m x y, MX = Σ m x, and so on."""
    x, y, z = r.T
    J = [m @ (y * y + z * z), -m @ (x * y), -m @ (x * z), m @ (x * x + z * z), -m @ (y * z), m @ (x * x + y * y)]
    return np.array([*J, m @ x, m @ y, m @ z, m.sum()])


def test_order_and_units() -> None:
    assert INERTIAL == ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")
    assert len(INERTIAL_UNITS) == 10
    assert INERTIAL_UNITS[0] == "kg*m^2"
    assert INERTIAL_UNITS[6] == "kg*m"
    assert INERTIAL_UNITS[9] == "kg"


def test_six_and_inertia_matrix_are_inverse() -> None:
    X = np.arange(1.0, 11.0)
    J = np.array(inertia_matrix(X))
    assert J.tolist() == [[1, 2, 3], [2, 4, 5], [3, 5, 6]]
    assert six(J).tolist() == X[:6].tolist()
    assert inertia_matrix(("xx", "xy", "xz", "yy", "yz", "zz"))[2] == ("xz", "yz", "zz")


def test_cross_matrix() -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 3))
    assert cross_matrix(a) @ b == pytest.approx(np.cross(a, b), abs=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_from_centre_is_the_sum_over_the_points(seed: int) -> None:
    m, r = cloud(seed)
    centre = m @ r / m.sum()
    about = ten(m, r - centre)[:6]
    assert from_centre(m.sum(), centre, about) == pytest.approx(ten(m, r), rel=1e-13, abs=1e-13)
    assert from_centre(m.sum(), centre, inertia_matrix(about)) == pytest.approx(ten(m, r), rel=1e-13, abs=1e-13)
    mass, back, J = to_centre(ten(m, r))
    assert mass == pytest.approx(m.sum(), rel=1e-13) and back == pytest.approx(centre, rel=1e-12, abs=1e-13)
    assert six(J) == pytest.approx(about, rel=1e-10, abs=1e-11)  # rounding of the larger moments about the origin


@pytest.mark.parametrize("seed", SEEDS)
def test_moved_is_the_sum_over_the_moved_points(seed: int) -> None:
    m, r = cloud(seed)
    rng = np.random.default_rng(1000 + seed)
    R, p = random_rotation(rng), rng.standard_normal(3)
    expected = ten(m, r @ R.T + p)
    assert moved(ten(m, r), R, p) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert move_matrix(R, p) @ ten(m, r) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_moves_compose() -> None:
    rng = np.random.default_rng(5)
    (R1, p1), (R2, p2) = ((random_rotation(rng), rng.standard_normal(3)) for _ in range(2))
    together = move_matrix(R1 @ R2, R1 @ p2 + p1)
    assert move_matrix(R1, p1) @ move_matrix(R2, p2) == pytest.approx(together, abs=1e-13)
    assert move_matrix(R1.T, -R1.T @ p1) @ move_matrix(R1, p1) == pytest.approx(np.eye(10), abs=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_pseudo_inertia_is_the_sum_of_outer_products(seed: int) -> None:
    """Σ m (r, 1)(r, 1)ᵀ: positive for five points in general position, with n positive eigenvalues for n < 4 points."""
    m, r = cloud(seed)
    h = np.column_stack([r, np.ones(len(m))])
    P = pseudo_inertia(ten(m, r))
    assert pytest.approx(h.T @ (m[:, None] * h), rel=1e-12, abs=1e-12) == P
    assert np.linalg.eigvalsh(P)[0] > 0
    for n in (1, 2, 3):
        eigenvalues = np.linalg.eigvalsh(pseudo_inertia(ten(m[:n], r[:n])))
        assert (eigenvalues > -1e-12 * eigenvalues[-1]).all()
        assert (eigenvalues > 1e-12 * eigenvalues[-1]).sum() == n


@pytest.mark.parametrize("points", [1, 2, 3, 4, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_points_break_no_law(seed: int, points: int) -> None:
    """One point, a rod (two) and a plate (three) sit on the edge of what is possible and are allowed."""
    assert broken_law(ten(*cloud(seed, points))) is None


def test_no_body_at_all_breaks_no_law() -> None:
    assert broken_law(np.zeros(10)) is None


def test_negative_mass() -> None:
    assert broken_law([1, 0, 0, 1, 0, 1, 0, 0, 0, -0.5]) == "the mass is -0.5 kg, below zero"


def test_first_moment_without_mass() -> None:
    law = broken_law([1, 0, 0, 1, 0, 1, 0.25, 0, 0, 0.0])
    assert law == "first moments (0.25, 0, 0) kg*m belong to a mass of 0 kg"


def test_negative_principal_moment() -> None:
    """1 kg at 2 m along x asks for YY = ZZ = 4; with 3 they are −1 about the centre."""
    law = broken_law([0.5, 0, 0, 3.0, 0, 3.0, 2.0, 0, 0, 1.0])
    assert law == "principal moments about the centre of mass are (-1, -1, 0.5) kg*m^2, and -1 is below zero"


def test_triangle_inequality() -> None:
    law = broken_law(from_centre(2.0, [0.1, -0.2, 0.3], np.diag([1.0, 1.0, 2.5])))
    assert law is not None
    assert law.startswith("principal moments about the centre of mass are (1, 1, 2.5) kg*m^2")
    assert law.endswith("1 + 1 < 2.5 breaks the triangle inequality")


@pytest.mark.parametrize("seed", range(60))
def test_broken_law_agrees_with_the_pseudo_inertia(seed: int) -> None:
    """Possible exactly when the pseudo-inertia is positive; disturbed clouds of points fall on both sides."""
    rng = np.random.default_rng(seed)
    m, r = cloud(seed)
    X = ten(m, r)
    X = X + rng.standard_normal(10) * np.abs(X) * rng.choice([0.0, 0.1, 0.5])
    lowest = np.linalg.eigvalsh(pseudo_inertia(X))[0]
    assert (broken_law(X) is None) == (lowest > 0)
