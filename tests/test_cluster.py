"""The benchmark of clusters: its small form, in which workers and one thread find the same values."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from benchmarks.cluster import Shared, Streamed, lines, logs, main, values


def test_samples_that_are_made_and_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    """Three logs of 800 samples: what is printed is what was measured."""
    assert main(["--samples", "2400", "--piece", "800", "--shared", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["shared"] is None and found["streamed"]["samples"] == 2400
    assert 0.0 < found["streamed"]["before_megabytes"] <= found["streamed"]["peak_megabytes"]


def test_threads_find_the_values_of_one_thread() -> None:
    made = logs(2400, 800)
    with ThreadPoolExecutor(2) as pool:
        assert np.array_equal(values(made, pool), values(made))


def test_lines_say_load_and_rates() -> None:
    stream = Streamed(10_000_000, 90.0, 20.0, 300.0, 320.0, 0.7)
    share = Shared(1_000_000, 2, 5.0, 5.2, 0.96, (0.95, 0.97), 0.98, 0.0, 1.1)
    first, second = lines(stream, share)
    assert "10,000,000 samples" in first and "320 MB at its peak (load 0.7)" in first
    assert "96 % of the rate (95, 97), 98 % by the processor" in second and "(load 1.1)" in second
