"""What a log has of one joint: the band of its motion, one clock for all, and samples at which it moves."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import DataError
from veridyn.identify.flexible.recording import dahl_state, joint_recording, largest_speed, samples_of, steady
from veridyn.model.experiment import Channel

T = np.arange(0.0, 20.0, 0.004)
ANGLE = 0.3 * np.sin(2 * np.pi * 0.5 * T)


def recorded(noise: float = 0.0) -> vd.Experiment:
    rng = np.random.default_rng(5)
    values = {"q.j_motor": ANGLE + noise * rng.normal(size=len(T)), "q.j": ANGLE - 1e-3, "force.j_motor": 5.0 * ANGLE}
    return vd.Experiment.from_arrays(T, values, {"q.j_motor": "rad", "q.j": "rad", "force.j_motor": "N*m"})


@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-3])
def test_the_band_follows_the_motion_and_not_its_noise(noise: float):
    """Five times 0.5 Hz, and the width of a line that a window of 20 s makes, 0.1 Hz."""
    assert joint_recording(recorded(noise), "j").band == pytest.approx(2.5, abs=0.6)


def test_samples_are_the_derivatives_of_a_sine():
    r = joint_recording(recorded(), "j")
    w = 2 * np.pi * 0.5
    x = samples_of(r, 2.0, 5.0, dead_zone=0.1)
    inside = (x.t > 2.0) & (x.t < 18.0)  # the ends of a log in motion are less exact
    t = x.t[inside]
    np.testing.assert_allclose(x.speed[inside], 0.3 * w * np.cos(w * t), atol=1e-4)
    np.testing.assert_allclose(x.acceleration[inside], -(w**2) * 0.3 * np.sin(w * t), atol=1e-3)
    np.testing.assert_allclose(x.force[0][inside], (5.0 + 2.0 * w**2) * 0.3 * np.sin(w * t), atol=2e-3)
    np.testing.assert_allclose(x.deflection, 1e-3, atol=1e-9)
    assert np.abs(x.speed).min() > 0.1
    assert largest_speed([r]) == pytest.approx(0.3 * w, rel=0.03)  # its ends are in motion


def test_dry_friction_builds_up_and_stays():
    """Dahl's law in closed form, 1 − e^(−x/δ) on the way forward, kept at standstill, then back, as means over the steps on either side; a
    start elsewhere is forgotten."""
    out, back = np.linspace(0.0, 0.5, 301), np.linspace(0.5, 0.2, 201)
    path = np.concatenate([out, np.full(50, 0.5), back])
    z, left = dahl_state(path, 0.1)
    turned = 1.0 - np.exp(-5.0)

    def means(x: np.ndarray, law) -> np.ndarray:
        fine = np.linspace(x[:-1], x[1:], 401)  # of each step
        steps = np.trapezoid(law(fine), dx=1.0 / 400, axis=0)
        return 0.5 * (steps[1:] + steps[:-1])

    forward, backward = lambda x: 1.0 - np.exp(-x / 0.1), lambda x: -1.0 + (turned + 1.0) * np.exp((x - 0.5) / 0.1)
    np.testing.assert_allclose(z[1:300], means(out, forward), atol=1e-6)
    np.testing.assert_allclose(z[301:350], turned, atol=1e-12)
    np.testing.assert_allclose(z[352:-1], means(back, backward), atol=1e-6)
    np.testing.assert_allclose(left[[150, 325]], [means(out, lambda x: np.exp(-x / 0.1))[149], np.exp(-5.0)], rtol=1e-6)


@pytest.mark.parametrize("late", [0.0, 0.3, 0.7])
def test_dry_friction_turns_when_the_motor_does(late):
    """Wherever that is between two samples: at most half a step earlier or later."""
    t = np.arange(-200, 200) + late
    z, _ = dahl_state(-(t**2), 1e-9)
    turned = len(t) - 0.5 - float(np.sum(1.0 - z)) / 2.0  # the place of a step from +1 to −1
    assert abs(turned - (200.0 - late)) <= 0.5 + 1e-9


def test_noise_is_no_turn_of_a_motor():
    """A walk of ±1 stands still within a noise of 1; a way out and back turns once, at its end, and is 2 shorter there and back."""
    np.testing.assert_array_equal(steady(np.array([0.0, 1.0, -1.0, 1.0, 0.0]), 1.0), np.zeros(5))
    x = np.array([0.0, 2.0, 4.0, 6.0, 4.0, 2.0, 0.0])
    np.testing.assert_array_equal(steady(x, 1.0), [0.5, 2.0, 4.0, 5.0, 4.0, 2.0, 0.5])


def test_channels_of_other_clocks_are_brought_to_one():
    log = recorded()
    slow = np.arange(0.5, 19.0, 0.01)
    other = Channel("q.j", slow, np.interp(slow, T, ANGLE) - 1e-3, "rad")
    r = joint_recording(vd.Experiment({**log.channels, "q.j": other}), "j")
    np.testing.assert_allclose(r.motor - r.link, 1e-3, atol=1e-4)
    late = Channel("q.j", slow + 100.0, other.values, "rad")
    with pytest.raises(DataError, match="less than a second in common"):
        joint_recording(vd.Experiment({**log.channels, "q.j": late}), "j")
