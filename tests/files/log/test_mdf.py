"""Logs in MDF files: what asammdf writes is read back on the clock of each group, and what is wrong is named."""

import gc
import sys

import numpy as np
import pytest

from veridyn.errors import DataError, FileError
from veridyn.files.log.load import load_log, survey
from veridyn.files.log.mdf import load_mdf

asammdf = pytest.importorskip("asammdf", reason="asammdf (the extra 'logs') reads and writes MDF")

FAST, SLOW = np.arange(50) * 0.01, 0.003 + np.arange(20) * 0.025
STATES = {"val_0": 0, "text_0": b"off", "val_1": 1, "text_1": b"on", "default": b"?"}


def signal(name, t, values, unit="", **how):
    return asammdf.Signal(np.asarray(values), t, unit=unit, name=name, **how)


def groups():
    rng = np.random.default_rng(0)
    invalid = np.arange(20) % 5 == 2
    return {
        "CAN": [
            signal("speed", FAST, rng.normal(size=50), "km/h"),
            signal("yaw", FAST, rng.normal(size=50).astype("f4"), "°/s"),
            signal("gear", FAST, rng.integers(1, 6, size=50).astype("u1"), "-"),
        ],
        "XCP": [
            signal("torque", SLOW, rng.integers(-900, 900, size=20).astype("i2"), "Nm", invalidation_bits=invalid),
            signal("speed", SLOW, rng.normal(size=20), "m/s"),
            signal("state", SLOW, np.arange(20, dtype="u1") % 2, conversion=STATES),
            signal("note", SLOW, np.array([b"a", b"bc"] * 10), encoding="utf-8"),
            signal("bare", SLOW, rng.normal(size=20)),
            signal("strange", SLOW, rng.normal(size=20), "furlong"),
        ],
    }


def write(folder, made, version="4.10", suffix=".mf4", **how):
    with asammdf.MDF(version=version) as mdf:
        for comment, signals in made.items():
            mdf.append(signals, comment=comment)
        return mdf.save(folder / f"log{suffix}", overwrite=True, **how)


@pytest.mark.parametrize(
    ("version", "suffix", "packed"),
    [("4.10", ".mf4", 0), ("4.10", ".mf4", 2), ("4.20", ".mf4", 1), ("3.30", ".mdf", 0), ("3.30", ".dat", 0)],
)
def test_each_channel_has_the_clock_of_its_group_and_si(tmp_path, version, suffix, packed):
    made = groups()
    path = write(tmp_path, made, version, suffix, compression=packed)
    log = load_log(path, {"v": "speed@0", "w": "yaw", "T": "torque"}, {"v": "km/h"})
    assert log.names == ("v", "w", "T")
    assert [log[n].unit for n in log] == ["m/s", "rad/s", "N*m"]
    assert np.array_equal(log["v"].t, FAST)
    assert np.array_equal(log["T"].t, SLOW)
    assert log["v"].values == pytest.approx(made["CAN"][0].samples / 3.6, rel=1e-15)
    assert log["w"].values == pytest.approx(np.radians(made["CAN"][1].samples.astype(float)), rel=1e-15)


def test_samples_that_are_marked_as_invalid_are_not_a_number(tmp_path):
    made = groups()
    values = load_mdf(write(tmp_path, made), {"T": "torque"})["T"].values
    invalid = np.arange(20) % 5 == 2
    assert np.isnan(values[invalid]).all()
    assert np.array_equal(values[~invalid], made["XCP"][0].samples[~invalid])


def test_every_channel_of_numbers_is_taken_where_none_is_named_and_the_rest_is_noted(tmp_path):
    log = load_mdf(write(tmp_path, groups()), units={"bare": "V", "strange": "m"})
    assert log.names == ("speed@0", "speed@1", "yaw", "gear", "torque", "bare", "strange")
    assert log.notes["left out"] == "note, state"
    assert log["gear"].unit == "1"
    assert "start" in log.notes


def test_a_name_that_two_groups_have_is_refused_and_told_apart(tmp_path):
    made = groups()
    path = write(tmp_path, made)
    with pytest.raises(FileError, match=r"'speed': 2 channels have this name") as caught:
        load_mdf(path, {"v": "speed"})
    assert "'speed@0' (CAN, 50 samples, [km/h]), 'speed@1' (XCP, 20 samples, [m/s])" in str(caught.value)
    assert np.array_equal(load_mdf(path, {"v": "speed@1"})["v"].values, made["XCP"][1].samples)


def test_a_name_that_one_group_has_twice(tmp_path):
    twice = [signal("x", FAST, FAST, "m"), signal("x", FAST, 2.0 * FAST, "m")]
    log = load_mdf(write(tmp_path, {"": twice}), {"a": "x@0.1", "b": "x@0.2"})
    assert np.array_equal(log["b"].values, 2.0 * log["a"].values)


def test_words_are_refused_where_they_are_asked_for_and_all_faults_are_told_at_once(tmp_path):
    with pytest.raises(FileError) as caught:
        load_mdf(write(tmp_path, groups()), {"s": "state", "n": "note", "m": "missing"}, {"s": "1", "else": "m"})
    text = str(caught.value)
    assert "channel 'state': it holds words (a text, or an enumeration)" in text
    assert "found 'off', 'on', 'off'" in text
    assert "channel 'note': it holds words." in text
    assert "there is no channel 'missing'" in text
    assert "`units` names 'else', which is no channel" in text


def test_units_that_are_missing_or_not_known_are_named_and_can_be_given(tmp_path):
    path = write(tmp_path, groups())
    with pytest.raises(DataError) as caught:
        load_mdf(path, {"a": "bare", "b": "strange"})
    assert "channel 'a': it has no unit" in str(caught.value)
    assert "'furlong' holds an unknown symbol 'furlong'" in str(caught.value)
    log = load_mdf(path, {"a": "bare", "b": "strange"}, {"bare": "mV", "b": "ft"})
    assert (log["a"].unit, log["b"].unit) == ("V", "m")


def test_a_group_whose_clock_counts_no_seconds_is_refused(tmp_path):
    with asammdf.MDF(version="4.10") as mdf:
        mdf.append([signal("p", FAST, FAST, "bar", master_metadata=("crank", 2))])
        path = mdf.save(tmp_path / "log.mf4")
    with pytest.raises(FileError, match=r"'p': the clock of its group, 'crank', counts an angle, not seconds"):
        load_mdf(path, {"p": "p"})


def test_time_is_not_to_be_named(tmp_path):
    path = write(tmp_path, groups())
    assert load_mdf(path, {"v": "yaw"}, time="time").names == ("v",)  # what its clocks are called
    with pytest.raises(DataError, match=r"'stamp' is no clock, and every group has its own"):
        load_mdf(path, {"v": "yaw"}, time="stamp")
    with pytest.raises(DataError, match=r"`columns` is no mapping"):
        load_mdf(path, ["yaw"])


def test_what_is_no_mdf_file_is_refused(tmp_path):
    path = tmp_path / "log.mf4"
    for junk in (b"", b"t,q\n0,1\n", b"UnFinMF ", b"MDF     4.10".ljust(64) + bytes(200)):
        path.write_bytes(junk)
        with pytest.raises(FileError, match=r"header of an MDF file|it cannot be read|no channel of numbers"):
            load_mdf(path)
    with pytest.raises(FileError, match=r"does not exist"):
        load_mdf(tmp_path / "other.mf4")


def test_a_table_of_text_may_be_called_dat(tmp_path):
    path = tmp_path / "log.dat"
    path.write_text("t [s],q [m]\n0,1\n1,2\n")
    assert load_log(path)["q"].values.tolist() == [1.0, 2.0]


def test_a_recording_that_stopped_early_is_not_filled_up(tmp_path):
    """A group that announces 80 records and holds 50: the count of records is bytes 80 to 88 of the group's block."""
    path = write(tmp_path, {"CAN": groups()["CAN"]})
    data = bytearray(path.read_bytes())
    at = data.index(b"##CG") + 80
    assert int.from_bytes(data[at : at + 8], "little") == 50
    data[at : at + 8] = (80).to_bytes(8, "little")
    path.write_bytes(bytes(data))
    with pytest.raises(FileError, match=r"channel 'yaw': it is cut off: .*\nExpected 80 samples"):
        load_mdf(path, {"w": "yaw"})


def test_a_group_that_was_never_recorded_is_left_out_or_refused(tmp_path):
    none = np.zeros(0)
    path = write(tmp_path, {"CAN": groups()["CAN"], "silent": [signal("quiet", none, none, "m")]})
    assert load_mdf(path).notes["left out"] == "quiet"
    with pytest.raises(FileError, match=r"channel 'quiet': it holds no samples"):
        load_mdf(path, {"q": "quiet"})


def test_a_recorder_that_was_switched_off_leaves_an_unfinished_file(tmp_path):
    """Its first word says so, and flags say what is to be completed: here the counts of records (bit 0), which are zero."""
    made = groups()["CAN"]
    path = write(tmp_path, {"CAN": made})
    data = bytearray(path.read_bytes())
    at = data.index(b"##CG") + 80
    data[at : at + 8] = bytes(8)
    data[:8], data[60] = b"UnFinMF ", 1
    path.write_bytes(bytes(data))
    assert np.array_equal(load_mdf(path, {"v": "speed"}, {"v": "m/s"})["v"].values, made[0].samples)
    assert path.read_bytes() == bytes(data)  # and is left as it is


def test_damaged_files_end_in_an_error_or_in_numbers(tmp_path):
    path = write(tmp_path, {"CAN": groups()["CAN"]})
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    refused = 0
    for k in range(60):
        data = bytearray(whole)
        if k % 3 == 0:
            del data[int(rng.integers(64, len(data))) :]
        else:
            data[int(rng.integers(64, len(data)))] = rng.integers(256)
        path.write_bytes(bytes(data))
        try:
            log = load_mdf(path, {"v": "speed", "w": "yaw"}, {"v": "km/h", "w": "deg/s"})
        except (FileError, DataError):
            refused += 1
            continue
        assert all(log[name].values.shape == log[name].t.shape for name in log)
    assert refused >= 20
    gc.collect()  # readers that were half built must not complain when they go


def test_a_survey_lists_channels_units_and_clocks(tmp_path):
    seen = survey(write(tmp_path, groups()))
    assert list(seen.columns) == ["speed@0", "speed@1", "yaw", "gear", "torque", "bare", "strange"]
    assert seen.units["yaw"] == "deg/s"
    assert np.array_equal(seen.clocks["torque"], SLOW)


def test_without_its_reader_it_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path, groups())
    monkeypatch.setitem(sys.modules, "asammdf", None)
    with pytest.raises(FileError, match=r"asammdf is not installed.\npip install 'veridyn\[logs\]'"):
        load_mdf(path)


def test_records_that_unpack_to_more_than_the_bound_are_not_read(tmp_path, monkeypatch):
    still = np.zeros(20_000)
    path = write(tmp_path, {"CAN": [signal("a", np.arange(20_000) * 0.01, still, "m")]}, compression=2)
    assert len(load_mdf(path)["a"].values) == 20_000
    monkeypatch.setattr("veridyn.files.access.ALWAYS_ALLOWED_BYTES", 1000)
    monkeypatch.setattr("veridyn.files.access.MAX_RATIO", 1)
    with pytest.raises(FileError, match="unpacks to more than is read"):
        load_mdf(path)
