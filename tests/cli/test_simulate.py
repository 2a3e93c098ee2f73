"""``veridyn simulate``, and what it wrote read by ``veridyn identify`` and ``veridyn observe``."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from typer.testing import CliRunner, Result

from studies.arm_simulation import FREE, LED, PUSHED, STUDIES, written
from veridyn.cli.app import app
from veridyn.files.log.load import load_log
from veridyn.studies.config.study import load_study

KEPT = {"log.csv", "truth.csv", "result.json", "parameters.csv", "report.html", "study.yaml", "versions.json"}


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simulate")


@pytest.fixture(scope="module")
def study(folder: Path) -> Path:
    """The arm of the examples, with one of its three periods."""
    text = (STUDIES / "simulate_arm.yaml").read_text(encoding="utf-8")
    assert "duration: 32" in text and "file: simulate_arm_model.yaml" in text
    model = STUDIES / "simulate_arm_model.yaml"
    text = text.replace("duration: 32", "duration: 12").replace("file: simulate_arm_model.yaml", f"file: {model}")
    return written(folder, text, "arm.yaml")


@pytest.fixture(scope="module")
def arm(study: Path, folder: Path) -> Result:
    return invoke("simulate", str(study), "--out", str(folder))


@pytest.fixture(scope="module")
def crane(folder: Path) -> Result:
    """The crane of the examples, for half of its time."""
    text = (STUDIES / "simulate_crane.yaml").read_text(encoding="utf-8")
    assert "duration: 20" in text
    study = written(folder, text.replace("duration: 20", "duration: 10"), "crane.yaml")
    return invoke("simulate", str(study), "--out", str(folder))


def test_a_run_folder_holds_log_truth_and_report(arm: Result, study: Path, folder: Path) -> None:
    assert arm.exit_code == 0, arm.output
    run = folder / "three-joint-arm-001"
    assert arm.stdout.splitlines()[-1] == str(run / "report.html") and "simulating" in arm.stderr
    assert {p.name for p in run.iterdir()} - {"runs"} == KEPT | {"identify.yaml"}
    log, truth = load_log(run / "log.csv"), load_log(run / "truth.csv")
    assert set(log.names) == {f"{part}.q{k}" for part in ("q", "force") for k in (1, 2, 3)}
    off = log["force.q1"].values - truth["force.q1"].values
    assert np.std(off) == pytest.approx(0.3, rel=0.05)
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert set(result["inputs"]) == {"study", "model"} and result["figures"]["samples"] == 2401
    assert {"duration", "real_time_factor", "tracking_error"} <= set(result["figures"])
    page = (run / "report.html").read_text(encoding="utf-8")
    for words in ("Simulation of “three-joint arm”", "Motion", "Inputs", "Sensors", "Energy", "Tracking", "player"):
        assert words in page
    assert len(page) < 2_000_000
    assert load_study(run / "study.yaml").study == load_study(study).study


@pytest.mark.slow
@pytest.mark.parametrize(("name", "then"), [("arm", "identify"), ("crane", "observe")])
def test_the_examples_go_round_trip(tmp_path: Path, name: str, then: str) -> None:
    done = invoke("simulate", str(STUDIES / f"simulate_{name}.yaml"), "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    (study,) = tmp_path.glob(f"*/{then}.yaml")
    found = invoke(then, str(study))
    assert found.exit_code == 0, found.output


def test_what_identify_finds_in_the_log_is_the_truth(arm: Result, folder: Path) -> None:
    assert arm.exit_code == 0
    run = folder / "three-joint-arm-001"
    found = invoke("identify", str(run / "identify.yaml"))
    assert found.exit_code == 0, found.output
    made = run / "runs" / "three-joint-arm-identified-001"
    result = json.loads((made / "result.json").read_text(encoding="utf-8"))
    # The study is run with the model that was simulated, so what it believed before is the truth.
    off = np.array([(p["value"] - p["prior"]) / p["sigma"] for p in result["parameters"]])
    assert len(off) == result["figures"]["base_parameters"] == 21
    assert np.abs(off).max() < 4.0  # of 21 unit normals in one log of 750
    assert 0.5 < (off**2).mean() < 2.0  # a mean of 21 squares of unit normals is 1 ± 0.31
    assert result["figures"]["residual_sigma"] == pytest.approx(1.0, abs=0.05) and result["figures"]["suspicions"] == 0


def test_what_observe_finds_in_the_log_is_the_truth(crane: Result, folder: Path) -> None:
    assert crane.exit_code == 0, crane.output
    run = folder / "crane-001"
    assert {p.name for p in run.iterdir()} - {"runs"} == KEPT | {"observe.yaml"}
    text = (run / "observe.yaml").read_text(encoding="utf-8")
    # The model is the true one and the motor's force is measured: its process noise is that measurement's noise, 2 N.
    process_noise = "process_noise: {force: {x: 1, swing: 0.01}, start: 0.05, start_rate: 0.01}\nvirtual: {load: {kind: position, on: L}}\n"
    study = written(run, text + process_noise, "sure.yaml")
    found = invoke("observe", str(study))
    assert found.exit_code == 0, found.output
    made = run / "runs" / "crane-observed-001"
    result = json.loads((made / "result.json").read_text(encoding="utf-8"))["figures"]
    assert 0.8 < result["nis"] < 1.2 and result["rejected"] == 0
    truth, states = load_log(run / "truth.csv"), load_log(made / "states.csv")
    for name, true in (("swing", "q.swing"), ("x", "q.x"), ("load.x", "q.L.x")):
        off = states[name].values - truth[true].values
        assert np.sqrt((off[200:] ** 2).mean()) < 3.0 * states[f"{name}.sigma"].values[200:].mean()
    bias = load_log(run / "log.csv")["tilt"].values - truth["q.swing"].values
    assert states["bias.tilt"].values[-1] == pytest.approx(bias.mean(), abs=4.0 * states["bias.tilt.sigma"].values[-1])


def test_a_trajectory_of_excite_is_simulated(tmp_path: Path) -> None:
    excite = """
veridyn: 1
kind: excite
name: plan
model: {file: MODEL}
limits: {actuators: {q1: {range: [-1, 1], speed: 2}, q2: {range: [-1, 1], speed: 2}, q3: {range: [-1, 1], speed: 2}}}
motion: {harmonics: 3, frequency: 0.5}
search: {starts: 1, iterations: 5}
periods: 1
"""
    model = str(STUDIES / "simulate_arm_model.yaml")
    designed = invoke("excite", str(written(tmp_path, excite.replace("MODEL", model), "excite.yaml")))
    assert designed.exit_code == 0, designed.output
    text = FREE.replace("duration: 0.5\n", "") + "motion: {file: runs/plan-001/trajectory.csv}\n"
    done = invoke("simulate", str(written(tmp_path, text)))
    assert done.exit_code == 0, done.output
    plan = load_log(tmp_path / "runs" / "plan-001" / "trajectory.csv", time="time")
    truth = load_log(tmp_path / "runs" / "swing-001" / "truth.csv")
    for name in ("q.q1", "qd.q2", "qdd.q3"):
        assert truth[name].values == pytest.approx(plan[name].values, abs=1e-6)
    result = json.loads((tmp_path / "runs" / "swing-001" / "result.json").read_text(encoding="utf-8"))
    assert set(result["inputs"]) == {"study", "model", "motion"}


def test_a_missed_limit_is_told_with_code_1_and_nothing_is_written_over(tmp_path: Path) -> None:
    study = written(tmp_path, PUSHED + "accept: {tracking_error: 1}\n")
    for k in (1, 2):
        found = invoke("simulate", str(study))
        assert found.exit_code == 1 and "missed: error under the controller" in found.stderr
        page = (tmp_path / "runs" / f"crane-00{k}" / "report.html").read_text(encoding="utf-8")
        assert page.count("Missed: error under the controller") == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rate: 100", "rates: 100", "there is no key 'rates' here"),
        ("sine: {q1", "sine: {q7", "'q7' is not among the coordinates to lead"),
        ("priors: keep", "priors: forget", "these parameters have no value"),
        ("kind: simulate", "kind: observe", "Run it with: veridyn observe"),
    ],
)
def test_bad_input_is_answered_with_code_2(tmp_path: Path, old: str, new: str, words: str) -> None:
    found = invoke("simulate", str(written(tmp_path, LED.replace(old, new))), "--out", str(tmp_path / "out"))
    assert found.exit_code == 2 and words in found.output
    assert not list((tmp_path / "out").glob("*"))


def test_show_and_help() -> None:
    shown = invoke("simulate", str(STUDIES / "simulate_crane.yaml"), "--show")
    assert shown.exit_code == 0 and "friction_speed: 0.02" in shown.output and "# Longest step" in shown.output
    helped = invoke("simulate", "--help")
    assert "veridyn simulate arm-simulate.yaml --out runs" in helped.output and "codes: 0 done" in " ".join(
        helped.output.split()
    )


def test_a_closed_machine_goes_round_trip(tmp_path: Path) -> None:
    """The linkage is led through turns of its crank; identify closes the loop from the crank's angle alone."""
    study = """
veridyn: 1
kind: simulate
name: linkage
seed: 1
model: {file: "veridyn:linkage.yaml"}
motion: {fourier: {frequency: 0.25, centre: {q1: 1}, sine: {q1: [3, 0.6, -0.4]}, cosine: {q1: [0.5, -0.7, 0.3]}}}
duration: 4
rate: 200
sensors: {q.q1: {noise: 1e-5}, force.q1: {noise: 0.05}}
"""
    done = invoke("simulate", str(written(tmp_path, study)))
    assert done.exit_code == 0, done.output
    run = tmp_path / "runs" / "linkage-001"
    found = invoke("identify", str(run / "identify.yaml"))
    assert found.exit_code == 0, found.output
    result = json.loads((run / "runs" / "linkage-identified-001" / "result.json").read_text(encoding="utf-8"))
    off = np.array([(p["value"] - p["prior"]) / p["sigma"] for p in result["parameters"]])
    assert len(off) == result["figures"]["base_parameters"] and np.abs(off).max() < 4.0


@pytest.mark.slow
def test_the_delta_robot_of_the_examples_goes_round_trip(tmp_path: Path) -> None:
    done = invoke("simulate", str(STUDIES / "simulate_delta.yaml"), "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    found = invoke("identify", str(tmp_path / "delta-001" / "identify.yaml"))
    assert found.exit_code == 0, found.output
    made = tmp_path / "delta-001" / "runs" / "delta-identified-001" / "result.json"
    result = json.loads(made.read_text(encoding="utf-8"))
    off = np.array([(p["value"] - p["prior"]) / p["sigma"] for p in result["parameters"]])
    assert len(off) == 40 and np.abs(off).max() < 3.0 and 0.5 < (off**2).mean() < 2.0


SWING = """
veridyn: 2
name: swing
gravity: [9.81, 0, 0]
bodies:
  - {name: arm, joint: turning, coordinate: q1, inertia: {mass: 2, centre: [0.3, 0, 0], about_centre: [0.02, 0, 0, 0.02, 0, 0.02]}}
elements:
  - {kind: law, on: q1, formula: c**3 + 0.1*v*signal(oil), name: k3, value: 4}
"""
FALLING = """
veridyn: 1
kind: simulate
name: swing
model: {file: model.yaml}
duration: 2
rate: 100
start: {coordinates: {q1: 0.8}}
inputs: {formulas: {signal.oil: 2 + t}}
"""


def test_a_law_of_ones_own_reads_its_signal(tmp_path: Path) -> None:
    """J q̈ = −m g l sin q − 4 (q³ + 0.1 q̇ (2 + t)), integrated by SciPy; without the signal the study is refused."""
    (tmp_path / "model.yaml").write_text(SWING, encoding="utf-8")
    (tmp_path / "study.yaml").write_text(FALLING, encoding="utf-8")
    done = invoke("simulate", str(tmp_path / "study.yaml"), "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    log = np.loadtxt(tmp_path / "swing-001" / "log.csv", delimiter=",", skiprows=1)

    def rate(t: float, x: np.ndarray) -> list[float]:
        return [x[1], (-2 * 9.81 * 0.3 * np.sin(x[0]) - 4.0 * (x[0] ** 3 + 0.1 * x[1] * (2 + t))) / (0.02 + 2 * 0.09)]

    truth = solve_ivp(rate, (0.0, 2.0), [0.8, 0.0], t_eval=log[:, 0], rtol=1e-10, atol=1e-10).y[0]
    assert log[:, 1] == pytest.approx(truth, abs=1e-5)
    (tmp_path / "study.yaml").write_text(FALLING.replace("inputs:", "# inputs:"), encoding="utf-8")
    done = invoke("simulate", str(tmp_path / "study.yaml"), "--out", str(tmp_path))
    assert done.exit_code == 2 and "reads the signal 'oil'" in done.output and "formulas: {signal.oil" in done.output
