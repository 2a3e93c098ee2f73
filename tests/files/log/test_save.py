"""Saving a log: nothing is written over, nothing half-written stays, every fault at once."""

import numpy as np
import pytest

from veridyn.errors import DataError, FileError
from veridyn.files.log.load import load_log
from veridyn.files.log.save import save_log
from veridyn.model.experiment import Channel, Experiment


def small_log():
    return Experiment.from_arrays([0.0, 0.1], {"q1": [1.0, 2.0]}, {"q1": "rad"}, "small")


def test_saving_keeps_what_exists(tmp_path):
    path = save_log(small_log(), tmp_path / "log.csv")
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"it exists already[\s\S]*Choose another name, or pass overwrite=True"):
        save_log(small_log(), path)
    assert path.read_bytes() == before
    other = Experiment.from_arrays([0.0, 1.0], {"a": [1.0, 2.0]}, {"a": "m"})
    save_log(other, path, overwrite=True)
    assert load_log(path).names == ("a",)


def test_saving_needs_one_clock_and_known_units(tmp_path):
    t = np.arange(3.0)
    log = Experiment(
        {
            "a": Channel("a", t, t, "m"),
            "b": Channel("b", t + 1, t, "m"),
            "c": Channel("c", t, t, "smoot"),
            "t": Channel("t", t, t, "s"),
        },
        "run",
    )
    with pytest.raises(DataError) as caught:
        save_log(log, tmp_path / "log.csv")
    text = str(caught.value)
    assert "run: channel 'b' has another clock than 'a'." in text
    assert "veridyn.signals.resample.resample first" in text
    assert "unknown symbol 'smoot'" in text
    assert "channel 't': its name cannot head a column" in text
    with pytest.raises(DataError, match=r"no channels to save"):
        save_log(Experiment({}), tmp_path / "log.csv")
    assert not any(tmp_path.iterdir())


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    with pytest.raises(FileError, match=r"it cannot be written"):
        save_log(small_log(), tmp_path / "nowhere" / "log.csv")
    assert not any(tmp_path.iterdir())
