"""The study file that `new --kind simulate` writes runs as it is, along a table or along a guessed motion."""

from pathlib import Path

import numpy as np
import pytest

from studies.config.test_guessed_limits import robot
from veridyn.errors import FileError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.studies.config.simulate_template import simulate_mechanism_template, simulate_template
from veridyn.studies.config.study import load_study
from veridyn.studies.run.simulate import simulate_study


def test_a_guessed_motion_keeps_ranges_and_speeds(tmp_path: Path) -> None:
    file, study = robot(tmp_path), tmp_path / "simulate.yaml"
    study.write_text(simulate_template(file, load_urdf(file), None, study))
    run = simulate_study(load_study(study, "simulate"))
    for joint, low, high, speed in (("j1", -1.0, 0.5, 1.5), ("j4", 0.0, 0.04, 0.2)):
        q, qd = run.truth[f"q.{joint}"].values, run.truth[f"qd.{joint}"].values
        assert low < q.min() and q.max() < high and np.ptp(q) > 0.1 * (high - low)
        assert np.abs(qd).max() < speed
    assert run.readings["q.j4"]["rms"] == pytest.approx(1e-6, rel=0.2)
    off = run.readings["force.j1"]
    assert 0.002 < off["rms"] / off["measured_rms"] < 0.2


def test_a_table_of_a_motion_is_followed(tmp_path: Path) -> None:
    file, study = robot(tmp_path), tmp_path / "simulate.yaml"
    t = 0.01 * np.arange(300)
    table = np.column_stack([t, *(0.01 * np.sin((k + 2) * t) + 0.01 for k in range(4))])
    head = "time [s]," + ",".join(f"q.j{k} [{'m' if k == 4 else 'rad'}]" for k in range(1, 5))
    np.savetxt(tmp_path / "motion.csv", table, delimiter=",", header=head, comments="")
    study.write_text(simulate_template(file, load_urdf(file), tmp_path / "motion.csv", study))
    run = simulate_study(load_study(study, "simulate"))
    np.testing.assert_allclose(run.truth["q.j2"].values, table[:, 2], atol=1e-9)
    np.savetxt(tmp_path / "other.csv", table[:, :2], delimiter=",", header="time [s],x", comments="")
    with pytest.raises(FileError, match=r"not the table of a motion[\s\S]*no q.j1"):
        simulate_template(file, load_urdf(file), tmp_path / "other.csv", study)


def test_a_mechanism_moves_as_its_loads_say(tmp_path: Path) -> None:
    machine, study = load_model("veridyn:crane.yaml"), tmp_path / "simulate.yaml"
    from veridyn.files.shipped import resolved

    text = simulate_mechanism_template(resolved(Path("veridyn:crane.yaml")), machine, study)
    study.write_text(text.replace("duration: 20", "duration: 0.5"))
    loaded = load_study(study, "simulate")
    assert loaded.study.model.file == "veridyn:crane.yaml" and list(loaded.study.inputs.formulas) == ["motor"]
    assert simulate_study(loaded).figures["duration"] == pytest.approx(0.5)
