"""The calculator of a fleet: its numbers are those one gets by hand."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCALE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "scale.py"))
Fleet, Costs = SCALE["Fleet"], SCALE["Costs"]


def test_a_fleet_of_a_hundred_thousand_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    """3.6e10 samples; 43 floats each are 6.2 TB, 71 doubles 20.4 TB; 5.9 µs on 16 cores are 3.7 h; 3.2 million a second 3.1 h."""
    found = SCALE["main"]()
    said = capsys.readouterr().out
    assert "3.6e+10 samples a day" in said and "logs 6.2 TB" in said and "20.4 TB" in said
    cores, gpus, best = found.values()
    assert cores.seconds == pytest.approx(3.6e10 * 5.9e-6 / 16)
    assert gpus.name == "identify(device='cuda')" and gpus.seconds == pytest.approx(11250.0)
    assert best.name == "filter and differentiate" and best.seconds == pytest.approx(4500.0)
    assert "one GPU has 645 s of work" in said


def test_what_is_slowest_changes_with_what_there_is() -> None:
    fleet = Fleet(cores=1000, gpus=100, storage=1e9)
    assert SCALE["slowest"](SCALE["on_gpus"](fleet, Costs())).name == "read the logs"
    assert SCALE["slowest"](SCALE["on_gpus"](Fleet(cores=1, gpus=100), Costs())).name == "filter and differentiate"


@pytest.mark.parametrize(("seconds", "text"), [(3.0, "3.0 s"), (90.0, "1.5 min"), (5400.0, "1.5 h")])
def test_durations_read_well(seconds: float, text: str) -> None:
    assert SCALE["duration"](seconds) == text
