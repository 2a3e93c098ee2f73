"""An identification followed live: what it has after the last sample is what least squares on the whole log has."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from studies.bench_robot import Bench
from veridyn.files.archive import load
from veridyn.identify.base import base_parameters
from veridyn.identify.logged import motion
from veridyn.live.identification import FitTracker, combinations, recorded_samples
from veridyn.live.opening import open_session
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import pipeline_of
from veridyn.studies.run.recordings import Recordings


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    bench = Bench(tmp_path_factory.mktemp("bench"))
    bench.write()
    file = bench.folder / "study.yaml"
    file.write_text(file.read_text() + "sampling: {filter: none}\n")
    return file


@pytest.fixture(scope="module")
def session(study: Path):
    made = open_session(str(study), pace=np.inf)
    made.run()
    return made


def test_the_last_estimate_is_that_of_the_whole_log(session, study):
    tracker: FitTracker = session.tracker
    loaded = load_study(study)
    work = pipeline_of(loaded, tracker._machine, Recordings(loaded)).start().logs
    log, lowpass = work.repaired[0].pieces[0], work.lowpass()[1]
    sampling = replace(work.samplings(work.motions(lowpass)[0], [], lowpass)[0], drop={}, trim=0)
    whole = motion(tracker._machine, log, tracker._builder.signals)
    reach = tracker._builder.reach
    used = tracker._builder.size * session.feed.last
    part = whole[reach : reach + used]
    batch = vd.identify(tracker._machine, part, "wls", settings=vd.IdentifySettings(sampling=sampling))  # the study's
    assert tracker.factors.samples == sum(row.samples for row in batch.rows)
    live = dict(zip(tracker.structure.names, tracker._estimate()[0], strict=True))
    off = [abs(live[n] - v) / s for n, v, s in zip(batch.names, batch.values, batch.sigma, strict=True)]
    assert max(off) < 0.02  # deviations: filters begin elsewhere
    assert tracker._estimate()[1] == pytest.approx(batch.sigma, rel=0.01)


def test_deviations_shrink_as_samples_come_in(session):
    rows = [json.loads(text) for text in session.feed._rows]
    early, last = (np.array([np.nan if s is None else s for s in row[4]]) for row in (rows[9], rows[-1]))
    assert np.isfinite(last).all()
    assert np.nanmedian(last / early) < 0.5


def test_it_is_saved_at_any_time(session):
    folder = Path(session.command({"do": "save"})["where"])
    again = load(folder / "fit.json")
    assert again.values == pytest.approx(session.tracker.fit.values, rel=1e-12)
    assert {f.name for f in folder.iterdir()} >= {"fit.json", "result.json", "parameters.csv"}
    assert Path(session.command({"do": "save"})["where"]) != folder


def test_a_parameter_that_is_not_excited_yet_has_no_value():
    machine = open_arm()
    whole = base_parameters(machine)
    same = combinations(whole, whole)
    assert same == pytest.approx(np.eye(whole.count), abs=1e-12)
    fewer = replace(whole, columns=whole.columns[1:], matrix=whole.matrix[1:])
    A = combinations(whole, fewer)
    assert np.isnan(A[0]).all() and A[1:] == pytest.approx(np.eye(whole.count - 1), abs=1e-12)


def open_arm():
    from studies.small_arm import small_arm

    return small_arm()


def test_samples_of_several_logs_go_on_one_after_the_other(tmp_path: Path):
    t = 0.1 * np.arange(4)
    logs = [vd.Experiment.from_arrays(t + at, {"q.q1": t}, {"q.q1": "rad"}) for at in (5.0, 0.0)]
    stamps = [s.t for s in recorded_samples(logs)]
    assert stamps == pytest.approx([5.0, 5.1, 5.2, 5.3, 6.3, 6.4, 6.5, 6.6])


def test_bad_samples_are_named_and_the_estimate_goes_on(session):
    tracker = session.tracker
    before = tracker.factors.samples
    log = session.source.log
    tracker.restart()
    broken = replace(log[0], values={**log[0].values, "q.q1": np.nan})
    assert tracker.take(broken).alarms[0].text == "'q.q1' is no number at 0 s and is bridged."
    assert tracker.take(replace(log[1], t=-5.0)).alarms[0].key == "out of order"
    found = [tracker.take(s) for s in log[1:900]]
    assert any(f.row is not None for f in found) and tracker.factors.samples > before


def test_what_cannot_be_chosen_from_arriving_samples_is_asked_for(tmp_path: Path):
    from veridyn.errors import FileError
    from veridyn.live.opening import Arriving

    Bench(tmp_path).write()
    with pytest.raises(FileError, match="samples that arrive cannot be waited for to choose this"):
        open_session(str(tmp_path / "study.yaml"), arriving=Arriving(udp=0))
