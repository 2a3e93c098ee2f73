import json
import re
import warnings
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from studies.bench_robot import Bench
from veridyn.cli.app import app
from veridyn.errors import IdentificationWarning
from veridyn.files.machine.write import save_model
from veridyn.model.single_track import PriorValue, car_machine
from veridyn.studies.config.study import load_study
from veridyn.studies.run.excite import excitation


def test_a_study_is_written_and_never_over_another(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    args = ["new", str(tmp_path / "model.urdf"), str(tmp_path / "training.csv"), "--out", str(tmp_path / "new.yaml")]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{tmp_path / 'new.yaml'} (1")
    assert len(load_study(tmp_path / "new.yaml").study.log.columns) == 9
    again = CliRunner().invoke(app, args)
    assert again.exit_code == 2 and "nothing is written over" in again.stderr


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    done = CliRunner().invoke(
        app, ["new", str(tmp_path / "model.yaml"), str(tmp_path / "none.csv"), "--out", str(tmp_path / "n.yaml")]
    )
    assert done.exit_code == 2 and "does not exist" in done.stderr
    assert not (tmp_path / "n.yaml").exists()


def test_a_mechanism_gets_a_study_to_observe_it_by(tmp_path: Path) -> None:
    """From nothing at all: mechanism and log come with veridyn."""
    study = tmp_path / "study.yaml"
    done = CliRunner().invoke(app, ["new", "veridyn:crane.yaml", "veridyn:crane.csv", "--out", str(study)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{study} (10 guesses")
    read = load_study(study, "observe").study
    assert (read.model.file, read.log.file) == ("veridyn:crane.yaml", "veridyn:crane.csv")


def test_bad_files_for_an_observer(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "n.yaml")]
    for args, words in (
        (["veridyn:crane.yaml", "veridyn:crane.csv", "veridyn:crane.csv"], "an observer reads one log"),
        (["veridyn:kran.yaml", "veridyn:crane.csv"], "veridyn brings no file 'kran.yaml'"),
        (["veridyn:crane.yaml", "veridyn:kran.csv"], "veridyn brings no file 'kran.csv'"),
        (["veridyn:crane.yaml", str(tmp_path / "none.csv")], "does not exist"),
    ):
        done = CliRunner().invoke(app, ["new", *args, *out])
        assert done.exit_code == 2 and words in done.stderr, done.output
        assert not (tmp_path / "n.yaml").exists()


def test_the_base_of_a_urdf_has_a_line_and_an_option(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    files = [str(tmp_path / "model.urdf"), str(tmp_path / "training.csv")]
    texts = {}
    for base in ("auto", "free"):
        out = tmp_path / f"{base}.yaml"
        done = CliRunner().invoke(app, ["new", *files, "--base", base, "--out", str(out)])
        assert done.exit_code == 0, done.output
        texts[base] = out.read_text()
        assert load_study(out).study.model.base == ("fixed" if base == "auto" else "free")
    assert "  base: fixed # the root stands on the ground; free: it moves (legged, flying)" in texts["auto"]
    assert "base.omega.x, base.omega.y" not in texts["auto"]
    assert "  base: free # the root moves" in texts["free"]
    assert "# not found, and needed: base.omega.x, base.omega.y, base.omega.z, base.acceleration.x" in texts["free"]


def test_inertias_that_no_body_has_get_a_line_or_are_refused(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    file = tmp_path / "model.urdf"
    file.write_text(file.read_text().replace('ixx="0.011', 'ixx="0.911', 1))
    args = ["new", str(file), str(tmp_path / "training.csv"), "--out", str(tmp_path / "new.yaml")]
    refused = CliRunner().invoke(app, [*args, "--strict"])
    assert refused.exit_code == 2 and "no distribution of mass" in refused.stderr
    assert not (tmp_path / "new.yaml").exists()
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0 and "1 of 3 links has an inertia that no physical body has" in done.stderr
    assert load_study(tmp_path / "new.yaml").study.model.impossible == "unknown"
    strict = CliRunner().invoke(
        app, ["identify", str(tmp_path / "new.yaml"), "--strict", "--out", str(tmp_path / "runs")]
    )
    assert strict.exit_code == 2 and "no distribution of mass" in strict.stderr


def test_without_a_log_a_motion_is_designed_and_simulated_on_request(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    model, motion, simulate = (str(tmp_path / n) for n in ("model.urdf", "motion.yaml", "simulate.yaml"))
    done = CliRunner().invoke(app, ["new", model, "--out", motion])
    assert done.exit_code == 0, done.output
    assert load_study(Path(motion), "excite").study.limits.actuators.keys() == {"q1", "q2", "q3"}
    done = CliRunner().invoke(app, ["new", model, "--kind", "simulate", "--out", simulate])
    assert done.exit_code == 0, done.output
    assert load_study(Path(simulate), "simulate").study.motion is not None


def test_kinds_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    Bench(tmp_path).write()
    model, log, out = str(tmp_path / "model.urdf"), str(tmp_path / "training.csv"), ["--out", str(tmp_path / "n.yaml")]
    for args, words in (
        ([model, "--kind", "identify"], "a log is needed"),
        ([model, log, "--kind", "excite"], "designed without a log"),
        ([model, log, "--kind", "observe"], "a study of kind identify is written"),
        ([model, log, log, "--kind", "simulate"], "follows one table"),
        ([model, log, "--kind", "simulate"], "not the table of a motion"),
    ):
        done = CliRunner().invoke(app, ["new", *args, *out])
        assert done.exit_code == 2 and words in done.stderr, done.output
        assert not (tmp_path / "n.yaml").exists()


def test_a_motion_is_designed_for_a_machine_by_points(tmp_path: Path) -> None:
    """As capabilities says, by its tree: the crank of a linkage that turns right round, and more than once."""
    out = tmp_path / "motion.yaml"
    done = CliRunner().invoke(app, ["new", "veridyn:fourbar.yaml", "--out", str(out)])
    assert done.exit_code == 0, done.output
    text = re.sub(r"range: \[.*?\]", "range: [-4, 6]", out.read_text()).replace("speed: 2", "speed: 5")
    text = text.replace("harmonics: 5", "harmonics: 2").replace("starts: 4", "starts: 1, iterations: 5")
    out.write_text(text.replace("acceleration: 8", "acceleration: 20"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentificationWarning)  # no noise is given
        plan = excitation(load_study(out, "excite")).plan
    assert plan.coordinates == ("phi",) and np.ptp(plan.samples()[1]) > 2.0 * np.pi and max(plan.used.values()) < 1.0


def test_an_observer_of_a_machine_by_points_reads_one_log(tmp_path: Path) -> None:
    logs = [str(tmp_path / name) for name in ("one.csv", "two.csv")]
    for log in logs:
        Path(log).write_text("t [s],travel [m]\n0,0\n0.1,0\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["new", "veridyn:crane.yaml", *logs, "--out", str(tmp_path / "n.yaml")])
    assert done.exit_code == 2 and "an observer reads one log" in done.stderr
    assert "one.csv, two.csv" in done.stderr and not (tmp_path / "n.yaml").exists()


def test_a_machine_by_points_gets_a_study_to_identify_it_by(tmp_path: Path) -> None:
    """Where that is asked for: its crank is measured and driven, and the other joints follow."""
    log, study = tmp_path / "run.csv", tmp_path / "study.yaml"
    rows = "\n".join(f"{0.01 * k},{1.0 + 0.001 * k},0.5" for k in range(100))
    log.write_text(f"t [s],q.phi [rad],force.phi [N*m]\n{rows}\n")
    args = ["new", "veridyn:fourbar.yaml", str(log), "--out", str(study)]
    done = CliRunner().invoke(app, [*args, "--kind", "identify"])
    assert done.exit_code == 0, done.output
    read = load_study(study, "identify").study
    assert set(read.log.columns) == {"q.phi", "force.phi"} and read.rows == "actuated"


def test_a_car_and_a_drive_make_a_study_and_no_motion(tmp_path: Path) -> None:
    given = {"mass": 1500.0, "front": 1.2, "rear": 1.4, "front_stiffness": PriorValue(15.0, 4.0)}
    save_model(car_machine("car", given), tmp_path / "car.yaml")
    (tmp_path / "run.csv").write_text("t [s],speed [m/s],steer [rad],yaw_rate [rad/s]\n0,20,0,0\n0.1,20,0,0\n", "utf-8")
    done = CliRunner().invoke(
        app, ["new", str(tmp_path / "car.yaml"), str(tmp_path / "run.csv"), "--out", str(tmp_path / "s.yaml")]
    )
    assert done.exit_code == 0 and "kind: identify" in (tmp_path / "s.yaml").read_text(encoding="utf-8")
    for more, words in (("--rate", "has a clock"), ("--kind", "no motion of joints to design")):
        logs = [str(tmp_path / "run.csv"), "--rate", "10"] if more == "--rate" else ["--kind", "excite"]
        done = CliRunner().invoke(
            app, ["new", str(tmp_path / "car.yaml"), *logs, "--out", str(tmp_path / "other.yaml")]
        )
        assert done.exit_code == 2 and words in " ".join(done.output.split())


def test_commands_and_encoders_make_a_study_of_drives(tmp_path: Path) -> None:
    """A log with forces beside them is one of the machine, unless drives are asked for."""
    log, study = tmp_path / "run.csv", tmp_path / "drives.yaml"
    Bench(tmp_path).write()
    names = [f"{word}_{k}" for k in (1, 2, 3) for word in ("q_des", "q")]
    rows = "\n".join(
        ",".join(f"{x:.6f}" for x in (0.01 * k, *(0.1 * k / (1 + j) for j in range(6)))) for k in range(100)
    )
    log.write_text(f"t,{','.join(names)}\n{rows}\n")
    args = ["new", str(tmp_path / "model.urdf"), str(log), "--out", str(study)]
    done = CliRunner().invoke(app, [*args, "--kp", "50", "--kd", "2"])
    assert done.exit_code == 0, done.output
    read = load_study(study).study
    assert (read.drives.kp, read.drives.kd) == (50.0, 2.0)
    assert read.log.columns["command.q2"].column == "q_des_2"
    forces = ["new", str(tmp_path / "model.urdf"), str(tmp_path / "training.csv"), "--out", str(study), "--force"]
    for more, words in (
        (["--kp", "50"], "gains belong to drives"),
        (["--kind", "drives"], "no commands and positions of any joint"),
        (["--kind", "drives", "--base", "free"], "of a machine that is held"),
    ):
        refused = CliRunner().invoke(app, [*forces, *more])
        assert refused.exit_code == 2 and words in " ".join(refused.stderr.split()), refused.output


def test_logs_that_a_kind_of_study_cannot_use_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "n.yaml"
    for args, words in (
        (["veridyn:arm.yaml", "veridyn:crane.csv", "--kind", "excite"], "a motion is designed without a log"),
        (["veridyn:crane.yaml", "veridyn:crane.csv", "--kind", "simulate"], "of a machine in joint coordinates"),
        (["veridyn:arm.yaml", *["veridyn:crane.csv"] * 2, "--kind", "simulate"], "follows one table of a motion"),
    ):
        done = CliRunner().invoke(app, ["new", *args, "--out", str(out)])
        assert done.exit_code == 2 and words in done.stderr and "crane.csv" in done.stderr, done.output
        assert not out.exists()


def test_programs_get_the_guesses_and_the_warnings(tmp_path: Path) -> None:
    out = tmp_path / "n.yaml"
    done = CliRunner().invoke(app, ["new", "veridyn:crane.yaml", "veridyn:crane.csv", "--out", str(out), "--json"])
    found = json.loads(done.stdout)
    assert done.exit_code == found["exit_code"] == 0 and found["study"] == str(out) and found["guesses"] == 10
    assert "warning: " not in done.stderr  # what was warned of is among the warnings
    quiet = CliRunner().invoke(
        app, ["new", "veridyn:crane.yaml", "veridyn:crane.csv", "--out", str(out), "--force", "-q"]
    )
    assert quiet.stdout == f"{out}\n"
