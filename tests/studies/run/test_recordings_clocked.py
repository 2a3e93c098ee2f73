"""Studies of logs whose channels have clocks of their own: MDF files and bags give the parameters that the same log as a table gives."""

from pathlib import Path

import numpy as np
import pytest

from files.log.bags_made import START, ros_2
from studies.bench_robot import JOINTS, STUDY, Bench, recording, robot
from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.observe import ObservedLogSettings
from veridyn.studies.config.study import load_study, parse_study
from veridyn.studies.config.template import template
from veridyn.studies.result import fingerprint
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.recordings import Recordings, single_log

SHORT = """\
veridyn: 1
kind: identify
name: bench
model: {file: model.yaml}
log:
  columns:
    q: /joint_states.position [rad]
    force: {column: /joint_states.effort, unit: N*m, times: -1}
training: [run]
signals: {lowpass: 8}
"""


def mdf(path: Path, columns: dict[str, np.ndarray], shift: float = 0.0) -> Path:
    """Positions and torques in groups of their own, the clock of torques `shift` later."""
    asammdf = pytest.importorskip("asammdf", reason="asammdf (the extra 'logs') reads and writes MDF")
    t = columns["t"]
    with asammdf.MDF(version="4.10") as file:
        file.append([asammdf.Signal(np.degrees(columns[c]), t, unit="°", name=f"pos_{c}") for c in JOINTS])
        late = t[:-1] + shift
        moved = {k: np.interp(late, t, columns[f"tau{k}"]) for k in (1, 2, 3)}
        file.append([asammdf.Signal(x, late, unit="Nm", name=f"torque_q{k}") for k, x in moved.items()])
        return Path(file.save(path))


def bag(path: Path, columns: dict[str, np.ndarray]) -> Path:
    pytest.importorskip("rosbags", reason="rosbags (the extra 'logs') reads and writes bags")

    def rows(m):
        for k, t in enumerate(columns["t"]):
            ns = START + round(t * 1e9)
            q, force = (np.array([columns[f"{c}{j}"][k] for j in (1, 2, 3)]) for c in ("q", "tau"))
            yield "/joint_states", ns, m.make("sensor_msgs/msg/JointState", m.header(ns), list(JOINTS), q, q[:0], force)

    return ros_2(path, rows)


def from_template(folder: Path, log: Path):
    text = template(folder / "model.yaml", robot(), [log], folder / "new.yaml")
    (folder / "new.yaml").write_text(text.replace("lowpass: auto", "lowpass: 8"))
    return text, run_identify(load_study(folder / "new.yaml"))


def test_a_study_written_for_an_mdf_file_runs_as_it_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write()
    text, found = from_template(tmp_path, mdf(tmp_path / "run.mf4", bench.training, shift=0.0013))
    assert "  time:" not in text
    assert "q.q1: pos_q1 [°] # guessed by the name in it" in text
    assert "force.q3: torque_q3 [Nm] # guessed by the name in it" in text
    assert found.suspicions == () and found.missed == ()
    whole = run_identify(load_study(bench.write_study()))
    # Chosen: the fits see other shares of the motion, and the torques of one were interpolated.
    assert found.study.fit.values == pytest.approx(whole.study.fit.values, rel=0.1, abs=0.05)


def test_a_study_written_for_a_bag_runs_as_it_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write()
    log = bag(tmp_path / "run", bench.training)
    text, found = from_template(tmp_path, log)
    assert 'q.q2: "/joint_states.position.q2 [rad]" # guessed by the name in it; unit guessed' in text
    assert found.suspicions == () and found.missed == ()


def test_one_line_of_a_study_means_all_joints(tmp_path: Path) -> None:
    bench = Bench(tmp_path, study=SHORT)
    bench.write()
    log = bag(tmp_path / "run", recording(1, 2.0))
    read = Recordings(load_study(tmp_path / "study.yaml"))
    assert read.logs[0].names == (*(f"q.{j}" for j in JOINTS), *(f"force.{j}" for j in JOINTS))
    np.testing.assert_array_equal(read.logs[0]["force.q2"].values, -recording(1, 2.0)["tau2"])
    assert read.hashes == {"run": fingerprint(log)}
    (log / "more").write_text("x")
    assert fingerprint(log) != read.hashes["run"]


def test_a_bag_is_not_read_in_blocks(tmp_path: Path) -> None:
    Bench(tmp_path, study=SHORT.replace("log:\n", "log:\n  block: 1000\n")).write()
    bag(tmp_path / "run", recording(1, 0.1))
    with pytest.raises(FileError, match=r"it cannot be read in blocks"):
        Recordings(load_study(tmp_path / "study.yaml"))


def test_what_needs_one_clock_refuses_several(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    loaded = load_study(bench.write())
    file = mdf(tmp_path / "run.mf4", bench.training, shift=0.001)
    columns = {"a": "pos_q1 [deg]", "b": "torque_q1 [Nm]"}
    log = ObservedLogSettings.model_validate({"file": "run.mf4", "columns": columns})
    with pytest.raises(FileError, match=r"its channels have clocks of their own in run.mf4, and this study needs one"):
        single_log(loaded, log, file)
    assert single_log(loaded, log, file, own_clocks=True).names == ("a", "b")


def test_the_clock_of_a_bag_can_be_that_of_its_recorder(tmp_path: Path) -> None:
    study = parse_study(plain_yaml(SHORT.replace("log:\n", "log:\n  time: received\n")))
    assert study.log.time == "received"
    Bench(tmp_path, study=SHORT.replace("log:\n", "log:\n  time: received\n")).write()
    bag(tmp_path / "run", recording(1, 0.1))
    log = Recordings(load_study(tmp_path / "study.yaml")).logs[0]
    assert log.notes["clock of /joint_states"] == "times of receipt"


def test_the_study_of_a_table_is_as_it_was() -> None:
    assert parse_study(plain_yaml(STUDY)).log.time == "t [s]"
