"""Motor and link encoders of a KUKA KR300 (J. Weigand, MIT licence): delay, stiffness and deflection, fitted on A and predicted on B."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from real_logs import folder
from veridyn.cli.app import app

STUDY = Path(__file__).parents[2] / "examples" / "studies" / "kr300.yaml"
AUTHORS = (4.58e6, 7.52e6, 4.10e6)  # N·m/rad, from the same machine and more motions


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    out, root = tmp_path_factory.mktemp("kr300"), folder("kr300").parent
    done = CliRunner().invoke(app, ["identify", str(STUDY), "--out", str(out), "--data", str(root)])
    assert done.exit_code == 0, done.output
    return json.loads((out / "kr300-001" / "result.json").read_text("utf-8"))["figures"]


def test_deflection_of_the_other_recording(figures):
    """A linear fit with a delay leaves 12.8, 11.2 and 8.4 % of the standard deviation."""
    for k, limit in enumerate((12.0, 11.0, 8.0), 1):
        assert figures[f"deflection_std_percent_{k}"] <= limit


def test_delay_and_stiffness_agree_between_recordings(figures):
    assert abs(figures["encoder_delay"] - figures["encoder_delay_validation"]) < 1.5e-4
    for k in (1, 2, 3):
        assert figures[f"stiffness_{k}_agreement"] < 2.0


def test_what_is_determined(figures):
    """Axis 1 moves slowly and carries no gravity; axes 2 and 3 are within 30 % of what the authors state."""
    assert [figures[f"stiffness_{k}_determined"] for k in (1, 2, 3)] == [0.0, 1.0, 1.0]
    for k in (2, 3):
        assert figures[f"stiffness_{k}"] == pytest.approx(AUTHORS[k - 1], rel=0.3)
