"""The example of servos: delays and a missing anti-windup make a step overshoot, and the picture has every response."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_delays_and_windup_overshoot() -> None:
    example = runpy.run_path(str(EXAMPLES / "servos.py"))
    logs = {name: example["run"](machine) for name, machine in example["variants"]().items()}
    plain, old, clamped, wound = (example["figures"](log)[0] for log in logs.values())
    assert plain < 15.0 and clamped < 15.0
    assert old > 2.0 * plain
    assert wound > 3.0 * clamped
    picture = example["drawing"](logs)
    assert picture.count("stroke-width") == len(logs) + 1


def test_the_model_of_the_example_has_its_servos() -> None:
    found = runpy.run_path(str(EXAMPLES / "servos.py"))["variants"]()
    assert [c.name for c in found["as in the file"].controllers] == ["shoulder_servo", "elbow_servo"]
