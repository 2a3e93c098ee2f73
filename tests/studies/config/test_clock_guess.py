import numpy as np
import pytest

from veridyn.studies.config.clock_guess import name_words, time_column, time_lines, time_unit

N = 50
X = np.sin(np.arange(N))


@pytest.mark.parametrize(
    "name", ["t", "Time (Seconds)", "MocapTime", "field.header.stamp", "Time_s", "__time", "timestamp", "ros_time_ns"]
)
def test_a_clock_is_found_by_its_name(name: str) -> None:
    assert time_column({"MocapFrame": np.arange(N), "a": X, name: np.arange(N) / 100.0}) == name


def test_a_clock_is_found_by_even_steps_and_a_counter_or_a_turning_motor_is_none() -> None:
    jitter = np.arange(N) / 100.0 + 1e-3 * np.random.default_rng(1).uniform(size=N)
    assert time_column({"a": X, "b": jitter}) == "b"
    assert time_column({"frame": np.arange(N), "a": X}) == ""
    assert time_column({"a": np.cumsum(1.1 + X), "b": X}) == ""  # only increases, and in uneven steps
    assert name_words("DeviceFrame.Time2 (s)") == ["device", "frame", "time", "s"]


@pytest.mark.parametrize(("unit", "seconds"), [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)])
@pytest.mark.parametrize(("start", "rate"), [(0.0, 10.0), (0.0, 100.0), (0.0, 1000.0), (1.7e9, 2.0), (1.7e9, 8000.0)])
def test_the_unit_of_a_clock_by_its_step_or_by_its_date(unit: str, seconds: float, start: float, rate: float) -> None:
    """Nanoseconds of ROS used to be taken for microseconds."""
    stamps = np.round((start + np.arange(N) / rate) / seconds, 9)
    assert time_unit("time", {"time": stamps}, {})[0] == unit
    assert time_unit("time", {"time": stamps}, {"time": "min"}) == ("min", "")


def test_a_table_without_a_clock_asks_for_its_rate() -> None:
    (line,) = time_lines("", {"a": X}, {}, True)
    assert line.startswith("  rate: # the log has no clock: write how many samples a second")
    assert time_lines("", {"a": X}, {}, False, ",", 500.0) == [
        "  rate: 500 # samples a second: the log has no clock",
        '  decimal: ","',
        "  header: [a] # the file has none; call the columns what they are",
    ]
