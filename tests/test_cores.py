"""The benchmark of cores: its small form, and what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from benchmarks.cores import Rate, batch_lines, figures, lines, main, worker_counts


def test_two_threads_beside_two_processes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 600 samples each: every number is there and positive, and no ratio is judged."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert main(["--workers", "1", "--samples", "600", "--rounds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for name in ("threads", "processes"):
        assert set(found[f"samples_per_second_{name}"]) == {"1", "2"}
        assert all(rate > 0.0 for rate in found[f"samples_per_second_{name}"].values())
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert found["two_threads_over_two_processes"] == found["threads_over_processes"]["2"] > 0.0


@pytest.mark.parametrize(("most", "counts"), [(1, [1, 2]), (2, [1, 2]), (6, [1, 2, 4, 6]), (16, [1, 2, 4, 8, 16])])
def test_numbers_of_workers(most: int, counts: list[int]) -> None:
    assert worker_counts(most) == counts


def test_ratios_are_those_of_the_rates() -> None:
    found = {1: (Rate(100.0, 3.0), Rate(110.0, 3.0)), 2: (Rate(180.0, 3.1), Rate(200.0, 3.0))}
    assert figures(found)["two_threads_over_two_processes"] == pytest.approx(0.9)
    assert list(lines(found))[3].startswith("| 2 | 0 | 0 | 0.90 |")


def test_batches_by_the_number_of_threads(capsys: pytest.CaptureFixture[str]) -> None:
    """Two simulations a thread: every number is there and positive, and no ratio is judged."""
    assert main(["--batches", "--workers", "1", "--samples", "2", "--rounds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for name in ("runs_per_second", "steps_per_second", "over_one_thread", "cpu_microseconds_per_step"):
        assert set(found[name]) == {"1", "2"} and all(x > 0.0 for x in found[name].values())
    assert found["over_one_thread"]["1"] == 1.0
    table = list(batch_lines({1: Rate(100.0, 3.0), 2: Rate(150.0, 3.0)}))
    assert table[3].startswith("| 2 | 150 | 75 | 1.50 |")


def test_it_needs_no_peer() -> None:
    """It runs where NumPy, SciPy and numba are, and neither Pinocchio nor MuJoCo."""
    code = "import sys; sys.modules['pinocchio'] = sys.modules['mujoco'] = None; import benchmarks.cores"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
