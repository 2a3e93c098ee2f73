"""Logs in NPZ archives: vectors and matrices to channels, units at the door, objects refused, nothing executed."""

import io
import os
import zipfile

import numpy as np
import pytest

from veridyn.errors import DataError, FileError
from veridyn.files.log.arrays import load_arrays
from veridyn.files.log.load import load_log

N = 30


def arrays():
    rng = np.random.default_rng(0)
    return {"t": np.arange(N) * 10.0, "positions": rng.normal(size=(N, 3)), "current": rng.normal(size=N)}


UNITS = {"t": "ms", "positions": "deg", "current": "A"}


def write(tmp_path, **values):
    path = tmp_path / "log.npz"
    np.savez_compressed(path, **values)
    return path


def test_vectors_and_matrices_become_channels_in_si(tmp_path):
    given = arrays()
    log = load_arrays(write(tmp_path, **given), units=UNITS)
    assert log.names == ("positions.0", "positions.1", "positions.2", "current")
    assert log.name == "log.npz"
    assert log["positions.2"].unit == "rad"
    assert log["positions.2"].values == pytest.approx(np.radians(given["positions"][:, 2]), rel=1e-15)
    assert log["current"].t == pytest.approx(np.arange(N) * 0.01)


def test_the_door_of_tables_opens_it_by_its_suffix(tmp_path):
    path = write(tmp_path, **arrays())
    assert load_log(path, units=UNITS, name="run 1").names == load_arrays(path, units=UNITS).names
    assert load_log(path, units=UNITS, name="run 1").name == "run 1"


def test_arrays_are_picked_whole_or_by_column(tmp_path):
    given = arrays()
    path = write(tmp_path, **given)
    log = load_arrays(path, {"q": "positions", "first": "positions.0"}, {"t": "s", "q": "rad", "first": "deg"})
    assert log.names == ("q.0", "q.1", "q.2", "first")
    assert np.array_equal(log["q.1"].values, given["positions"][:, 1])
    assert log["first"].values == pytest.approx(np.radians(given["positions"][:, 0]))


def test_a_column_may_have_a_unit_of_its_own(tmp_path):
    log = load_arrays(
        write(tmp_path, **arrays()), {"p": "positions"}, {"t": "s", "positions": "rad", "positions.1": "mm"}
    )
    assert [log[n].unit for n in log] == ["rad", "m", "rad"]


def test_names_may_carry_units(tmp_path):
    given = arrays()
    log = load_arrays(write(tmp_path, **{"t [ms]": given["t"], "positions [deg]": given["positions"]}))
    assert log.names == ("positions.0", "positions.1", "positions.2")
    assert log["positions.0"].values == pytest.approx(np.radians(given["positions"][:, 0]))
    assert log["positions.0"].t[1] == pytest.approx(0.01)


def test_shapes_that_leave_no_doubt_are_turned(tmp_path):
    given = arrays()
    turned = {"t": given["t"][:, None], "positions": given["positions"].T, "current": given["current"][None]}
    straight, other = (load_arrays(write(tmp_path, **v), units=UNITS) for v in (given, turned))
    assert straight.names == other.names
    for name in straight:
        assert np.array_equal(straight[name].values, other[name].values)


def test_numbers_and_words_alone_are_notes(tmp_path):
    log = load_arrays(write(tmp_path, **arrays(), gain=0.1, robot="arm", count=np.array([[3]])), units=UNITS)
    assert log.notes == {"gain": "0.1", "robot": "arm", "count": "3"}
    assert float(log.notes["gain"]) == 0.1


class Trap:
    def __reduce__(self):
        return os.abort, ()


def test_an_object_array_is_refused_by_name_and_never_unpickled(tmp_path):
    path = write(tmp_path, **arrays(), label=np.array([Trap(), Trap()], dtype=object))
    with pytest.raises(FileError, match=r"array 'label': it holds Python objects.*unpickling can run code") as caught:
        load_arrays(path, units=UNITS)
    assert len(caught.value.faults) == 1
    with pytest.raises(FileError, match=r"array 'label'"):
        load_arrays(path, {"a": "label"}, {"t": "s"})
    log = load_arrays(path, {"i": "current"}, {"t": "s", "i": "A"})
    assert log.names == ("i",)


def test_every_fault_of_the_arrays_used_comes_at_once(tmp_path):
    given = arrays()
    other = {"short": np.zeros(N - 1), "deep": np.zeros((N, 2, 2)), "phase": np.zeros(N, dtype=complex)}
    dates = np.zeros(N, dtype="datetime64[s]")
    path = write(tmp_path, **given, **other, dates=dates, words=np.array(["a", "b"]))
    with pytest.raises(FileError) as caught:
        load_arrays(path, units={"t": "s", "positions": "rad", "typo": "A"})
    text = str(caught.value)
    for part in (
        r"array 'short': it has another shape.",
        "(30,) or (30, k), as long as the clock, found (29,)",
        "array 'deep': it has another shape.",
        "array 'phase': it holds complex numbers.",
        "array 'dates': it holds dates.",
        "array 'words': it holds words.",
        "column 'current': it has no unit.",
        "`units` names 'typo'",
    ):
        assert part in text
    assert load_arrays(path, {"i": "current"}, {"t": "s", "i": "A"}).names == ("i",)
    with pytest.raises(FileError, match=r"array 'short'"):
        load_arrays(path, {"s": "short.0"}, {"t": "s"})


def test_the_time(tmp_path):
    given = arrays()
    path = write(tmp_path, times=given["t"], current=given["current"])
    with pytest.raises(FileError, match=r"there is no column 't' for the time.\nName it with time="):
        load_arrays(path, units={"current": "A"})
    assert load_arrays(path, units={"current": "A", "times": "s"}, time="times")["current"].t[1] == 10.0
    renamed = load_arrays(path, {"t": "times", "i": "current"}, {"times": "ms", "i": "A"})
    assert renamed["i"].t[1] == pytest.approx(0.01)
    with pytest.raises(DataError, match=r"it is the time.\nExpected a unit of time"):
        load_arrays(path, units={"current": "A", "times": "m"}, time="times")
    for wrong in (np.float64(0.01), np.zeros((N, 2)), np.zeros(N, dtype="datetime64[s]")):
        with pytest.raises(FileError, match=r"array 't': it (is the time|holds dates)"):
            load_arrays(write(tmp_path, t=wrong, current=given["current"]), {"i": "current"}, {"t": "s", "i": "A"})


def test_units_are_mandatory(tmp_path):
    with pytest.raises(DataError, match=r"column 't': it has no unit") as caught:
        load_arrays(write(tmp_path, **arrays()))
    assert len(caught.value.faults) == 5
    with pytest.raises(DataError, match=r"column 'current': the unit 'Amp' holds an unknown symbol"):
        load_arrays(write(tmp_path, **arrays()), units=UNITS | {"current": "Amp"})


def test_a_list_of_columns_is_for_tables_without_header(tmp_path):
    with pytest.raises(DataError, match=r"no mapping, and these arrays have names of their own"):
        load_log(write(tmp_path, **arrays()), columns=["t", "q"])
    with pytest.raises(FileError, match=r"there is no column 'positons'.*\n?.*Did you mean 'positions"):
        load_arrays(write(tmp_path, **arrays()), {"q": "positons"}, {"t": "s"})


def test_what_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "log.npz"
    for junk in (b"", b"garbage" * 40, np.arange(20.0).tobytes()):
        path.write_bytes(junk)
        with pytest.raises(FileError, match=r"not an archive of arrays"):
            load_arrays(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("t.npy", b"no array at all")
    with pytest.raises(FileError):
        load_arrays(path, units={"t": "s"})
    with pytest.raises(FileError, match=r"does not exist"):
        load_arrays(tmp_path / "other.npz")


def test_damaged_archives_end_in_an_error_or_in_numbers(tmp_path):
    """Any byte may be wrong: the reader answers with its own error, or with a log of the right shape."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays())
    whole = buffer.getvalue()
    rng = np.random.default_rng(1)
    path = tmp_path / "log.npz"
    for k in range(300):
        data = bytearray(whole)
        if k % 3 == 0:
            del data[int(rng.integers(len(data))) :]
        else:
            for place in rng.integers(len(data), size=3):
                data[place] = rng.integers(256)
        path.write_bytes(bytes(data))
        try:
            log = load_arrays(path, {"q": "positions"}, {"t": "s", "q": "rad"})
        except (FileError, DataError):
            continue
        assert all(len(log[name]) == len(log["q.0"]) for name in log)
