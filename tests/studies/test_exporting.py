"""Machines written for simulators: where draws may go, and what a source holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from identify.smooth_arm import noisy, truth
from studies.bench_evidence import SAMPLING, bench_motion
from studies.bench_robot import robot, urdf
from veridyn.errors import DataError, FileError
from veridyn.files.archive import save
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.studies.exporting import export, export_draws, export_machine, impossible, source_of
from veridyn.studies.result import Run


def test_draws_go_into_a_folder_or_one_file_and_never_over_others(tmp_path: Path) -> None:
    save(identify(truth(), noisy(np.random.default_rng(0), size=0.05), Prior(relative=0.05)), tmp_path / "fit.json")
    source = source_of(tmp_path)
    assert source.fit is not None and source.like is None and source.limits == {}
    (tmp_path / "taken").write_text("x")
    with pytest.raises(FileError, match="into a folder"):
        export_draws(source, "mjcf", tmp_path / "taken", 2, np.random.default_rng(0))
    written = export_draws(source, "yaml", tmp_path / "many", 2, np.random.default_rng(0))
    assert [f.name for f in written] == ["smooth arm-0001.yaml", "smooth arm-0002.yaml"]
    before = written[0].read_bytes()
    with pytest.raises(FileError, match="--force"):
        export_draws(source, "yaml", tmp_path / "many", 2, np.random.default_rng(1))
    assert written[0].read_bytes() == before
    export_draws(source, "yaml", tmp_path / "many", 2, np.random.default_rng(1), force=True)
    assert written[0].read_bytes() != before


def test_a_model_file_has_no_draws(tmp_path: Path) -> None:
    source = source_of(Path("veridyn:arm.yaml"))
    with pytest.raises(DataError, match="a model file has none"):
        export_draws(source, "mjcf", tmp_path / "d.npz", 2, np.random.default_rng(0))
    assert export_machine(source, "yaml", tmp_path / "arm.yaml") == [tmp_path / "arm.yaml"]


def runs(folder: Path) -> Run:
    folder.mkdir()
    return Run(folder)


@pytest.fixture(scope="module")
def physical():
    return identify(robot(), bench_motion(), "consistent", settings=IdentifySettings(sampling=SAMPLING))


def test_a_consistent_model_is_written_and_reads_back(tmp_path: Path, physical) -> None:
    made = export(runs(tmp_path / "run"), physical, Path("model.yaml"), infeasible=False)
    assert [f.name for f in made.files] == ["identified.yaml"] and not made.refused
    again = load_model(made.files[0])
    np.testing.assert_array_equal(again.parameters.values, physical.standard)
    assert impossible(physical) == []


def test_a_urdf_is_written_beside_where_the_model_was_one(tmp_path: Path) -> None:
    like = tmp_path / "model.urdf"
    like.write_text(urdf(1.1))
    machine = load_urdf(like)
    fit = identify(machine, bench_motion(), "consistent", settings=IdentifySettings(sampling=SAMPLING))
    made = export(runs(tmp_path / "run"), fit, like, infeasible=False)
    assert [f.name for f in made.files] == ["identified.yaml", "identified.urdf"]
    again = load_urdf(made.files[1])
    m = bench_motion()[::50]
    np.testing.assert_allclose(
        inverse_dynamics(again, m), inverse_dynamics(fit.described.with_parameters(fit.standard), m), atol=1e-8
    )


def test_what_no_machine_has_is_refused_with_the_reason_unless_asked_for(tmp_path: Path, physical) -> None:
    values = physical.standard_values.copy()
    values[robot().parameters.index("ZZ3")] = -0.4
    values[robot().parameters.index("h_q2")] = -1.0
    broken = replace(physical, standard_values=values, values=physical.base.reduce(values))
    said = [str(f) for f in impossible(broken)]
    assert any("body '3'" in s for s in said) and any("element 'h_q2': it is below zero" in s for s in said)
    made = export(runs(tmp_path / "a"), broken, Path("model.yaml"), infeasible=False)
    assert not made.files and not list((tmp_path / "a").iterdir())
    assert "not physically consistent" in str(made.refused[0]) and "body '3'" in str(made.refused[0])
    asked = export(runs(tmp_path / "b"), broken, Path("model.yaml"), infeasible=True)
    assert [f.name for f in asked.files] == ["identified.yaml"]
    assert load_model(asked.files[0]).parameters["h_q2"] == pytest.approx(-1.0)


def test_a_urdf_of_locked_joints_is_not_written_and_the_reason_is_given(tmp_path: Path, physical) -> None:
    made = export(runs(tmp_path / "run"), physical, Path("model.urdf"), infeasible=False, locked=["q3"])
    assert [f.name for f in made.files] == ["identified.yaml"]
    assert len(made.refused) == 1 and "locked joints" in made.refused[0].what and made.refused[0].found == "lock: q3"
