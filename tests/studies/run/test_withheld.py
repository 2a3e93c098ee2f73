"""Readings that a study withholds: against a run whose log does not have them, and a clock that counts from elsewhere."""

from pathlib import Path

import numpy as np
import pytest

from studies.crane_log import TEXT, crane_log, written
from veridyn.errors import FileError
from veridyn.observe.measurements import Status
from veridyn.report.observed import observed_page
from veridyn.studies.config.study import load_study
from veridyn.studies.run.observe import observe_study
from veridyn.studies.run.observed import ObserveRun

SAMPLES, SPAN = 150, (2.0, 2.5)  # s, of a log at 50 Hz
PLAIN = TEXT.split("accept:")[0].replace("process_noise:\n", 'process_noise:\n  model_error: "off"\n')


def crane(folder: Path, text: str, rows: np.ndarray) -> ObserveRun:
    folder.mkdir(exist_ok=True)
    return observe_study(load_study(written(folder, text, rows)))


def test_withheld_readings_are_compared_and_change_nothing(tmp_path: Path) -> None:
    """The states are those of a log without these readings, and the figures those of its states against the readings."""
    rows = crane_log()[1][:SAMPLES]
    inside = (rows[:, 0] >= SPAN[0]) & (rows[:, 0] <= SPAN[1])
    kept = crane(tmp_path / "withheld", f"{PLAIN}withheld: {{travel: [[{SPAN[0]}, {SPAN[1]}]]}}\n", rows)
    empty = rows.copy()
    empty[inside, 1] = np.nan
    absent = crane(tmp_path / "absent", PLAIN, empty)
    o = absent.observation
    assert kept.observation.state("x") == pytest.approx(o.state("x"), abs=1e-12)
    k = o.states.index("x")
    x, sigma = o.system.reduced(o.estimates.x_predicted)[:, k], np.sqrt(o.estimates.P_predicted[:, k, k])
    error = (1e-3 * np.round(rows[:, 1], 3) - x)[inside]  # the log's millimetres have three decimals
    noise = 0.002  # m, the encoder's
    share = np.mean(np.abs(error) <= 2.0 * np.hypot(sigma[inside], noise))
    assert kept.figures["rms_withheld_travel"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-9)
    assert kept.figures["share_inside_two_sigma_withheld_travel"] == pytest.approx(share)
    assert kept.figures["rejected_travel"] == 0 and absent.figures["rejected_travel"] == inside.sum()
    assert (kept.observation.estimates.status[inside, 0] == Status.WITHHELD).all()
    assert not any("travel" in text for text in kept.warnings) and "rms_withheld_travel" not in absent.figures
    page = observed_page(kept, kept.result("crane", 0), "veridyn observe")
    assert "Withheld readings" in page and "Withheld readings" not in observed_page(
        absent, absent.result("crane", 0), "veridyn observe"
    )


def test_a_sensor_that_is_withheld_all_along_is_not_called_unused(tmp_path: Path) -> None:
    run = crane(tmp_path, f"{PLAIN}withheld: {{tilt: [[0, 10]]}}\n", crane_log()[1][:SAMPLES])
    assert not any("no reading of 'tilt' is used" in text for text in run.warnings)
    assert run.figures["rms_withheld_tilt"] > 0.0


def test_what_cannot_be_withheld_is_refused(tmp_path: Path) -> None:
    text = f"{PLAIN}withheld: {{travle: [[0, 1]], tilt: [[20, 21]]}}\n"
    with pytest.raises(FileError) as refused:
        crane(tmp_path, text, crane_log()[1][:SAMPLES])
    message = str(refused.value)
    assert "'travle' is no sensor that is observed" in message and "Did you mean 'travel'" in message
    assert "no reading of 'tilt' lies from 20 s to 21 s" in message


def test_a_clock_that_counts_from_elsewhere(tmp_path: Path) -> None:
    """Seconds since 1970 with `clock_zero: first` are seconds since the first sample, to the rounding of the clock."""
    rows = crane_log()[1][:SAMPLES]
    later = rows.copy()
    later[:, 0] += 1.6e9
    text = PLAIN.replace("log:\n", "log:\n  clock_zero: first\n")
    assert text != PLAIN
    run, plain = crane(tmp_path / "later", text, later), crane(tmp_path / "plain", PLAIN, rows)
    assert run.observation.t == pytest.approx(plain.observation.t, abs=1e-6)
    assert run.observation.state("x") == pytest.approx(plain.observation.state("x"), abs=1e-6)
