"""Two studies of the shop floor, each one file and one command: a log of drives without a clock, and cylinders in closed loops."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from studies import excavator_log, wrist_log
from veridyn.cli.app import app
from veridyn.files.archive import load
from veridyn.model.machine import Machine
from veridyn.studies.config.study import load_study


def identified(
    example: Path, out: Path, truth: Machine, noise: dict[str, float]
) -> tuple[dict[str, float], np.ndarray]:
    """Run an example; its figures, and by how many deviations its parameters are off. What is held out leaves the noise of each row."""
    done = CliRunner().invoke(app, ["identify", str(example), "--out", str(out)])
    assert done.exit_code == 0, done.output
    folder = out / f"{example.stem}-001"
    assert (folder / "report.html").is_file() and (folder / "identified.yaml").is_file()
    fit = load(folder / "fit.json")
    wanted = fit.base.reduce([truth.parameters[name] for name in fit.base.parameters.names])
    result = json.loads((folder / "result.json").read_text())
    assert {row: r["rms"] for row, r in result["validation"].items()} == pytest.approx(noise, rel=0.1)
    return result["figures"], np.abs(fit.values - wanted) / fit.sigma


def test_a_coupled_wrist_from_its_motors_without_a_clock(tmp_path: Path) -> None:
    """Held-out forces to their noise, Γ = T⁻ᵀ Γ_m, and every parameter of Pinocchio's machine within four deviations."""
    machine = wrist_log.truth()
    assert machine.transmission is not None
    noise = wrist_log.TORQUE * np.linalg.norm(np.linalg.inv(machine.transmission.matrix), axis=0)
    figures, off = identified(wrist_log.EXAMPLE, tmp_path, machine, dict(zip(machine.coordinates, noise.tolist())))
    assert figures["base_parameters_excited"] == 25 and figures["suspicions"] == 0
    assert np.nanmax(off) < 4.0 and np.sqrt(np.nanmean(off**2)) < 1.5


def unchecked(folder: Path) -> Path:
    """The excavator's study without the checks of its log and model, which take most of the time."""
    text = excavator_log.EXAMPLE.read_text(encoding="utf-8").replace("  suspicions: 0\n", "")
    for name in ("excavator_model.yaml", "excavator.csv"):
        assert name in text
        text = text.replace(name, str(excavator_log.EXAMPLE.parent / name))
    study = folder / excavator_log.EXAMPLE.name
    study.write_text(f"{text}checks: false\n", encoding="utf-8")
    return study


@pytest.mark.parametrize("checks", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_excavator_through_the_loops_of_its_cylinders(tmp_path: Path, checks: bool) -> None:
    """The slow form is the study as it is shipped: nothing is suspected of its log."""
    example = excavator_log.EXAMPLE if checks else unchecked(tmp_path)
    noise = dict(zip(excavator_log.DRIVES, (1e3 * excavator_log.FORCE).tolist()))
    figures, off = identified(example, tmp_path, excavator_log.truth(), noise)
    assert figures["base_parameters_excited"] == 30 and figures.get("suspicions", 0) == 0
    assert figures["physically_consistent"] == 1
    assert np.nanmax(off) < 4.0 and np.sqrt(np.nanmean(off**2)) < 1.5


def test_the_logs_are_a_strangers() -> None:
    rows = np.loadtxt(wrist_log.LOG, skiprows=4)[:200]
    angles, torques = wrist_log.motors(1.0)
    assert np.std(rows[:, :3] - angles) == pytest.approx(wrist_log.ANGLE, rel=0.2)
    assert np.std(rows[:, 3:] - torques) == pytest.approx(wrist_log.TORQUE, rel=0.2)
    rows, m = np.loadtxt(excavator_log.LOG, delimiter=",", skiprows=1)[:25], excavator_log.true_motion(0.5)
    own = [excavator_log.truth().coordinates.index(c) for c in excavator_log.DRIVES]
    assert m.forces is not None
    off = rows[:, 5:] - 1e-3 * m.forces[:, own]
    np.testing.assert_allclose(np.std(off, axis=0), excavator_log.FORCE, rtol=0.5)


def test_the_studies_are_written_by_new_but_for_what_nobody_can_guess(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    command = ["new", str(wrist_log.MODEL), str(wrist_log.LOG), "--out", str(study)]
    assert CliRunner().invoke(app, [*command, "--rate", "200"]).exit_code == 0
    own, made = (load_study(file).study.log for file in (wrist_log.EXAMPLE, study))
    assert made.rate == 200.0 and made.columns == own.columns
    assert CliRunner().invoke(app, [*command, "--force"]).exit_code == 0
    done = CliRunner().invoke(app, ["identify", str(study)])
    assert done.exit_code == 2 and "give the rate of a log without a clock" in done.stderr
    for rate in ("0", "-5", "nan"):
        done = CliRunner().invoke(app, [*command, "--force", "--rate", rate])
        assert done.exit_code == 2 and "this is no rate" in done.stderr, done.output
    command = ["new", str(excavator_log.MODEL), str(excavator_log.LOG), "--out", str(tmp_path / "excavator.yaml")]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert "q.swing: swing [deg]" in (tmp_path / "excavator.yaml").read_text()
