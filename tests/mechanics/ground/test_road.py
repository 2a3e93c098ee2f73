"""Roads against their own derivatives, their closed forms, and the spectra that ISO 8608 asks for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

from veridyn.errors import ModelError
from veridyn.mechanics.compiled import compiled
from veridyn.mechanics.ground.road import (
    CLASSES,
    Bump,
    Flat,
    Kerb,
    Plane,
    Profile,
    Road,
    Together,
    isotropic_coherence,
    road_at,
    rough_road,
    roughness,
)


def rough(seed: int = 1, **options: float) -> Profile:
    return rough_road("C", np.random.default_rng(seed), **{"length": 200.0, **options})


ROADS = {
    "flat": Flat(),
    "plane": Plane(0.05, -0.02),
    "bump": Bump(at=10.0, length=3.0, rise=0.08),
    "left bump": Bump(at=10.0, length=3.0, rise=-0.05, left=2.0, right=0.0),
    "step": Kerb(at=12.0, rise=0.1, ramp=0.3, right=-1.0),
    "rough": rough(),
    "rough from a start": rough(start=8.0, ramp=5.0),
    "five lines": rough(lines=5, track=0.7),
    "sum": Plane(0.01) + Bump(at=11.0, length=2.0, rise=0.04) + rough(2),
}


@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS.keys())
def test_slope_is_the_derivative_of_height(road: Road) -> None:
    """Central differences over 2 µm: rounding 1e-10, curvature far less, and a kink would show."""
    rng = np.random.default_rng(3)
    x, y, h = rng.uniform(-5.0, 30.0, 4000), rng.uniform(-2.5, 2.5, 4000), 1e-6
    along, across = road.slope(x, y)
    assert np.allclose((road.height(x + h, y) - road.height(x - h, y)) / (2.0 * h), along, atol=1e-5)
    assert np.allclose((road.height(x, y + h) - road.height(x, y - h)) / (2.0 * h), across, atol=1e-5)


@pytest.mark.parametrize("road", ROADS.values(), ids=ROADS.keys())
def test_height_and_slope_are_continuous(road: Road) -> None:
    """Over steps of 10 µm the slope moves by no more than curvature allows; the sharpest here is a side of 0.1 m: 6·z/EDGE² = 60/m."""
    path = np.linspace(9.9, 13.1, 320001)
    for x, y in ((path, 0.31), (10.5, path - 11.5)):
        assert np.abs(np.diff(road.height(x, y))).max() < 2e-5
        assert max(np.abs(np.diff(slope)).max() for slope in road.slope(x, y)) < 1e-3


def test_closed_forms() -> None:
    assert not Flat().height(np.linspace(-9.0, 9.0, 7)).any()
    assert Plane(0.1, 0.2).height(2.0, -3.0) == pytest.approx(-0.4)
    bump = Bump(at=1.0, length=2.0, rise=0.1)
    assert bump.height([0.5, 1.0, 1.5, 2.0, 3.0, 3.5]) == pytest.approx([0.0, 0.0, 0.05, 0.1, 0.0, 0.0], abs=1e-15)
    assert bump.slope(1.5)[0] == pytest.approx(math.pi * 0.05)
    one_side = Bump(at=1.0, length=2.0, rise=0.1, left=2.0, right=0.0)
    assert one_side.height(2.0, [-0.2, -0.1, -0.05, 0.0, 2.0, 2.05, 2.1]) == pytest.approx(
        [0, 0, 0.05, 0.1, 0.1, 0.05, 0]
    )
    step = Kerb(at=1.0, rise=0.12, ramp=0.5)
    assert step.height([0.9, 1.25, 1.5, 99.0]) == pytest.approx([0.0, 0.06, 0.12, 0.12])


def test_sums_add_and_broadcast_and_may_be_called_from_compiled_code() -> None:
    parts = (ROADS["plane"], ROADS["left bump"], ROADS["step"], ROADS["rough"])
    x, y = np.linspace(8.0, 14.0, 50)[:, None], np.linspace(-1.0, 1.0, 7)
    both = Together(parts)
    assert both.height(x, y).shape == (50, 7)
    assert np.allclose(both.height(x, y), sum(part.height(x, y) for part in parts), rtol=1e-14)
    assert Together(()).height(1.0) == 0.0

    @compiled
    def climb(r: np.ndarray, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += road_at(r, 0.1 * i, 0.2)[1]
        return total

    assert climb(both.packed, 100) == pytest.approx(both.slope(0.1 * np.arange(100), 0.2)[0].sum())


def test_no_place_is_no_height_and_far_places_are_on_the_road() -> None:
    road = ROADS["sum"].packed
    assert all(math.isnan(value) for place in ((math.nan, 0.0), (0.0, math.inf)) for value in road_at(road, *place))
    assert np.isfinite([road_at(road, x, y) for x in (-1e9, 1e15) for y in (-1e6, 1e6)]).all()


def test_a_profile_goes_through_its_samples_and_repeats() -> None:
    profile = rough()
    x = np.arange(profile.heights.shape[1]) * profile.spacing
    assert np.allclose(profile.height(x, -0.75), profile.heights[0], atol=1e-12)
    assert np.allclose(profile.slope(x, 0.75)[0], profile.slopes[1], atol=1e-9)
    assert np.allclose(profile.height(x + profile.length, 9.0), profile.height(x - profile.length, 0.75), atol=1e-9)
    assert profile.height(x, 0.0) == pytest.approx(profile.heights.mean(axis=0))
    started = rough(start=50.0, ramp=10.0)
    assert not started.height(np.linspace(-10.0, 50.0, 99)).any()
    assert np.array_equal(started.height(x[x > 60.0]), profile.height(x[x > 60.0]))


def test_the_same_generator_makes_the_same_road() -> None:
    assert np.array_equal(rough(5).heights, rough(5).heights)
    assert not np.array_equal(rough(5).heights, rough(6).heights)


@pytest.mark.parametrize("kind", ["A", "C", "E"])
def test_spectrum_of_one_line_is_the_class(kind: str) -> None:
    """A periodogram over the whole period, at places that are not samples: each wave has its amplitude, cubics err by < 0.1 %."""
    length = 500.0
    road = rough_road(kind, np.random.default_rng(9), length=length, lines=1)
    count = 40000
    z = road.height(0.0123 + np.arange(count) * length / count)
    spectrum = 2.0 * length * np.abs(np.fft.rfft(z) / count) ** 2
    n = np.arange(spectrum.size) / length
    inside = (n >= 0.011) & (n <= 2.83)
    level = {"A": 16e-6, "C": 256e-6, "E": 4096e-6}[kind]  # ISO 8608, geometric means at 0.1 cycles/m
    assert np.allclose(spectrum[inside], level * (n[inside] / 0.1) ** -2.0, rtol=2e-3)
    assert spectrum[~inside].sum() < 1e-6 * spectrum.sum()
    assert z.std() == pytest.approx(
        math.sqrt(level * 0.01 * (1.0 / 0.011 - 1.0 / 2.83)), rel=0.1
    )  # sum against integral


def test_spectra_and_coherence_of_two_tracks() -> None:
    """Averages over 40 roads and a band of 20 waves: 800 values, whose mean is known to about 3 σ = 11 %."""
    length, track = 200.0, 1.5
    auto, cross = np.zeros((2, 4)), np.zeros(4)
    bands = [(0.05, 0.15), (0.15, 0.25), (0.4, 0.5), (1.9, 2.0)]
    for seed in range(40):
        road = rough_road("B", np.random.default_rng(seed), length=length, track=track)
        waves = np.fft.rfft(road.heights, axis=1) / road.heights.shape[1]
        n = np.arange(waves.shape[1]) / length
        for k, (low, high) in enumerate(bands):
            inside = (n >= low) & (n < high)
            scale = 2.0 * length / roughness(n[inside], "B")
            auto[:, k] += (scale * np.abs(waves[:, inside]) ** 2).mean(axis=1) / 40.0
            cross[k] += (scale * (waves[0, inside].conj() * waves[1, inside]).real).mean() / 40.0
    assert np.allclose(auto, 1.0, atol=0.11)
    expected = [isotropic_coherence(np.linspace(low, high, 50), track).mean() for low, high in bands]
    assert np.allclose(cross, expected, atol=0.11)
    assert expected[0] > 0.5 and expected[-1] < 1e-3


@pytest.mark.parametrize("waviness", [2.0, 2.5])
def test_coherence_is_that_of_an_isotropic_surface(waviness: float) -> None:
    """∫ (n² + m²)^−(w+1)/2 cos(2π m d) dm over the same without the cosine, by quadrature."""
    for n, distance in ((0.05, 1.5), (0.2, 1.5), (0.4, 0.8)):

        def surface(m: float, n: float = n) -> float:
            return (n * n + m * m) ** (-0.5 * (waviness + 1.0))

        there = quad(surface, 0.0, np.inf, weight="cos", wvar=2.0 * math.pi * distance)[0]
        assert isotropic_coherence(n, distance, waviness) == pytest.approx(
            there / quad(surface, 0.0, np.inf)[0], rel=1e-6
        )
    assert isotropic_coherence(0.3, 0.0) == 1.0


def test_classes_and_levels() -> None:
    assert list(CLASSES) == list("ABCDEFGH")
    assert CLASSES["A"] == 16e-6 and CLASSES["D"] == pytest.approx(1024e-6)
    assert roughness([0.1, 0.2], 64e-6) == pytest.approx([64e-6, 16e-6])
    rng = np.random.default_rng
    same = rough_road(256e-6, rng(1), length=200.0)
    assert np.array_equal(same.heights, rough(1).heights)


def test_faults_are_named_at_once() -> None:
    with pytest.raises(ModelError) as caught:
        rough_road("Z", np.random.default_rng(0), length=50.0, lines=0, waviness=-1.0)
    assert len(caught.value.faults) == 4 and "90.91 m" in str(caught.value)
    with pytest.raises(ModelError, match="roughness"):
        rough_road(-1.0, np.random.default_rng(0), band=(2.0, 1.0))
    with pytest.raises(ModelError, match="2 faults"):
        Bump(at=0.0, length=0.0, rise=0.1, left=0.0, right=1.0)
    with pytest.raises(ModelError, match="ramp"):
        Kerb(at=0.0, rise=0.1, ramp=-1.0)
    with pytest.raises(ModelError, match="grow over"):
        rough(start=3.0)
    with pytest.raises(ModelError, match="spacing") as caught:
        Profile(np.zeros((2, 5)), np.zeros((2, 4)), spacing=0.0, track=1.5)
    assert "one slope for each height" in str(caught.value)
