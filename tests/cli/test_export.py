"""``veridyn export``: models and runs as files for simulators, and machines drawn from a fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from identify.smooth_arm import noisy, truth
from veridyn.cli.app import app
from veridyn.files.archive import load, save
from veridyn.files.machine.load import load_model
from veridyn.files.machine.mjcf_write import save_mjcf
from veridyn.files.machine.urdf import load_urdf
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.prior import Prior
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import broken_law

RUN = CliRunner()
URDF = """<?xml version="1.0"?>
<!-- a comment that stays -->
<robot name="two">
  <joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="2" effort="30" velocity="3"/></joint>
  <link name="base"/>
  <link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
</robot>
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with the fit of an arm, which physical bodies have."""
    folder = tmp_path_factory.mktemp("arm-001")
    save(identify(truth(), noisy(np.random.default_rng(0), size=0.05), Prior(relative=0.05)), folder / "fit.json")
    return folder


def invoke(*args: object) -> str:
    done = RUN.invoke(app, ["export", *(str(a) for a in args)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(("to", "name"), [("mjcf", "a.xml"), ("urdf", "a.urdf"), ("yaml", "a.yaml")])
def test_a_run_is_written_in_every_format(run: Path, to: str, name: str, tmp_path: Path) -> None:
    assert invoke(run, "--to", to, "--out", tmp_path / name).strip() == str(tmp_path / name)
    again = load_model(tmp_path / name)
    fit_machine = load_model_of(run)
    assert again.coordinates == fit_machine.coordinates
    for n, value in zip(fit_machine.parameters.names, fit_machine.parameters.values, strict=True):
        assert again.parameters[n] == pytest.approx(value, rel=1e-9, abs=1e-12)


def load_model_of(run: Path) -> Machine:
    fit = load(run / "fit.json")
    return fit.described.with_parameters(fit.standard)


def test_a_fit_that_no_bodies_have_is_refused_and_its_draws_are_not(tmp_path: Path) -> None:
    save(identify(truth(), noisy(np.random.default_rng(0)), Prior(relative=0.1)), tmp_path / "fit.json")
    refused = RUN.invoke(app, ["export", str(tmp_path), "--to", "mjcf", "--out", str(tmp_path / "a.xml")])
    assert refused.exit_code == 2 and "triangle inequality" in refused.stderr
    invoke(tmp_path, "--to", "mjcf", "--draws", 2, "--out", tmp_path / "many")


def test_a_urdf_becomes_mjcf_with_its_limits_and_stays_a_urdf_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "two.urdf").write_text(URDF)
    invoke(tmp_path / "two.urdf", "--to", "mjcf", "--out", tmp_path / "two.xml")
    text = (tmp_path / "two.xml").read_text()
    assert 'range="-1.0 2.0"' in text and 'ctrlrange="-30.0 30.0"' in text
    invoke(tmp_path / "two.urdf", "--to", "urdf", "--out", tmp_path / "copy.urdf")
    assert (tmp_path / "copy.urdf").read_text() == URDF


def test_values_go_into_a_copy_of_ones_own_file(run: Path, tmp_path: Path) -> None:
    """The fit of the arm in a file of the arm with shapes: the shapes stay; a file of another format is refused."""
    own = tmp_path / "own.xml"
    save_mjcf(truth(), own)
    shown = own.read_text().replace("</body>", '<geom size="0.02"/></body>', 1)
    own.write_text(shown)
    invoke(run, "--to", "mjcf", "--like", own, "--out", tmp_path / "new.xml")
    text, fitted = (tmp_path / "new.xml").read_text(), load_model_of(run)
    assert '<geom size="0.02"/>' in text and own.read_text() == shown
    again = load_model(tmp_path / "new.xml")
    for n, value in zip(fitted.parameters.names, fitted.parameters.values, strict=True):
        assert again.parameters[n] == pytest.approx(value, rel=1e-9, abs=1e-12)
    args = [str(run), "--to", "urdf", "--like", str(own), "--out", str(tmp_path / "a.urdf")]
    refused = RUN.invoke(app, ["export", *args])
    assert refused.exit_code == 2 and "a file of the same format" in refused.stderr


def test_files_are_written_over_only_when_told(tmp_path: Path) -> None:
    (tmp_path / "two.urdf").write_text(URDF)
    args = [str(tmp_path / "two.urdf"), "--to", "mjcf", "--out", str(tmp_path / "two.xml")]
    invoke(*args)
    again = RUN.invoke(app, ["export", *args])
    assert again.exit_code == 2 and "--force" in again.stderr
    invoke(*args, "--force")


def test_draws_are_files_each_physically_consistent(run: Path, tmp_path: Path) -> None:
    shown = invoke(run, "--to", "mjcf", "--draws", 3, "--seed", 5, "--out", tmp_path / "many")
    assert "(3 files)" in shown
    files = sorted((tmp_path / "many").iterdir())
    assert [f.name for f in files] == [f"smooth arm-{k:04d}.xml" for k in (1, 2, 3)]
    values = []
    for file in files:
        machine = load_model(file)
        values.append(machine.parameters["ZZ1"])
        for k in range(0, 40, 10):
            assert broken_law(machine.parameters.values[k : k + 10]) is None
    assert len(set(values)) == 3


def test_draws_are_one_npz_the_same_for_the_same_seed(run: Path, tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        invoke(run / "fit.json", "--to", "yaml", "--draws", 20, "--seed", 7, "--out", tmp_path / name)
    with np.load(tmp_path / "a.npz") as a, np.load(tmp_path / "b.npz") as b:
        assert a["draws"].shape == (20, 48) and np.array_equal(a["draws"], b["draws"])
        assert tuple(a["names"]) == truth().parameters.names


def test_json_lists_the_files(run: Path, tmp_path: Path) -> None:
    found = json.loads(invoke(run, "--to", "yaml", "--out", tmp_path / "a.yaml", "--json"))
    assert found["files"] == [str(tmp_path / "a.yaml")] and found["exit_code"] == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["gone.yaml", "--to", "mjcf", "--out", "a.xml"], "there is no such file"),
        (["veridyn:arm.yaml", "--to", "mjcf", "--out", "a.xml", "--draws", "3"], "a model file has none"),
        (["veridyn:linkage.yaml", "--to", "mjcf", "--out", "a.xml"], "closed loops"),
        (["veridyn:linkage.yaml", "--to", "urdf", "--out", "a.urdf"], "closed loops"),
        (["veridyn:arm.yaml", "--to", "sdf", "--out", "a.sdf"], "'sdf' is not one of"),
        (["veridyn:arm.yaml", "--to", "mjcf", "--out", "gone/a.xml"], "cannot be written"),
        ([".", "--to", "mjcf", "--out", "a.xml"], "this folder has no fit"),
    ],
)
def test_bad_input_is_named(args: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = RUN.invoke(app, ["export", *args])
    assert done.exit_code == 2 and message in done.stderr


def test_a_mjcf_becomes_a_urdf(tmp_path: Path) -> None:
    (tmp_path / "two.urdf").write_text(URDF)
    invoke(tmp_path / "two.urdf", "--to", "mjcf", "--out", tmp_path / "two.xml")
    invoke(tmp_path / "two.xml", "--to", "urdf", "--out", tmp_path / "new.urdf")
    assert load_urdf(tmp_path / "new.urdf").parameters["M_arm"] == 2.0
