"""Studies with laws of one's own, friction ladders and reduced models: the examples find their truth, and bad input is named."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from studies import balanced_arm_log, rubbing_joint_log
from veridyn.cli.app import app

WRIST = rubbing_joint_log.FOLDER / "wrist.yaml"


def run(file: Path, out: Path) -> tuple[int, str, Path]:
    done = CliRunner().invoke(app, ["identify", str(file), "--out", str(out)])
    return done.exit_code, done.output, next(iter(out.glob("*-001")), out)


def test_an_arm_with_a_spring_law(tmp_path: Path) -> None:
    """The example keeps its limits; both gains lie within 3 σ of the truth; what the F test leaves out is zero in truth."""
    code, said, folder = run(balanced_arm_log.EXAMPLE, tmp_path)
    assert code == 0, said
    result = json.loads((folder / "result.json").read_text())
    found = {p["name"]: p for p in result["parameters"]}
    truth = {"balancer": balanced_arm_log.GAIN, "hoses": balanced_arm_log.K3, "ZZ1R": balanced_arm_log.A}
    for name, value in truth.items():
        assert abs(found[name]["value"] - value) < 3.0 * found[name]["sigma"] < 0.02 * value, name
    noise = balanced_arm_log.TORQUE
    assert all(row["rms"] == pytest.approx(noise, rel=0.1) for row in result["validation"].values())
    with (folder / "reduced.csv").open(encoding="utf-8") as file:
        reduced = {row["name"]: row for row in csv.DictReader(file)}
    assert {n for n, row in reduced.items() if row["reduced"] == "0"} == {"MY1R", "MY2R", "MY3R"}  # zero in truth
    assert float(reduced["hoses"]["reduced"]) == pytest.approx(balanced_arm_log.K3, rel=0.02)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Reduced model" in page and "an F test of all removed together at a significance of 5 %" in page
    assert "reduced model: 11 of 14 parameters" in said


def test_a_friction_ladder(tmp_path: Path) -> None:
    """The example finds exactly the terms that the log was made with, and their values."""
    code, said, folder = run(rubbing_joint_log.EXAMPLE, tmp_path)
    assert code == 0, said
    result = json.loads((folder / "result.json").read_text())
    figures, truth = result["figures"], rubbing_joint_log.TRUTH
    with (folder / "friction.csv").open(encoding="utf-8") as file:
        steps = {row["term"]: row for row in csv.DictReader(file)}
    assert {term for term, row in steps.items() if row["enters"] == "1"} == rubbing_joint_log.TERMS
    assert (
        figures["friction_terms_entered"] == 5
        and figures["friction_after_percent"] < 4 < figures["friction_before_percent"]
    )
    assert figures["friction_stribeck_q1_fall"] > 2.0 * figures["friction_stribeck_q1_fall_sigma"] > 0.0
    found = {p["name"]: p for p in result["parameters"]}
    for name, value in (("fs_q1", truth["coulomb"]), ("ha_q1", truth["one_way"]), ("ht_q1", truth["heat"])):
        assert abs(found[name]["value"] - value) < 3.0 * found[name]["sigma"], name
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Friction, term by term" in page and "stays out" in page and "5 of 7 terms enter" in said


def test_the_logs_of_the_examples_are_those_of_their_equations() -> None:
    log = np.loadtxt(balanced_arm_log.LOG, delimiter=",", skiprows=1)
    t = log[:, 0]
    torques = balanced_arm_log.torques(*balanced_arm_log.motion(t))
    assert np.abs(log[:, 3:] - torques).max() < 5.0 * balanced_arm_log.TORQUE
    log = np.loadtxt(rubbing_joint_log.LOG, delimiter=",", skiprows=1)
    t = log[:, 0]
    assert (
        np.abs(log[:, 2] - rubbing_joint_log.torque(*rubbing_joint_log.motion(t))).max()
        < 5.0 * rubbing_joint_log.TORQUE
    )


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """The ladder's study, its checks off, with something else in it."""
    folder = rubbing_joint_log.FOLDER
    for name in ("rubbing_joint.csv", "rubbing_joint_model.yaml"):
        (tmp_path / name).write_text((folder / name).read_text(encoding="utf-8"), encoding="utf-8")
    text = (folder / "rubbing_joint.yaml").read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / "study.yaml"
    file.write_text(text.replace(old, new) + "checks: false\n", encoding="utf-8")
    return file


def test_a_friction_ladder_behind_the_low_pass_of_a_short_log(tmp_path: Path) -> None:
    """The wrist's 4 s of training, filtered as the positions are: no term beside those it was made with enters, and the report says
    how many blocks speak."""
    text = WRIST.read_text(encoding="utf-8").replace("wrist_model.yaml", str(WRIST.with_name("wrist_model.yaml")))
    text = text.replace("file: wrist.txt", f"file: {WRIST.with_name('wrist.txt')}")
    text = text.replace("sampling: {filter: none, ", "friction: {standard_errors: 2}\nsampling: {")
    (tmp_path / "wrist.yaml").write_text(text, encoding="utf-8")
    code, said, folder = run(tmp_path / "wrist.yaml", tmp_path)
    assert code == 0, said
    figures = json.loads((folder / "result.json").read_text())["figures"]
    assert figures["friction_terms_tried"] == 12 and figures["friction_terms_entered"] == 0
    assert figures["friction_blocks"] >= 30 and "0 of 12 terms enter" in said


FRICTION = "friction:\n  terms: [viscous, coulomb, asymmetric, stribeck, load, quadratic, temperature]\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("temperature: oil", "temperature: oel", ("no signal 'oel'", "signal.oel", "Signals: oil")),
        ("terms: [viscous,", "on: [q7]\n  terms: [viscous,", ("no coordinate 'q7'",)),
        ("terms: [viscous,", "terms: [viskous,", ("friction.terms", "viscous")),
        ("standard_errors: 2", "standard_errors: -2", ("friction.standard_errors", "0")),
        ("output: {model: false}", "essential: {rule: aic}", ("essential.rule", "ratio_and_f_test")),
        ("output: {model: false}", "essential: {ratio: 0.5}", ("essential.ratio", "1")),
        (
            "rubbing_joint_model.yaml",
            "rubbing_joint_model.yaml\n  elements: [{kind: law, on: q1, formula: 'open(c)'}]",
            ("formula: 'open(c)' tries to run code",),
        ),
        (
            "rubbing_joint_model.yaml",
            "rubbing_joint_model.yaml\n  elements: [{kind: table, on: q1, table: {at: [0, 1], values: [1]}}]",
            ("as many values as places", "2 places, 1 values"),
        ),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    code, said, _ = run(changed(tmp_path, old, new), tmp_path / "runs")
    assert code == 2 and all(word in " ".join(said.split()) for word in words), said


def test_a_reduced_model_that_predicts_worse_is_warned_of(tmp_path: Path) -> None:
    """Gautier's rule with a ratio of 2 leaves friction out that matters; the report compares both models and says so."""
    plain = "  elements: [{kind: damper}, {kind: coulomb}, {kind: law, on: q1, formula: v*signal(oil), name: warm}]\n"
    study = changed(tmp_path, FRICTION + "  temperature: oil\n", "essential: {rule: ratio, ratio: 2}\n")
    text = study.read_text(encoding="utf-8").replace("rubbing_joint_model.yaml\n", "rubbing_joint_model.yaml\n" + plain)
    cut = text.index("  standard_errors"), text.index("estimator:")
    study.write_text(
        text[: cut[0]] + text[cut[1] :].replace("validation_std_percent: 6", "row_percent: {q1: 20}"), encoding="utf-8"
    )
    code, said, folder = run(study, tmp_path / "runs")
    assert code == 0, said
    result = json.loads((folder / "result.json").read_text())
    f = result["figures"]
    assert f["cross_validation_essential_percent"] > 1.1 * f["cross_validation_percent"]
    assert any("the reduced model predicts worse than the full one" in w for w in result["warnings"])
    assert "on held-out data it is off by" in (folder / "report.html").read_text(encoding="utf-8")
