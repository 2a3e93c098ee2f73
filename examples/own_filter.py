"""A filter on one's own equations: a car that coasts down, its drag estimated with the state, sample by sample."""

import numba
import numpy as np

from veridyn import filters


@numba.njit
def f(x, u, t):
    """Speed v and drag c: v̇ = −c v², ċ = 0."""
    return np.array([-x[1] * x[0] * x[0], 0.0])


@numba.njit
def F(x, u, t):
    return np.array([[-2.0 * x[1] * x[0], -x[0] * x[0]], [0.0, 0.0]])


@numba.njit
def h(x, u, t):
    return x[:1].copy()


@numba.njit
def H(x, u, t):
    return np.array([[1.0, 0.0]])


def main() -> tuple[float, float]:
    """Stream a coast-down of 60 s and return the drag that was found, with its deviation."""
    drag, rng = 4e-4, np.random.default_rng(1)
    t = np.arange(0.0, 60.0, 0.05)
    speed = 40.0 / (1.0 + 40.0 * drag * t)  # the solution of v̇ = −c v²
    car = filters.Continuous(
        ("speed", "drag"), ("speed",), f, h, [1e-4, 0.0], [0.1**2], F, H, limits={"drag": (0.0, 2e-3)}
    )
    stream = filters.Stream(filters.EKF(), car, filters.Belief(np.array([38.0, 1e-3]), np.array([4.0, 1e-6])))
    for time, reading in zip(t, speed + 0.1 * rng.normal(size=len(t)), strict=True):
        step = stream.step(float(time), [reading])
    found, sigma = step.belief.x[1], float(np.sqrt(step.belief.P[1, 1]))
    print(f"drag {found:.2e} ± {sigma:.1e} 1/m, true {drag:.2e}")
    return float(found), sigma


if __name__ == "__main__":
    main()
