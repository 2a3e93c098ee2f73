"""Machines written for simulators: where draws may go, and what a source holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from identify.smooth_arm import noisy, truth
from veridyn.errors import DataError, FileError
from veridyn.files.archive import save
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.prior import Prior
from veridyn.studies.exporting import export_draws, export_machine, source_of


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
