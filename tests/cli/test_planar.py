"""A planar machine by points through the public door: identified, and observed on its tree, with a report that draws it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from strangers.slider_crank import write_bench
from veridyn.cli.app import app


@pytest.mark.parametrize("verb", ["identify", "observe"])
def test_a_slider_crank_of_flat_bodies_leaves_a_run_and_a_picture(tmp_path: Path, verb: str) -> None:
    """The torque is that of a closed form, with noise of 0.05 N·m; 0.4 % of its variation is not predicted behind a low-pass of 8 Hz."""
    write_bench(tmp_path)
    done = CliRunner().invoke(app, [verb, str(tmp_path / f"{verb}.yaml"), "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    (run,) = (tmp_path / "runs").iterdir()
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "cannot be drawn" not in page and "A body is drawn as the solid ellipsoid" in page
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert (run / "parameters.csv").is_file()
    if verb == "identify":
        assert result["figures"]["cross_validation_std_percent"] < 1.0
