"""From a study to a mechanism and what drives it."""

from pathlib import Path

import numpy as np
import pytest

from studies.arm_simulation import PUSHED, REPOSITORY, written
from veridyn.errors import FileError
from veridyn.studies.config.study import load_study
from veridyn.studies.run.simulation.mechanisms import mechanism_setup


def setup(folder: Path, text: str):
    return mechanism_setup(load_study(written(folder, text)))


def test_loads_over_time(tmp_path: Path) -> None:
    made = setup(tmp_path, PUSHED)
    assert made.loads is not None and not made.conservative and made.method.formulation == "index3"
    assert made.loads(1.0)["motor"][0] == pytest.approx(120.0 * np.sin(2.0 * np.pi * 0.2))
    assert made.loads(2.1)["motor"][0] == 0.0
    assert setup(tmp_path, PUSHED.replace("{step: 0.01}", "{name: RK4, step: 0.01}")).method.rule == "RK4"


def test_a_mechanism_without_friction_and_loads_keeps_its_energy(tmp_path: Path) -> None:
    text = (REPOSITORY / "src/veridyn/machines/crane.yaml").read_text(encoding="utf-8")
    friction = "elements:\n  - {kind: damper, on: x, value: 40, name: rail_friction}\n"
    assert friction in text
    written(tmp_path, text.replace(friction, ""), "free.yaml")
    lines = [line for line in PUSHED.splitlines() if not line.startswith(("model", "inputs"))]
    assert setup(tmp_path, "\n".join([*lines, "model: {file: free.yaml}\n"])).conservative


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("swing: 0.1", "swin: 0.1", r"'swin' is no coordinate of 'crane'(.|\n)*'swing'"),
        ("motor: 120", "moter: 120", r"'moter' is no input(.|\n)*'motor'"),
        ("{step: 0.01}", "{name: LSODA}", "'LSODA' integrates trees"),
        ("crane.yaml", "crabe.yaml", "there is no such model file"),
        ("start: {", "start: {base: {}, ", "a mechanism stands on the ground"),
        ("coordinates: {x: 0.5, swing: 0.1}", "rates: {T.x: 1, x: 1, swing: 1}", "follows from the others"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        setup(tmp_path, PUSHED.replace(old, new))
