"""The example of the seven-joint arm: what is promised is what is found."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest


def test_the_seven_joint_arm_is_identified_as_promised(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 57 parameters 95 % should lie within two deviations; fewer than 86 % (three deviations of that share) would be a lie."""
    inside = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "excitation.py"))["main"]()
    said = capsys.readouterr().out
    assert "5 harmonics by BIC" in said
    assert inside > 0.86
    columns = [line.split() for line in said.split("predicted")[1].splitlines()[1:] if line.strip() and "%" not in line]
    assert len(columns) == 57
    assert all(float(c[2]) == pytest.approx(float(c[3]), rel=0.2) for c in columns)
