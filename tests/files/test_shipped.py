"""Files that come with veridyn."""

from __future__ import annotations

from pathlib import Path

import pytest

from veridyn.errors import DataError
from veridyn.files.machine.load import load_model
from veridyn.files.shipped import is_shipped, resolved, shipped, shipped_name
from veridyn.mechanics.natural.of_machine import mechanism_of


def test_a_mechanism_and_a_log() -> None:
    assert mechanism_of(load_model(shipped("veridyn:crane.yaml"))).name == "crane"
    assert shipped("veridyn:crane.csv").read_text(encoding="utf-8").startswith("time,trolley,angle")
    assert is_shipped("veridyn:crane.yaml") and not is_shipped("crane.yaml")


def test_there_and_back(tmp_path: Path) -> None:
    assert shipped_name(resolved(Path("veridyn:crane.csv"))) == "veridyn:crane.csv"
    assert resolved(tmp_path / "crane.csv") == tmp_path / "crane.csv" and shipped_name(tmp_path / "crane.csv") == ""


@pytest.mark.parametrize("name", ["veridyn:cran.yaml", "veridyn:../errors.py", "veridyn:", "veridyn:spatial.py"])
def test_what_is_not_there(name: str) -> None:
    with pytest.raises(DataError, match="veridyn brings no file"):
        shipped(name)
