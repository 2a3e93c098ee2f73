"""``model: {fit: RUN}`` in study files, through the command line: identify, then simulate, observe and identify again."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from studies.bench_robot import Bench
from veridyn.cli.app import app
from veridyn.files.archive import load, save

RUN = "runs/bench-001"
SENSORS = "sensors:\n" + "".join(
    f"  - {{name: encoder{k}, kind: coordinate, on: q{k}, sigma: 0.001}}\n" for k in (1, 2, 3)
)
OBSERVE = """\
veridyn: 1
kind: observe
name: seen
model: {fit: RUN}
log:
  file: validation.csv
  time: t [s]
  columns:
    encoder1: q1 [rad]
    encoder2: q2 [rad]
    encoder3: q3 [rad]
    force.q1: tau1 [N*m]
    force.q2: tau2 [N*m]
    force.q3: tau3 [N*m]
  end: 1
filter: {name: ekf, step: 0.005}
process_noise: {force: 1, start: 0.1, start_rate: 1}
start: {coordinates: {}}
"""
SIMULATE = """\
veridyn: 1
kind: simulate
name: fallen
model: {fit: RUN}
duration: 0.1
rate: 100
"""


def called(folder: Path, kind: str, text: str) -> Result:
    study = folder / f"{kind}.yaml"
    study.write_text(text)
    return CliRunner().invoke(app, [kind, str(study)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A robot with sensors, identified."""
    folder = tmp_path_factory.mktemp("fitted")
    bench = Bench(folder)
    bench.study += "estimator: {name: consistent}\n"
    study = bench.write()
    model = folder / "model.yaml"
    model.write_text(model.read_text() + SENSORS)
    done = CliRunner().invoke(app, ["identify", str(study)])
    assert done.exit_code == 0, done.output
    return folder


def test_the_identified_machine_is_observed_with_its_covariance(folder: Path) -> None:
    done = called(folder, "observe", OBSERVE.replace("RUN", RUN))
    assert done.exit_code == 0, done.output
    run = Path(done.stdout.splitlines()[-1]).parent
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert set(result["inputs"]) == {"study", "model", "log"}
    table = np.genfromtxt(run / "states.csv", delimiter=",", names=True, deletechars="")
    log = np.genfromtxt(folder / "validation.csv", delimiter=",", names=True, deletechars="")
    last = np.searchsorted(log["t"], table["t_[s]"][-1] - 1e-9)
    assert abs(table["q1_[rad]"][-1] - log["q1"][last]) < 0.01
    # the parameters of the fit are states that no reading corrects: their deviations are those of the fit
    fit = load(folder / RUN / "fit.json")
    uncertainty = fit.machine().uncertainty
    assert uncertainty is not None
    considered = {p["name"].removeprefix("parameter."): p["sigma"] for p in result["parameters"]}
    found = [considered[n] for n in uncertainty.names if n in considered]
    assert len(found) > 5
    np.testing.assert_allclose(
        found, [s for n, s in zip(uncertainty.names, uncertainty.sigma, strict=True) if n in considered]
    )
    assert "Observation of" in (run / "report.html").read_text(encoding="utf-8")


def test_it_is_simulated_and_identified_again(folder: Path) -> None:
    done = called(folder, "simulate", SIMULATE.replace("RUN", RUN))
    assert done.exit_code == 0, done.output
    written = (Path(done.stdout.splitlines()[-1]).parent / "identify.yaml").read_text(encoding="utf-8")
    assert "fit:" in written and "file: model" not in written
    bench = (
        (folder / "study.yaml")
        .read_text()
        .replace("{file: model.yaml}", f"{{fit: {RUN}}}")
        .replace("name: bench", "name: twice")
    )
    done = called(folder, "identify", bench)
    assert done.exit_code == 0, done.output
    first, again = load(folder / RUN / "fit.json"), load(folder / "runs/twice-001/fit.json")
    np.testing.assert_array_equal(again.described.parameters.values, first.standard)


def fault_of(folder: Path, kind: str, text: str) -> str:
    done = called(folder, kind, text)
    assert done.exit_code == 2, done.output
    return " ".join(done.output.split())


@pytest.mark.parametrize(("kind", "text"), [("observe", OBSERVE), ("simulate", SIMULATE)])
def test_a_run_that_is_not_there_or_has_no_fit(folder: Path, kind: str, text: str) -> None:
    message = fault_of(folder, kind, text.replace("RUN", "runs/bench-009"))
    assert "model.fit (line 4): there is no such run." in message and "bench-001" in message
    (folder / "runs" / f"empty-{kind}").mkdir(exist_ok=True)
    message = fault_of(folder, kind, text.replace("RUN", f"runs/empty-{kind}"))
    assert "model.fit (line 4): this run has no fit." in message and "veridyn identify" in message
    (folder / "runs" / f"empty-{kind}" / "fit.json").write_text("{}")
    assert "the fit cannot be read" in fault_of(folder, kind, text.replace("RUN", f"runs/empty-{kind}"))


def test_a_fit_that_cannot_move_is_refused(folder: Path) -> None:
    fit = load(folder / RUN / "fit.json")
    target = folder / "runs" / "negative-001"
    target.mkdir()
    values = np.where(
        [column == fit.described.parameters.index("ZZ3") for column in fit.base.columns], -5.0, fit.values
    )
    save(replace(fit, values=values), target / "fit.json")
    message = fault_of(folder, "observe", OBSERVE.replace("RUN", "runs/negative-001"))
    words = (
        "model.fit (line 4): the identified machine cannot be simulated or observed: its mass matrix is not positive"
    )
    assert words in message and "estimator 'consistent'" in message


def test_directions_that_were_not_excited_need_a_deviation(folder: Path) -> None:
    """The gain of a motor whose current stays zero cannot be identified."""
    still = folder / "still"
    still.mkdir()
    bench = Bench(still)
    for log in (bench.training, bench.validation):
        log["i"] = np.zeros_like(log["t"])
    gain = "{file: model.yaml, elements: [{kind: drive_gain, on: q1, signal: current, name: K}]}"
    bench.study = bench.study.replace("{file: model.yaml}", gain).replace(
        "tau3 [N*m]", "tau3 [N*m]\n    signal.current: i [A]"
    )
    bench.study += "values: {dead: warn}\nestimator: {name: wls}\n"
    done = CliRunner().invoke(app, ["identify", str(bench.write())])
    assert done.exit_code == 0, done.output
    message = fault_of(still, "simulate", SIMULATE.replace("RUN", RUN))
    assert "model.fit (line 4): the motion of this fit did not show K" in message and "unexcited: 0.3" in message
    text = (
        SIMULATE.replace("{fit: RUN}", f"{{fit: {RUN}, unexcited: 0.3}}") + "inputs: {formulas: {signal.current: 0}}\n"
    )
    assert called(still, "simulate", text).exit_code == 0


@pytest.mark.parametrize("kind", ["observe", "simulate"])
def test_either_a_file_or_a_fit(folder: Path, kind: str) -> None:
    text = OBSERVE if kind == "observe" else SIMULATE
    assert "either file or fit" in fault_of(folder, kind, text.replace("{fit: RUN}", "{fit: a, file: b}"))
    assert "a fit: unexcited" in fault_of(
        folder, kind, text.replace("{fit: RUN}", "{file: model.yaml, unexcited: 0.3}")
    )
