"""Many machines of one model: what is drawn comes back, a heavy one is named, and bad data do not stop the others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from studies.small_arm import log_of, small_arm
from veridyn.errors import DataError, IdentificationError, IdentificationWarning
from veridyn.identify.fleet import Fleet, apart, identify_fleet, spread_of, take_variation
from veridyn.model.motion import Motion
from veridyn.signals.motion import Signals, motion

COUNT, BETWEEN, HEAVY = 14, 0.06, "arm 9"


def drawn() -> tuple[dict[str, Motion], np.ndarray]:
    """Arms whose parameters differ by 6 %, one with 60 % more damping at its second joint, and their true values."""
    rng, machine = np.random.default_rng(21), small_arm()
    motions, truths = {}, []
    for k in range(COUNT):
        values = machine.parameters.values * (1.0 + BETWEEN * rng.normal(size=len(machine.parameters.values)))
        name = f"arm {k}"
        if name == HEAVY:
            values[machine.parameters.index("h_q2")] *= 1.6
        one = machine.with_parameters(values)
        motions[name] = motion(machine, log_of(one, rng, name, 4.0), Signals(lowpass=20.0))
        truths.append(values)
    return motions, np.array(truths)


@pytest.fixture(scope="module")
def found() -> tuple[Fleet, np.ndarray]:
    motions, truths = drawn()
    return identify_fleet(small_arm(), motions), truths


def test_values_belong_to_their_machines(found: tuple[Fleet, np.ndarray]) -> None:
    fleet, truths = found
    fit = fleet.fits["arm 3"]
    true = np.array([fit.base.reduce(values) for values in truths])
    z = (fleet.values - true) / fleet.sigma
    assert fleet.machines == tuple(f"arm {k}" for k in range(COUNT))
    assert np.mean(np.abs(z) < 3.0) > 0.9


def test_the_spread_is_that_of_the_draw(found: tuple[Fleet, np.ndarray]) -> None:
    """Friction and damping alone, each a parameter of its own: 6 % of the mean, within 3 standard errors of 13 draws."""
    fleet, _ = found
    own = [n for n in fleet.names if n.startswith(("h_", "fs_"))]
    shares = [fleet.distribution[n].between / fleet.distribution[n].mean for n in own]
    assert len(own) == 4
    assert np.sqrt(np.mean(np.square(shares))) == pytest.approx(BETWEEN, rel=3.0 / np.sqrt(2 * 4 * (COUNT - 1)))


def test_the_odd_machine_is_named(found: tuple[Fleet, np.ndarray]) -> None:
    fleet, _ = found
    assert [(o.machine, o.parameter) for o in fleet.outliers] == [(HEAVY, "h_q2")]
    assert f"outlier: {HEAVY}: h_q2 = " in fleet.summary()
    frame = fleet.to_frame()
    assert list(frame[frame.outlier].machine) == [HEAVY] and len(frame) == COUNT * len(fleet.names)


def test_threads_change_nothing(found: tuple[Fleet, np.ndarray]) -> None:
    motions = dict(list(drawn()[0].items())[:3])
    with ThreadPoolExecutor(2) as pool:
        shared = identify_fleet(small_arm(), motions, executor=pool)
    assert shared.values == pytest.approx(found[0].values[:3], rel=1e-12)
    assert "not looked for, which takes 4 machines" in shared.summary()


def test_bad_data_of_one_machine_are_said_and_do_not_stop_the_others() -> None:
    motions = dict(list(drawn()[0].items())[:5])
    motions["arm 1"] = replace(motions["arm 1"], forces=None)
    still = motions["arm 2"]
    motions["arm 2"] = replace(still, q=0 * still.q, qd=0 * still.qd, qdd=0 * still.qdd)
    with pytest.warns(IdentificationWarning, match="the machine is left out"):
        fleet = identify_fleet(small_arm(), motions)
    assert fleet.machines == ("arm 0", "arm 3", "arm 4")
    assert set(fleet.failed) == {"arm 1", "arm 2"}
    assert "no fit: arm 1: " in fleet.summary()


def test_what_cannot_be_a_fleet_is_refused() -> None:
    motions = dict(list(drawn()[0].items())[:1])
    with pytest.raises(IdentificationError, match="there are no machines"):
        identify_fleet(small_arm(), {})
    with pytest.raises(IdentificationError, match="no probability"):
        identify_fleet(small_arm(), motions, significance=5.0)
    with pytest.raises(IdentificationError, match="arm 0"):
        identify_fleet(small_arm(), {"arm 0": replace(motions["arm 0"], forces=None)})


def test_equal_deviations_have_a_closed_form() -> None:
    x = np.array([1.0, 4.0, 2.0, 7.0, 3.0])
    found = spread_of(x, np.full(5, 0.5))
    assert found.mean == pytest.approx(x.mean())
    assert found.between**2 == pytest.approx(x.var(ddof=1) - 0.25)
    assert found.sigma == pytest.approx(x.std(ddof=1) / np.sqrt(5))


def test_scatter_within_the_deviations_is_no_spread() -> None:
    found = spread_of([1.0, 1.1, 0.9], [0.5, 1.0, 0.5])
    assert found.between == 0.0
    assert found.mean == pytest.approx((1.0 * 4 + 1.1 + 0.9 * 4) / 9.0)
    assert spread_of([3.0], [0.1]).mean == 3.0


def test_mean_and_spread_of_simulated_fleets_are_unbiased() -> None:
    """400 fleets of 20 machines with deviations between a third and three times the spread."""
    rng, z, squares = np.random.default_rng(11), [], []
    for _ in range(400):
        s = np.exp(rng.uniform(-1.1, 1.1, 20))
        found = spread_of(5.0 + rng.normal(size=20) + s * rng.normal(size=20), s)
        z.append((found.mean - 5.0) / found.sigma)
        squares.append(found.between**2)
    assert np.mean(z) == pytest.approx(0.0, abs=4.0 / np.sqrt(400))
    assert np.std(z) == pytest.approx(1.0, abs=0.2)
    assert np.mean(squares) == pytest.approx(1.0, abs=4.0 * np.std(squares) / np.sqrt(400))


@pytest.mark.parametrize("fleets", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_sound_fleet_has_an_outlier_as_rarely_as_promised(fleets: int) -> None:
    """1 % of the fleets, with four standard errors of that share."""
    rng, found = np.random.default_rng(12), 0
    for _ in range(fleets):
        s = np.exp(rng.uniform(-1.1, 1.1, 12))
        found += bool(apart(rng.normal(size=12) + s * rng.normal(size=12), s, 0.01))
    assert found <= 0.01 * fleets + 4.0 * np.sqrt(0.01 * fleets)


def test_two_outliers_are_both_found_and_others_are_not() -> None:
    rng = np.random.default_rng(13)
    x, s = rng.normal(size=30), np.full(30, 0.3)
    x[[4, 17]] += [12.0, -9.0]
    found = apart(x, s, 0.01)
    assert list(found) == [4, 17]
    assert found[4] > 8.0 and found[17] < -6.0


def test_a_vague_estimate_is_no_outlier_and_few_machines_say_nothing() -> None:
    assert apart([1.0, 1.1, 0.9, 1.05, 0.95, 9.0], [0.1, 0.1, 0.1, 0.1, 0.1, 5.0], 0.01) == {}
    assert apart([1.0, 1.0, 50.0], [0.1, 0.1, 0.1], 0.01) == {}


def estimates(rng: np.random.Generator, logs: int, effect: float, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Noise of stated deviation 2 for each log, and an effect of each log of so many deviations."""
    return rng.normal(size=(logs, count)) * 2.0 * np.sqrt(1.0 + effect**2), np.full((logs, count), 2.0)


@pytest.mark.parametrize("effect", [0.0, 0.5, 2.0])
def test_the_whole_deviation_is_that_of_the_mean(effect: float) -> None:
    """The mean of k logs with noise σ and effect τ has the variance (σ² + τ²)/k; 400 pooled parameters state it to 5 %."""
    rng = np.random.default_rng(4)
    values, sigma = estimates(rng, 3, effect)
    whole = np.full(400, 2.0 / np.sqrt(3.0))
    found = take_variation(values, sigma, whole, ["all"] * 400)
    stated = np.sqrt(whole**2 + found.sigma**2)
    assert stated == pytest.approx(np.full(400, 2.0 * np.sqrt((1.0 + effect**2) / 3.0)), rel=0.05)
    assert found.logs == 3 and found.ratio["all"] == pytest.approx(np.sqrt(1.0 + effect**2), rel=0.05)


def test_groups_have_their_own_and_missing_ones_none() -> None:
    rng = np.random.default_rng(5)
    (calm, sigma), (wild, _) = estimates(rng, 2, 0.0), estimates(rng, 2, 3.0)
    values = np.hstack([calm, wild])
    values[0, 400] = np.nan  # a log that does not determine it: pooled with its group all the same
    found = take_variation(values, np.hstack([sigma, sigma]), np.ones(800), ["calm"] * 400 + ["wild"] * 400)
    assert found.ratio["calm"] == pytest.approx(1.0, abs=0.15) and found.ratio["wild"] == pytest.approx(
        np.sqrt(10.0), rel=0.15
    )
    assert found.sigma[400] == found.sigma[401] > 2.0 and found.sigma[:400].max() < 0.6
    lonely = take_variation(np.array([[1.0], [np.nan]]), np.ones((2, 1)), np.ones(1), ["x"])
    assert lonely.ratio == {} and lonely.sigma[0] == 0.0


def test_one_log_says_nothing() -> None:
    with pytest.raises(DataError, match="at least two logs"):
        take_variation(np.ones((1, 2)), np.ones((1, 2)), np.ones(2), ["a", "b"])
