"""The vehicle observed sample by sample stays with the truth."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "stream_buggy.py"


def test_it_follows_the_vehicle(capsys: pytest.CaptureFixture[str]):
    assert runpy.run_path(str(EXAMPLE))["main"](0.6) < 2e-3
    assert "off by" in capsys.readouterr().out
