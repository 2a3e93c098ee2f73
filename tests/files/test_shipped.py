"""Files that come with veridyn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import veridyn
from veridyn.errors import DataError
from veridyn.files.machine.load import load_model
from veridyn.files.shipped import is_shipped, resolved, shipped, shipped_files, shipped_name
from veridyn.mechanics.natural.of_machine import mechanism_of


def test_a_mechanism_and_a_log() -> None:
    assert mechanism_of(load_model(shipped("veridyn:crane.yaml"))).name == "crane"
    assert shipped("veridyn:crane.csv").read_text(encoding="utf-8").startswith("time,trolley,angle")
    assert is_shipped("veridyn:crane.yaml") and not is_shipped("crane.yaml")


PAPERS = ("buggy", "car_20", "car_2002", "car_38", "fourbar", "hexapod", "humanoid")
CORE = ("arm", "crane", "delta", "linkage", "palletizer", "spatial")


def test_models_of_the_core_and_of_the_papers_are_found_by_name() -> None:
    """Each once, whichever package brings it: two files of one name would hide each other."""
    root = Path(veridyn.__file__).parent
    there = sorted(f.name for f in root.rglob("*") if f.suffix in (".yaml", ".csv"))
    assert there == sorted(shipped_files()) == sorted([f"{name}.yaml" for name in (*CORE, *PAPERS)] + ["crane.csv"])


def test_a_paper_is_found_without_its_code() -> None:
    """The folder of a paper is looked up by name; none of its modules is imported."""
    script = (
        "import sys; import veridyn as vd; vd.load_model('veridyn:car_20.yaml');"
        "print(sorted(m for m in sys.modules if m.startswith('veridyn.papers.')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_there_and_back(tmp_path: Path) -> None:
    assert shipped_name(resolved(Path("veridyn:hexapod.yaml"))) == "veridyn:hexapod.yaml"
    assert shipped_name(resolved(Path("veridyn:crane.csv"))) == "veridyn:crane.csv"
    assert resolved(tmp_path / "crane.csv") == tmp_path / "crane.csv" and shipped_name(tmp_path / "crane.csv") == ""


@pytest.mark.parametrize("name", ["veridyn:cran.yaml", "veridyn:../errors.py", "veridyn:", "veridyn:spatial.py"])
def test_what_is_not_there(name: str) -> None:
    with pytest.raises(DataError, match="veridyn brings no file"):
        shipped(name)
