"""An observer of a study, live: the numbers of `veridyn observe` sample by sample, sensors switched off, and bad samples."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strangers.bicycle_drive import Bicycle, write_csv
from veridyn.errors import FileError, ModelError
from veridyn.live.machine import MachineTracker
from veridyn.live.opening import Arriving, open_session
from veridyn.live.tracker import Sample
from veridyn.observe.filters.methods import Smoother
from veridyn.observe.measurements import Status
from veridyn.studies.config.study import load_study
from veridyn.studies.run.observer import observe_study

STUDY = Path(__file__).parents[2] / "examples" / "studies" / "crane.yaml"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Without an error of the model: it is learned along a whole log, which an observer of single samples does not have."""
    path = tmp_path_factory.mktemp("study") / STUDY.name
    text = STUDY.read_text(encoding="utf-8")
    path.write_text(text.replace("process_noise:\n", "process_noise:\n  model_error: off\n"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def session(study):
    return open_session(str(study), pace=np.inf)


@pytest.fixture(scope="module")
def batch(study):
    return observe_study(load_study(study))


@pytest.fixture
def tracker(session):
    session.tracker.restart()
    return session.tracker


def rows_of(tracker: MachineTracker, samples) -> list:
    return [tracker.take(s) for s in samples]


def test_rows_are_the_numbers_of_the_whole_log(tracker, session, batch):
    found = [r.row for r in rows_of(tracker, session.source.log)]
    o, e = batch.observation, batch.observation.estimates
    n = len(o.states)
    assert [r.t for r in found] == o.t.tolist()
    assert np.array([r.values for r in found])[:, :n] == pytest.approx(o.reduced, abs=1e-10)
    assert np.array([r.sigma for r in found])[:, :n] == pytest.approx(o.sigma, rel=1e-8)
    virtual = np.hstack([v.values for v in batch.virtual.values()])
    assert np.array([r.values for r in found])[:, n:] == pytest.approx(virtual, rel=1e-8, abs=1e-8)
    assert np.array([r.innovations for r in found]) == pytest.approx(e.innovations, abs=1e-10)
    assert np.array([r.status for r in found]).tolist() == e.status.tolist()
    dof = np.array(e.dof)
    assert np.array([r.nis for r in found])[dof > 0] == pytest.approx((e.nis / np.maximum(dof, 1))[dof > 0], rel=1e-6)
    names = [q.name for q in session.feed.layout.quantities]
    assert names[:n] == list(o.states) and names[n] == "load.x"


def test_a_sensor_that_is_switched_off_is_not_used_and_its_band_grows(tracker, session):
    samples = session.source.log
    first = rows_of(tracker, samples[:150])[-1].row
    tracker.switch("travel", False)
    off = rows_of(tracker, samples[150:200])[-1].row
    tracker.switch("travel", True)
    again = rows_of(tracker, samples[200:250])[-1].row
    assert off.status[0] == Status.MISSING and np.isnan(off.innovations[0])
    assert off.sigma[0] > 3.0 * first.sigma[0] and again.sigma[0] < 1.5 * first.sigma[0]


def test_bad_samples_are_named_and_the_observer_goes_on(tracker, session):
    samples = session.source.log
    rows_of(tracker, samples[:50])
    late = tracker.take(replace(samples[10], t=samples[10].t))
    assert late.row is None and "out of order" in late.alarms[0].text
    broken = tracker.take(Sample(samples[50].t, {"travel": np.nan, "tilt": np.inf}, 0.0))
    assert broken.row.status == [Status.NOT_FINITE] * 2
    assert any("'travel' is not used (not finite)" in a.text for a in broken.alarms)
    jump = tracker.take(replace(samples[51], t=1e9))
    assert jump.row is None and jump.alarms[0].key == "clock jumps"
    well = tracker.take(samples[52])
    assert well.row is not None and np.isfinite(well.row.values).all()


def test_a_sender_that_begins_again_is_observed_again(tracker, session):
    samples = session.source.log
    rows_of(tracker, samples[:200])
    found = rows_of(tracker, samples[:120])
    assert any(a.key == "restart" for f in found for a in f.alarms)
    assert found[-1].row is not None and found[-1].row.t == samples[119].t


def test_the_machine_is_drawn_where_the_estimate_has_it(tracker, session):
    done = rows_of(tracker, session.source.log[:80])[-1]
    points = tracker.points(done.pose)
    values = dict(zip((q.name for q in session.feed.layout.quantities), done.row.values, strict=True))
    assert points.shape[1] == 3
    assert any(np.allclose(p[:2], [values["load.x"], values["load.y"]], atol=1e-9) for p in points)


def test_a_session_shows_all_of_it(session):
    session.tracker.restart()
    session.run()
    feed = session.feed
    assert feed.last == len(session.source.log) and not feed._state["running"]
    assert any("'tilt' is not used (outlier)" in a.text for a in feed.alarms)


def test_a_smoother_is_refused(session):
    prepared = session.tracker._prepared
    smoothing = replace(prepared, setup=replace(prepared.setup, method=Smoother()))
    with pytest.raises(ModelError, match="a smoother needs the whole log"):
        MachineTracker(smoothing)


def test_samples_that_arrive_need_no_log(tmp_path: Path):
    text = STUDY.read_text().replace("veridyn:crane.csv", "none.csv")
    (tmp_path / "crane.yaml").write_text(text)
    made = open_session(str(tmp_path / "crane.yaml"), arriving=Arriving(udp=0))
    assert made.source.words.startswith("UDP packets to 127.0.0.1:") and made.pace is None
    made.source._socket.close()


CAR = Bicycle(duration=12.0, rate=25.0)
MODEL = f"""veridyn: 2
name: car
car: {{mass: {CAR.mass}, front: {CAR.front}, rear: {CAR.rear}, yaw_inertia: {CAR.inertia},
  steering_offset: {{value: 0, sigma: 0.01}},
  front_stiffness: {{value: {CAR.cf}, sigma: 1}}, rear_stiffness: {{value: {CAR.cr}, sigma: 1}}}}
"""
CAR_STUDY = """veridyn: 1
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
    (folder / "study.yaml").write_text(CAR_STUDY, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["ekf", "ukf"])
def test_rows_of_a_car_are_the_numbers_of_its_whole_drive(folder: Path, name: str):
    (folder / "study.yaml").write_text(f"{CAR_STUDY}filter: {{name: {name}}}\n", encoding="utf-8")
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


def test_a_smoother_of_a_car_is_refused(folder: Path):
    (folder / "smoother.yaml").write_text(CAR_STUDY + "filter: {name: smoother}\n", encoding="utf-8")
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
