"""Noise and band of signals whose noise and band are known.

Bands of sensors: against scipy's analogue filters, closed forms of lines and sines, and the zero-phase filter of the house.
"""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.signal import butter, freqs, lsim

import veridyn as vd
from strangers.pinocchio_logs import machine, recording, three_joints
from veridyn.errors import DataError
from veridyn.model.motion import BaseMotion, Motion
from veridyn.signals.butterworth import Butterworth, overlap, zero_phase
from veridyn.signals.conditioning import (
    Band,
    chosen_cutoff,
    derivative,
    ends_in_motion,
    equalised,
    noise_floor,
    noise_gain,
    settling_time,
    within,
)

RATE = 500.0
BAND_TIMES = np.arange(4000) / RATE
T = np.arange(8000) / RATE
MOTION = np.sin(2 * np.pi * 0.3 * T) + 0.3 * np.sin(2 * np.pi * 2.0 * T + 1.0)


def analogue(order: int) -> tuple[np.ndarray, np.ndarray]:
    """scipy's filter of 10 Hz: numerator and denominator."""
    made = butter(order, 2 * np.pi * 10.0, analog=True)
    assert isinstance(made, tuple)
    return np.asarray(made[0]), np.asarray(made[1])


def band_limited(rng: np.random.Generator, highest: float) -> np.ndarray:
    """A signal of many sines below `highest` Hz."""
    f = np.linspace(0.2, highest, 40)
    return (np.sin(2 * np.pi * np.outer(BAND_TIMES, f) + rng.uniform(0, 6, 40)) / np.sqrt(f)).sum(axis=1)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_the_response_is_scipy_s_analogue_butterworth(order: int) -> None:
    f = np.array([0.0, 1.0, 9.0, 10.0, 40.0, 200.0])
    b, a = analogue(order)
    assert np.allclose(Band(10.0, order).response(f), freqs(b, a, 2 * np.pi * f)[1], rtol=1e-12)
    slow = 1e-3
    assert Band(10.0, order).delay == pytest.approx(
        -np.angle(Band(10.0, order).response(slow)) / (2 * np.pi * slow), rel=1e-6
    )


def test_a_sensor_lags_as_the_differential_equation_of_its_filter() -> None:
    x = band_limited(np.random.default_rng(1), 15.0) + 3.0 * BAND_TIMES
    b, a = analogue(2)
    fine = np.linspace(0.0, BAND_TIMES[-1], 16 * (len(BAND_TIMES) - 1) + 1)
    # lsim holds its input by straight lines; sixteen times finer its own error is 1e-5 at 15 Hz.
    _, y, _ = lsim((b, a), CubicSpline(BAND_TIMES, x)(fine), fine)
    seen = within(x, RATE, Band(10.0))
    assert np.abs(seen - y[::16])[500:].max() < 1e-4 * np.abs(x).max()
    assert np.abs(seen - x)[500:].max() > 0.1  # and that is far from the truth


def test_a_line_comes_late_by_the_delay() -> None:
    x = 5.0 - 2.0 * BAND_TIMES
    assert np.allclose(within(x, RATE, Band(10.0)), 5.0 - 2.0 * (BAND_TIMES - Band(10.0).delay), atol=1e-12)


def test_equalised_signals_of_different_sensors_are_one_again() -> None:
    x = band_limited(np.random.default_rng(2), 25.0)
    common = Butterworth(40.0)
    wanted = zero_phase(x, RATE, common)
    middle = slice(200, -200)
    for cutoff in (10.0, 15.0, 20.0, 100.0):
        same = equalised(within(x, RATE, Band(cutoff)), RATE, Band(cutoff), common)
        assert np.abs(same - wanted)[middle].max() < 1e-6 * np.abs(x).max(), cutoff
    assert np.abs(equalised(x, RATE, None, common) - wanted)[middle].max() < 1e-6 * np.abs(x).max()


def test_noise_grows_as_said() -> None:
    own, common = Band(10.0), Butterworth(30.0)
    noise = np.random.default_rng(3).standard_normal((40000, 4))
    grown = equalised(noise, RATE, own, common).std() / zero_phase(noise, RATE, common).std()
    assert grown == pytest.approx(noise_gain(own, common, RATE), rel=0.03)
    assert noise_gain(own, Butterworth(5.0), RATE) < 1.1 < 2.0 < noise_gain(own, common, RATE)


def test_columns_are_filtered_each_by_itself() -> None:
    x = np.stack([band_limited(np.random.default_rng(k), 20.0) for k in (4, 5)], axis=1)
    assert np.allclose(within(x, RATE, Band(10.0))[:, 1], within(x[:, 1], RATE, Band(10.0)), atol=1e-12)


def test_unusable_bands_are_named() -> None:
    with pytest.raises(DataError, match="cutoff is not usable"):
        Band(0.0)
    with pytest.raises(DataError, match="order is not usable"):
        Band(10.0, 0)
    with pytest.raises(DataError, match="too short"):
        within([1.0, 2.0], RATE, Band(10.0))


@pytest.mark.parametrize("sigma", [1e-6, 1e-4, 1e-2])
def test_the_density_of_white_noise_and_the_band_of_the_motion(sigma: float) -> None:
    x = MOTION + sigma * np.random.default_rng(0).normal(size=len(T))
    found = noise_floor(x, RATE)
    assert found is not None
    assert found.density == pytest.approx(2.0 * sigma**2 / RATE, rel=0.2)  # white: σ² over the band to rate/2
    assert 2.0 < found.band < 8.0
    cutoff = chosen_cutoff([found], RATE)
    assert cutoff is not None and 2.5 < cutoff < 12.0


def test_noise_of_a_quantised_signal_is_a_twelfth_of_its_square() -> None:
    quantum = 2 * np.pi / 2**16
    found = noise_floor(np.round(MOTION / quantum) * quantum, RATE)
    assert found is not None and found.density == pytest.approx(2.0 * quantum**2 / 12.0 / RATE, rel=0.3)


@pytest.mark.parametrize("low", [None, Butterworth(20.0)])
@pytest.mark.parametrize("order", [1, 2])
def test_noise_of_a_derivative_is_what_differentiating_noise_gives(low: Butterworth | None, order: int) -> None:
    from veridyn.signals.butterworth import zero_phase

    noise = 1e-4 * np.random.default_rng(1).normal(size=len(T))
    found = noise_floor(MOTION + noise, RATE)
    through = noise if low is None else zero_phase(noise, RATE, low)
    measured = np.std(derivative(through, RATE, order)[200:-200])
    assert found.derivative_noise(order, "compensated", low) == pytest.approx(measured, rel=0.15)


def test_a_line_of_the_mains_is_not_motion() -> None:
    x = MOTION + 1e-4 * np.random.default_rng(2).normal(size=len(T)) + 1e-4 * np.sin(2 * np.pi * 50.0 * T)
    assert noise_floor(x, RATE).band < 8.0


SLOW = [  # sizes (rad), frequencies (Hz) and phases of slow motions, rounded by a 16-bit encoder: a band of each is 5 to 7 times the noise
    (
        [0.161, 0.102, 0.268, 0.327, 0.087, 0.055],
        [0.249, 0.243, 0.174, 0.135, 0.426, 0.566],
        [3.753, 3.878, 0.61, 3.192, 2.839, 1.861],
    ),
    (
        [0.345, 0.092, 0.32, 0.075, 0.289, 0.079],
        [0.105, 0.28, 0.142, 0.428, 0.112, 0.58],
        [5.66, 5.621, 4.452, 0.616, 5.695, 5.445],
    ),
    (
        [0.346, 0.295, 0.485, 0.445, 0.353, 0.076],
        [0.221, 0.264, 0.122, 0.204, 0.271, 0.678],
        [0.499, 2.233, 2.845, 1.988, 0.082, 2.34],
    ),
]


@pytest.mark.parametrize("waves", SLOW)
def test_rounding_is_not_motion(waves: tuple[list[float], list[float], list[float]]) -> None:
    """Logs of 10 s: a band that stands alone above the noise, at 58 to 242 Hz here, is rounding."""
    size, frequency, phase = (np.array(x) for x in waves)
    t, quantum = np.arange(5000)[:, None] / RATE, 2 * np.pi / 2**16
    x = (size * np.sin(2 * np.pi * frequency * t + phase)).sum(axis=1)
    assert noise_floor(np.round(x / quantum) * quantum, RATE).band < 8.0


def test_what_fills_the_band_is_not_filtered_and_short_or_constant_signals_have_no_floor() -> None:
    broad = np.cumsum(np.random.default_rng(3).normal(size=len(T)))
    assert chosen_cutoff([noise_floor(broad, RATE)], RATE) is None or noise_floor(broad, RATE).band > 40.0
    assert noise_floor(MOTION[:100], RATE) is None and noise_floor(np.ones(8000), RATE) is None


ENDS_RATE = 200.0


LINE = np.arange(2000) / ENDS_RATE


ARM = machine(three_joints())


def swinging(qd: np.ndarray, base: BaseMotion | None = None) -> Motion:
    return Motion(LINE, np.zeros_like(qd), qd, np.zeros_like(qd), base)


@pytest.mark.parametrize("order", [2, 3, 4, 6, 8, 12])
def test_a_filter_has_settled_to_one_percent(order: int) -> None:
    """Beside the impulse response of both passes: what lies beyond that time is 0.5 to 2 % of it."""
    low = Butterworth(3.0, order)
    seconds = settling_time(low)
    assert overlap(low, 500.0, 0.02) / 500.0 <= seconds <= overlap(low, 500.0, 0.005) / 500.0


def test_without_a_filter_nothing_settles() -> None:
    assert settling_time(None) == 0.0
    assert settling_time(Butterworth(15.0)) == pytest.approx(2.0 / 15.0)


def test_an_end_at_rest_keeps_its_samples_and_a_moving_base_counts() -> None:
    still = np.zeros((len(LINE), 1))
    gentle = np.clip(LINE - 3.0, 0.0, 1.0)[:, None] * np.cos(LINE)[:, None]
    assert ends_in_motion(swinging(gentle), 0.5) == (0, 100)
    assert ends_in_motion(swinging(gentle), 0.0) == (0, 0)
    turning = np.cos(LINE)[:, None] * np.ones(3)
    base = BaseMotion(turning, turning, turning)
    assert ends_in_motion(swinging(still, base), 0.5) == (100, 100)
    assert ends_in_motion(swinging(np.cos(LINE)[:, None]), 1e3) == (500, 500)  # a quarter of all at most


def test_accelerations_of_a_filtered_log_are_right_to_its_ends() -> None:
    """Without noise, beside the accelerations of the closed form: at most 2 % is left of what is wrong at ends that are kept."""
    exact = recording(three_joints(), np.random.default_rng(11), seconds=10.0, encoder_noise=0.0, torque_noise=0.0)
    log, size = exact.log, np.abs(exact.qdd).max()

    def worst(m: Motion) -> float:
        return float(np.abs(m.qdd - exact.qdd[np.searchsorted(exact.t, m.t - 1e-9)]).max())

    for cutoff in (6.0, 15.0):
        default = vd.motion(ARM, log, vd.Signals(lowpass=cutoff))
        cut = round(2.0 / cutoff * ENDS_RATE)
        assert len(default) == len(exact.t) - 2 * cut
        assert default.notes is not None
        (note,) = default.notes
        assert note.startswith(f"trimmed: {cut / ENDS_RATE:.3g} s ({cut} samples) at its start and ")
        assert note.endswith(f"where the low-pass at {cutoff:g} Hz still settles; Signals(trim=0) keeps them")
        everything = vd.motion(ARM, log, vd.Signals(lowpass=cutoff, trim=0))
        assert len(everything) == len(exact.t) and everything.notes == ()
        assert worst(everything) > 0.2 * size and worst(default) < 0.02 * worst(everything)
    assert len(vd.motion(ARM, log, vd.Signals(lowpass=None))) == len(exact.t)
    assert len(vd.motion(ARM, log, vd.Signals(lowpass=15.0, trim=0.5))) == len(exact.t) - 200


def test_a_log_too_short_for_its_filter_says_so() -> None:
    log = recording(three_joints(), np.random.default_rng(3), seconds=2.0).log
    notes = vd.motion(ARM, log, vd.Signals(lowpass=2.0)).notes
    assert notes is not None and "(it takes 1 s, and a quarter of the log at most is cut)" in notes[-1]


def test_what_was_cut_off_stands_in_the_fit() -> None:
    log = recording(three_joints(), np.random.default_rng(5), seconds=5.0).log
    fit = vd.identify(ARM, vd.motion(ARM, log, vd.Signals(lowpass=20.0)), diagnose="off")
    assert any(n.startswith("trimmed: 0.1 s (20 samples) at its start") for n in fit.notes)


def test_a_trim_that_is_no_time_is_refused() -> None:
    with pytest.raises(
        vd.errors.DataError, match=r"'trim': it is of another kind .*\nExpected a number or 'auto', found None"
    ):
        vd.Signals(trim=None)  # pyright: ignore[reportArgumentType]
    for wrong in ("long", -1.0, np.nan):
        with pytest.raises(vd.errors.DataError, match=r"trim: it is no time\.\nExpected seconds, 0 or more, or 'auto'"):
            vd.Signals(trim=wrong)  # pyright: ignore[reportArgumentType]
