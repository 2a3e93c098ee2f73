"""The study file that `new` writes without a log designs a motion, and says what it guessed."""

from pathlib import Path

import pytest

from studies.config.test_guessed_limits import robot
from veridyn.errors import ModelError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.studies.config.excite_template import excite_template
from veridyn.studies.config.study import load_study
from veridyn.studies.run.excite import excitation


def test_it_is_read_back_and_its_motion_keeps_the_limits(tmp_path: Path) -> None:
    file, study = robot(tmp_path), tmp_path / "motion.yaml"
    text = excite_template(file, load_urdf(file), study)
    assert "efforts that the dry friction of the model uses up: j3" in text
    assert sum("guessed" in line for line in text.splitlines()[1:]) == 7
    study.write_text(text.replace("search: {starts: 4}", "search: {starts: 1, iterations: 5}"))
    loaded = load_study(study, "excite")
    assert loaded.study.limits.force == {"j1": 40.0, "j2": 1000.0, "j4": 100.0}
    assert list(loaded.study.noise.sigma) == ["j1", "j2", "j3", "j4"]
    plan = excitation(loaded).plan
    _, q, qd, _ = plan.samples()
    for k, (low, high, speed) in enumerate(
        ((-1.0, 0.5, 1.5), (-3.1416, 3.1416, 2.0), (-3.1416, 3.1416, 1.0), (0, 0.04, 0.2))
    ):
        assert low - 1e-3 <= q[:, k].min() and q[:, k].max() <= high + 1e-3
        assert abs(qd[:, k]).max() <= speed * 1.001


def test_a_model_without_values_or_limits_gets_guesses_and_no_noise(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_text(
        "veridyn: 2\nname: bare\nbodies:\n  - {name: a, antecedent: ground, joint: turning, coordinate: q1}\n"
    )
    machine = load_model(tmp_path / "model.yaml")
    text = excite_template(tmp_path / "model.yaml", machine, tmp_path / "study.yaml")
    assert "# noise: {sigma: {joint: 0.1, …}}" in text
    (tmp_path / "study.yaml").write_text(text)
    assert load_study(tmp_path / "study.yaml", "excite").study.limits.actuators["q1"].range == (-1.0, 1.0)


def test_a_free_base_is_refused(tmp_path: Path) -> None:
    file = robot(tmp_path)
    with pytest.raises(ModelError, match=r"whose base is held[\s\S]*--base fixed"):
        excite_template(file, load_urdf(file, "free"), tmp_path / "study.yaml")
