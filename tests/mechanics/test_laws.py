"""Laws with constants: closed forms, energies by differences, derivatives at standstill, and constants as inputs of kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.mechanics.derivatives import inverse_derivatives
from veridyn.mechanics.energy import energy
from veridyn.mechanics.engine import signature
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.mechanics.regressor import regressor
from veridyn.model.elements import Element
from veridyn.model.joint import Body
from veridyn.model.motion import Motion
from veridyn.model.tree import Tree

V = np.linspace(-2.0, 2.0, 41)


def one(kind: str, **constants: float) -> Tree:
    """One element of value 3 on a sliding mass."""
    element = Element(kind=kind, on={"x": 1.0}, value=3.0, name="e", constants=constants)
    return Tree.build(
        [Body("x", joint="sliding")], inertia={"x": [0.0] * 9 + [1.0]}, gravity=(0, 0, 0), elements=[element]
    )


def moving(q: np.ndarray, qd: np.ndarray) -> Motion:
    return Motion(np.arange(float(len(q))), q[:, None], qd[:, None], np.zeros((len(q), 1)))


@pytest.mark.parametrize("exponent", [0.7, 1.0, 2.0, 3.5])
def test_stribeck_with_an_exponent(exponent: float) -> None:
    tree = one("stribeck", speed=0.4, exponent=exponent)
    exact = 3.0 * np.sign(V) / (1.0 + np.abs(V / 0.4) ** exponent)
    for engine in ("numpy", "compiled"):
        assert inverse_dynamics(tree, moving(V, V), engine=engine)[:, 0] == pytest.approx(exact, rel=1e-13, abs=1e-15)


def test_tanh_friction_far_beyond_its_speed() -> None:
    """Rates of thousands of times the speed: 1 to the last digit, and derivatives are numbers."""
    tree = one("tanh_friction", speed=1e-3)
    v = np.array([-1e3, -1.0, -1e-3, 0.0, 1e-6, 1e-3, 1.0, 1e3])
    slope = 3.0 / 1e-3 / np.cosh(np.clip(v / 1e-3, -300, 300)) ** 2
    for engine in ("numpy", "compiled"):
        assert inverse_dynamics(tree, moving(v, v), engine=engine)[:, 0] == pytest.approx(
            3.0 * np.tanh(v / 1e-3), abs=1e-14
        )
        got = inverse_derivatives(tree, moving(v, v), engine=engine).by_qd[:, 0, 0]
        assert got == pytest.approx(slope, rel=1e-9, abs=1e-12)


def test_derivatives_at_standstill_are_numbers() -> None:
    for kind, constants in (("stribeck", {"speed": 0.1, "exponent": 1.5}), ("tanh_friction", {"speed": 0.1})):
        for engine in ("numpy", "compiled"):
            found = inverse_derivatives(one(kind, **constants), moving(np.zeros(2), np.zeros(2)), engine=engine)
            assert np.isfinite(found.by_qd).all()


@pytest.mark.parametrize(
    ("kind", "constants"),
    [("spring", {"rest": 0.3}), ("cubic", {"rest": -0.2}), ("bump_stop", {"gap": 0.5}), ("dead_zone", {"gap": 0.5})],
)
def test_elastic_laws_are_slopes_of_their_energy(kind: str, constants: dict[str, float]) -> None:
    tree, h = one(kind, **constants), 1e-6
    motion = moving(V + 0.013, 0.0 * V)
    up, down = (energy(tree, replace(motion, q=motion.q + way * h)).elastic for way in (1.0, -1.0))
    assert inverse_dynamics(tree, motion)[:, 0] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6)


def test_constants_are_inputs_of_one_kernel() -> None:
    """Another value of a constant needs no other kernel, and gives another column."""
    a, b = one("stribeck", speed=0.4), one("stribeck", speed=0.2)
    assert signature(a) == signature(b)
    assert signature(a) != signature(one("stribeck", speed=0.4, exponent=2.0))
    for tree, speed in ((a, 0.4), (b, 0.2), (a.with_constants({"e.speed": 0.2}), 0.2)):
        exact = np.sign(V) / (1.0 + (V / speed) ** 2)
        assert regressor(tree, moving(V, V), engine="compiled")[:, 0, -1] == pytest.approx(exact, rel=1e-13)


def test_constants_are_listed_with_unit_and_bounds() -> None:
    (c,) = one("bump_stop", gap=0.5).constants
    assert (c.name, c.value, c.unit, c.low, c.high) == ("e.gap", 0.5, "m", -np.inf, np.inf)
    (speed,) = one("tanh_friction", speed=0.5).constants
    assert (speed.unit, speed.low) == ("m/s", 0.0)
    with pytest.raises(ModelError, match=r"there is no constant 'e\.spead'"):
        one("tanh_friction", speed=0.5).with_constants({"e.spead": 1.0})
    with pytest.raises(ModelError, match=r"out of bounds"):
        one("tanh_friction", speed=0.5).with_constants({"e.speed": -1.0})
