"""Without an extra: what needs it says which one, and how to install it; hidden imports stand for packages that are not there."""

from __future__ import annotations

import runpy
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import VeridynError
from veridyn.identify.estimators.feasible import _solver
from veridyn.live.arrivals import Messages, SampleColumns
from veridyn.papers.humanoid.walk import mujoco
from veridyn.studies.run.estimation import dask_executor
from veridyn.symbolic.gpu import open_gpu
from veridyn.view.admission import guarded_server

ROOT = Path(__file__).parents[1]
OF_PROJECT = {"test", "docs", "all"}
# Nothing of the package imports it: benchmarks compare with Pinocchio, and meshes need no package any more.
WITHOUT_A_MESSAGE = {"pinocchio", "collision"}


def log_named(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        file = folder / name
        file.write_bytes(b"PAR1" + bytes(100))
        return vd.load_log(file)

    return read


def hdf5(folder: Path) -> object:
    file = folder / "log.mat"
    file.write_bytes(b"MATLAB 7.3 MAT-file".ljust(512) + b"\x89HDF\r\n\x1a\n" + bytes(64))
    return vd.load_log(file)


# extra → packages that are hidden, and what is asked for without them
ASKED: list[tuple[str, tuple[str, ...], Callable[[Path], object]]] = [
    ("consistent", ("cvxpy",), lambda _: _solver()),
    ("consistent", ("clarabel",), lambda _: _solver()),
    ("geodesy", ("pymap3d",), lambda _: vd.files.enu_of([0.8], [0.1], [0.0], vd.files.GeoOrigin(0.8, 0.1, 0.0))),
    ("parquet", ("pyarrow", "veridyn.files.log.arrow"), log_named("log.parquet")),
    ("logs", ("asammdf",), log_named("log.mf4")),
    ("logs", ("rosbags", "rosbags.rosbag1"), log_named("log.bag")),
    ("logs", ("mcap", "mcap.exceptions"), log_named("log.mcap")),
    ("logs", ("pymatreader",), hdf5),
    ("view", ("viser",), lambda _: guarded_server("robot", "127.0.0.1", 0, None)),  # pyright: ignore[reportArgumentType]
    ("live", ("websockets.sync.server",), lambda _: Messages(SampleColumns(("t", 1.0), {}), 0)),
    ("cluster", ("distributed",), lambda _: dask_executor("tcp://127.0.0.1:1").__enter__()),
    ("mujoco", ("mujoco",), lambda _: mujoco()),
    ("gpu", ("cupy",), lambda _: open_gpu()),
    ("torch", ("torch",), lambda _: runpy.run_module("veridyn.training.torch_functions")),
    ("jax", ("jax",), lambda _: runpy.run_module("veridyn.training.jax_functions")),
]


@pytest.mark.parametrize(("extra", "hidden", "ask"), ASKED, ids=[f"{extra}-{hidden[0]}" for extra, hidden, _ in ASKED])
def test_the_message_names_the_extra_and_the_command(
    extra: str,
    hidden: tuple[str, ...],
    ask: Callable[[Path], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in hidden:
        package, _, module = name.rpartition(".")
        if package in sys.modules:  # which keeps what was imported before
            monkeypatch.delattr(sys.modules[package], module, raising=False)
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(VeridynError) as caught:
        ask(tmp_path)
    text = str(caught.value)
    assert "pip install" in text and f"veridyn[{extra}]" in text and "not installed" in text


def test_every_extra_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {extra for extra, _, _ in ASKED}
    assert asked == set(project["optional-dependencies"]) - OF_PROJECT - WITHOUT_A_MESSAGE


def test_a_table_of_text_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pandas", "veridyn.files.log.arrow"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "run.csv").write_text("t [s],q1 [deg]\n0,0\n0.1,90\n0.2,180\n", encoding="utf-8")
    assert vd.load_log(tmp_path / "run.csv")["q1"].values == pytest.approx([0.0, np.pi / 2, np.pi])
