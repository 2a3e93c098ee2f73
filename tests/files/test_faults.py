"""What a machine does to files: a full disk, read-only places, a process that is killed, a log that grows, odd paths and locales.

A full disk is a limit on the size of files (RLIMIT_FSIZE): the kernel refuses to write beyond it, as it does where no block is left.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import FileError, VeridynError
from veridyn.files.access import shipped, write_atomic
from veridyn.files.log import tables as table_reader
from veridyn.studies.result import Run, new_run
from veridyn.symbolic import cache
from veridyn.symbolic.cache import Stored, load_or_make

STORED = Stored(b"code" * 5000, {"labels": ["q1"]})


@contextmanager
def full_disk(left: int = 4096) -> Iterator[None]:
    """No file may grow beyond `left` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_named_and_leaves_nothing_and_no_earlier_run_is_touched(tmp_path: Path) -> None:
    first = new_run(tmp_path, "study")
    first.write_text("result.json", "whole")
    second = new_run(tmp_path, "study")
    with full_disk(), pytest.raises(FileError, match="cannot be written: File too large"):
        second.write_bytes("report.html", bytes(100_000))
    assert [p.name for p in first.folder.iterdir()] == ["result.json"]
    assert (first.folder / "result.json").read_text() == "whole"
    assert list(second.folder.iterdir()) == []
    second.discard()
    assert [p.name for p in tmp_path.iterdir()] == ["study-001"]


def test_a_fit_on_a_full_disk_is_not_half_a_fit(tmp_path: Path) -> None:
    with full_disk(256), pytest.raises(VeridynError, match="cannot be written"):
        vd.save_model(vd.load_model(shipped("veridyn:arm.yaml")), tmp_path / "arm.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_cache_on_a_full_disk_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "objects"))
    with full_disk():
        assert load_or_make("a", lambda: STORED) == STORED
    assert list((tmp_path / "objects").iterdir()) == []
    assert load_or_make("a", lambda: STORED) == STORED  # and is kept once there is room
    assert (tmp_path / "objects" / "a.object").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no file system here that is always read-only")
def test_a_read_only_place_is_refused_before_work_begins() -> None:
    """Nobody, not even root, can make a folder in /proc."""
    with pytest.raises(FileError, match="/proc"):
        new_run("/proc/runs", "study")
    with pytest.raises(FileError, match="cannot be written"):
        write_atomic("/proc/veridyn.json", b"{}")


WRITER = """
import sys
from hashlib import sha256
from pathlib import Path
from veridyn.studies.result import new_run
from veridyn.symbolic.cache import Stored, keep
k = 0
print("ready", flush=True)
while True:
    k += 1
    body = bytes([k % 256]) * 3_000_000
    new_run(sys.argv[1], "study").write_bytes(f"{sha256(body).hexdigest()}.bin", body)
    keep(f"key{k % 5}", Stored(body, {"round": k}))
"""


def test_a_process_that_is_killed_leaves_whole_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed three times at random moments of writing runs and objects: files with a name of their own are whole, the cache serves what was
    kept or nothing, runs of the processes before are as they were, and the next run goes on."""
    runs, objects = tmp_path / "runs", tmp_path / "objects"
    monkeypatch.setenv(cache.VARIABLE, str(objects))
    rng = np.random.default_rng(0)
    seen: dict[Path, tuple[int, int]] = {}
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(runs)], env={**os.environ, cache.VARIABLE: str(objects)}, stdout=-1
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0.02, 0.15))
            child.send_signal(signal.SIGKILL)
        written = [f for f in runs.glob("study-*/*") if not f.name.startswith(".")]
        assert written
        for f in written:
            assert sha256(f.read_bytes()).hexdigest() == f.stem
        assert {f: (f.stat().st_size, f.stat().st_mtime_ns) for f in seen} == seen
        seen = {f: (f.stat().st_size, f.stat().st_mtime_ns) for f in written}
        for k in range(5):
            found = cache.load(f"key{k}")
            assert found is None or len(set(found.code)) == 1
    again = new_run(runs, "study")
    assert again.write_text("result.json", "{}").exists()


def test_a_log_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder appends, up to the middle of a number, behind the back of the reader; once it is done the log is read."""
    file = tmp_path / "log.csv"
    file.write_text("t [s],q.q1 [rad]\n" + "".join(f"{0.001 * k:.3f},{np.sin(0.01 * k):.17g}\n" for k in range(1000)))
    fast = table_reader._fast  # pyright: ignore[reportPrivateUsage]

    def slow(*given: Any) -> dict[str, np.ndarray]:
        with file.open("a") as out:
            out.write("1.000,-0.54")
        return fast(*given)

    with monkeypatch.context() as patch:
        patch.setattr(table_reader, "_fast", slow)
        with pytest.raises(FileError, match="changed while it was read"):
            vd.load_log(file)
    with file.open("a") as out:
        out.write("402111088936978\n")
    assert vd.load_log(file)["q.q1"].values[-1] == np.sin(10.0)


def test_paths_with_spaces_and_letters_of_others_in_the_plainest_locale(tmp_path: Path) -> None:
    """Through the command line, in an environment without UTF-8."""
    folder = tmp_path / "Größe und мера"
    folder.mkdir()
    model = folder / "mein Arm №1.yaml"
    model.write_bytes(Path(shipped("veridyn:arm.yaml")).read_bytes())
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("LC_", "LANG", "PYTHONUTF8", "PYTHONIOENCODING"))}
    done = subprocess.run(
        [sys.executable, "-m", "veridyn", "model", "show", str(model)],
        env={**plain, "LC_ALL": "C", "LANG": "de_DE"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert b"base parameter" in done.stdout
    assert Run(folder, "мера").parent == folder


def test_numbers_do_not_follow_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files hold points whatever a locale says: a comma in LC_NUMERIC would write 1,5 and read 15."""
    import locale

    commas = {"decimal_point": ",", "thousands_sep": "."}
    monkeypatch.setattr(locale, "localeconv", lambda: {**commas, "grouping": [3, 0]})
    file = tmp_path / "log.csv"
    file.write_text("t [s],q.q1 [rad]\n" + "".join(f"{0.01 * k:.2f},{1.5 * k}\n" for k in range(50)))
    assert vd.load_log(file)["q.q1"].values[3] == 4.5
    vd.save_model(vd.load_model(shipped("veridyn:arm.yaml")), tmp_path / "arm.yaml")
    own, again = (vd.load_model(f).parameters.values for f in (shipped("veridyn:arm.yaml"), tmp_path / "arm.yaml"))
    assert np.array_equal(own, again, equal_nan=True)
