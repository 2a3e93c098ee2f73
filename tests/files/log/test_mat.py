"""Logs in MAT files: what SciPy writes is read back to the last bit, and no damaged byte ends the process."""

import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from veridyn.errors import DataError, FileError
from veridyn.files.log.arrays import load_arrays, named_arrays
from veridyn.files.log.load import load_log

N = 40
UNITS = {"t": "s", "qm": "mm", "tau": "Nm"}


def variables():
    rng = np.random.default_rng(0)
    return {"t": np.arange(N) * 1e-3, "qm": rng.normal(size=(N, 1)), "tau": rng.normal(size=(N, 2)), "gain": 35.15}


def write(tmp_path, values, **how):
    path = tmp_path / "log.mat"
    savemat(path, values, **how)
    return path


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("oned_as", ["row", "column"])
def test_what_scipy_writes_is_read_to_the_last_bit(tmp_path, compressed, oned_as):
    given = variables()
    log = load_arrays(write(tmp_path, given, do_compression=compressed, oned_as=oned_as), units=UNITS)
    assert log.names == ("qm", "tau.0", "tau.1")
    assert log["tau.1"].unit == "N*m"
    assert np.array_equal(log["tau.1"].values, given["tau"][:, 1])
    assert np.array_equal(log["tau.1"].t, given["t"])
    assert log["qm"].values == pytest.approx(given["qm"][:, 0] * 1e-3, rel=1e-15)
    assert log.notes == {"gain": "35.15"}


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "?"])
def test_every_type_of_number(tmp_path, dtype):
    given = np.random.default_rng(1).integers(0, 2 if dtype == "?" else 100, size=(N, 3)).astype(dtype)
    log = load_arrays(write(tmp_path, {"t": np.arange(N), "x": given}), units={"t": "s", "x": "1"})
    assert np.array_equal(np.column_stack([log[name].values for name in log]), given.astype(float))


def test_the_other_order_of_bytes(tmp_path):
    """A big-endian file by hand: header, one tag for each variable, and inside flags, size, name and numbers."""

    def variable(name, values):
        inside = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIII", 5, 8, len(values), 1)
        inside += struct.pack(">I", 1 | len(name) << 16) + name.encode().ljust(4, b"\0")
        inside += struct.pack(f">II{len(values)}d", 9, 8 * len(values), *values)
        return struct.pack(">II", 14, len(inside)) + inside

    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    path = tmp_path / "log.mat"
    path.write_bytes(head + variable("t", [0.0, 0.5, 1.0]) + variable("q", [1.0, 2.0, 4.0]))
    assert load_arrays(path, units={"t": "s", "q": "m"})["q"].values.tolist() == [1.0, 2.0, 4.0]


def test_the_door_of_tables_opens_it_by_its_suffix(tmp_path):
    path = write(tmp_path, variables())
    log = load_log(path, {"q.q1": "qm", "force.q1": "tau.0"}, {"t": "s", "qm": "m", "force.q1": "Nm"})
    assert log.names == ("q.q1", "force.q1")


def test_fields_of_structures_have_names_of_their_own(tmp_path):
    given = variables()
    nested = {"log": {"time": given["t"], "arm": {"q": given["tau"], "name": "left"}}}
    log = load_arrays(write(tmp_path, nested), units={"log.time": "ms", "log.arm.q": "deg"}, time="log.time")
    assert log.names == ("log.arm.q.0", "log.arm.q.1")
    assert log["log.arm.q.1"].values == pytest.approx(np.radians(given["tau"][:, 1]))
    assert log.notes == {"log.arm.name": "left"}


def test_what_makes_no_channel_is_refused_by_name_where_it_is_asked_for(tmp_path):
    cells = np.array([1.0, "word", np.arange(3)], dtype=object)
    several = np.array([(1.0,), (2.0,)], dtype=[("a", "f8")])
    odd = {"cells": cells, "several": several, "z": np.ones(N) * 1j, "words": np.array(["ab", "cd"]), "empty": []}
    path = write(tmp_path, variables() | odd)
    with pytest.raises(FileError) as caught:
        load_arrays(path, units=UNITS)
    for part in ("'cells': it holds cells", "'several': it holds 2 structures", "'z': it holds complex numbers"):
        assert part in str(caught.value)
    assert "'words': it holds several words" in str(caught.value)
    assert load_arrays(path, {"q": "qm"}, {"t": "s", "q": "m"}).names == ("q",)
    with pytest.raises(FileError, match=r"array 'cells': it holds cells"):
        load_arrays(path, {"q": "cells"}, {"t": "s"})


def test_units_are_mandatory(tmp_path):
    with pytest.raises(DataError, match=r"column 'qm': it has no unit"):
        load_arrays(write(tmp_path, variables()), units={"t": "s", "tau": "Nm"})


def test_what_is_no_mat_file_is_refused(tmp_path):
    path = tmp_path / "log.mat"
    for junk in (b"", b"t,q\n0,1\n", bytes(range(256)) * 4):
        path.write_bytes(junk)
        with pytest.raises(FileError, match=r"not the header of a MAT file"):
            load_arrays(path)
    write(tmp_path, variables(), format="4")
    with pytest.raises(FileError, match=r"version 5 or later"):
        load_arrays(path)
    with pytest.raises(FileError, match=r"does not exist"):
        load_arrays(tmp_path / "other.mat")


def test_a_file_that_is_cut_off_says_so(tmp_path):
    path = write(tmp_path, variables())
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(FileError, match=r"cut off"):
        load_arrays(path, units=UNITS)


@pytest.mark.parametrize("compressed", [False, True])
def test_damaged_files_end_in_an_error_or_in_numbers(tmp_path, compressed):
    """One wrong byte in a tag ends SciPy's reader, and the process with it; here it is an error like any other."""
    given = variables() | {"s": {"a": 1.0, "b": np.arange(N)}, "word": "abc", "c": np.array([1.0, "x"], dtype=object)}
    path = write(tmp_path, given, do_compression=compressed)
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    refused = 0
    for k in range(600):
        data = bytearray(whole)
        if k % 3 == 0:
            del data[int(rng.integers(len(data))) :]
        else:
            for place in rng.integers(len(data), size=4):
                data[place] = rng.integers(256)
        path.write_bytes(bytes(data))
        try:
            log = load_arrays(path, {"x": "tau"}, {"t": "s", "x": "Nm"})
        except (FileError, DataError):
            refused += 1
            continue
        assert all(log[name].values.shape == log["x.0"].t.shape for name in log)
    assert refused > 200


def hdf5(tmp_path, values):
    """A MAT file of version 7.3, which keeps matrices transposed and says the class of each."""
    h5py = pytest.importorskip("h5py", reason="h5py and pymatreader (the extra 'logs') read MAT 7.3")
    pytest.importorskip("pymatreader", reason="h5py and pymatreader (the extra 'logs') read MAT 7.3")
    path = tmp_path / "log.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in values.items():
            data = file.create_dataset(name, data=np.atleast_2d(np.asarray(value)).T)
            data.attrs["MATLAB_class"] = np.bytes_(b"double")
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<H", 0x0200) + b"IM")
    return path


def test_version_7_3(tmp_path):
    given = variables()
    log = load_arrays(hdf5(tmp_path, given), units=UNITS)
    assert log.names == ("qm", "tau.0", "tau.1")
    assert np.array_equal(log["tau.1"].values, given["tau"][:, 1])
    assert log.notes == {"gain": "35.15"}


def test_version_7_3_cut_off(tmp_path):
    path = hdf5(tmp_path, variables())
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(FileError, match=r"it cannot be read"):
        load_arrays(path, units=UNITS)


def test_version_7_3_without_its_reader_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "log.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n" + bytes(100))
    monkeypatch.setitem(sys.modules, "pymatreader", None)
    with pytest.raises(FileError, match=r"version 7.3.*\n.*pip install 'veridyn\[logs\]'.*-v7"):
        load_arrays(path, units=UNITS)


def test_what_is_unpacked_of_all_variables_together_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.mat"
    still = {f"x{k}": np.zeros((1000, 1)) for k in range(5)}
    savemat(path, {"t": np.arange(1000.0)[:, None], **still}, do_compression=True)
    assert len(named_arrays(path)) == 6
    monkeypatch.setattr("veridyn.files.access.ALWAYS_ALLOWED_BYTES", 30_000)  # less than the six of 8 kB each
    monkeypatch.setattr("veridyn.files.access.MAX_RATIO", 1)
    with pytest.raises(FileError, match=r"unpacks to more than \d+ bytes, the most that is read from this file"):
        named_arrays(path)
