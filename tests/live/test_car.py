"""A car live: the numbers of `veridyn observe`, one sample later, and a picture that goes the way of the car."""

from pathlib import Path

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle, write_csv
from veridyn.errors import FileError
from veridyn.live.opening import open_session
from veridyn.observe.measurements import Status
from veridyn.studies.config.study import load_study
from veridyn.studies.run.observer import observe_study

CAR = Bicycle(duration=12.0, rate=25.0)
MODEL = f"""veridyn: 2
name: car
car: {{mass: {CAR.mass}, front: {CAR.front}, rear: {CAR.rear}, yaw_inertia: {CAR.inertia},
  steering_offset: {{value: 0, sigma: 0.01}},
  front_stiffness: {{value: {CAR.cf}, sigma: 1}}, rear_stiffness: {{value: {CAR.cr}, sigma: 1}}}}
"""
STUDY = """veridyn: 1
kind: observe
name: car
model: {file: model.yaml, formulation: single_track}
log:
  file: drive.csv
  time: t [s]
  rate: 25
  columns: {speed: 'speed [m/s]', steer: 'steer [rad]', yaw_rate: 'yaw_rate [rad/s]', ay: 'ay [m/s^2]'}
noise: {slip_error: 0.001, bank: 0.001, lateral: 0.02, yaw: 0.02, sensors: {yaw_rate: 0.003, ay: 0.1}}
checks: false
virtual: [sideslip, front_force, load_fl]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("car")
    write_csv(folder / "drive.csv", CAR.drive(3))
    (folder / "model.yaml").write_text(MODEL, encoding="utf-8")
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["ekf", "ukf"])
def test_rows_are_the_numbers_of_the_whole_log(folder: Path, name: str):
    (folder / "study.yaml").write_text(f"{STUDY}filter: {{name: {name}}}\n", encoding="utf-8")
    session = open_session(str(folder / "study.yaml"), pace=np.inf)
    rows = [done.row for s in session.source.log if (done := session.tracker.take(s)).row is not None]
    batch = observe_study(load_study(folder / "study.yaml"))
    e, n = batch.observation.estimates, len(batch.observation.states)
    assert len(rows) == len(e.t) - 1 and [r.t for r in rows] == e.t[:-1].tolist()
    assert np.array([r.values for r in rows])[:, :n] == pytest.approx(e.x[:-1], rel=1e-9, abs=1e-12)
    for j, track in enumerate(batch.virtual.values()):
        assert np.array([r.values[n + j] for r in rows]) == pytest.approx(track.values[:-1, 0], rel=1e-9, abs=1e-9)
        assert np.array([r.sigma[n + j] for r in rows]) == pytest.approx(track.sigma[:-1, 0], rel=1e-7)
    assert np.array([r.status for r in rows]).tolist() == e.status[:-1].tolist()


def test_a_smoother_is_refused(folder: Path):
    (folder / "smoother.yaml").write_text(STUDY + "filter: {name: smoother}\n", encoding="utf-8")
    with pytest.raises(FileError, match="a smoother needs the whole log"):
        open_session(str(folder / "smoother.yaml"), pace=np.inf)


def test_the_picture_goes_the_way_of_the_car_and_a_sensor_can_be_switched_off(folder: Path):
    session = open_session(str(folder / "study.yaml"), pace=np.inf)
    tracker, log = session.tracker, session.source.log
    poses = [done.pose for s in log[:200] if (done := tracker.take(s)).pose is not None]
    t, speed = [s.t for s in log[:199]], [s.inputs["speed"] for s in log[:199]]
    way = np.linalg.norm(np.diff(np.array(poses)[:, :2], axis=0), axis=1).sum()
    assert way == pytest.approx(np.trapezoid(speed, t), rel=0.02)
    before, after = tracker.points(poses[0]), tracker.points(poses[-1])
    assert np.linalg.norm(after[0] - before[0]) > 10.0
    lengths = [np.linalg.norm(p[5] - p[6]) for p in (before, after)]
    assert lengths[0] == pytest.approx(lengths[1])
    tracker.switch("yaw_rate", False)
    off = [tracker.take(s).row for s in log[200:230]]
    assert off[-1].status[tracker.layout.sensors and list(tracker.layout.sensors).index("yaw_rate")] == Status.MISSING
    assert off[-1].sigma[1] > 1.2 * off[0].sigma[1]
