"""What every run of the tests shares: a file whose oracle this system does not have is skipped by name."""

from __future__ import annotations

import importlib
import sys

import pytest

from conftest import SkipsWhatIsMissing


def test_a_file_whose_oracle_is_missing_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, SkipsWhatIsMissing(("no_such_oracle", "math"))])
    with pytest.raises(pytest.skip.Exception, match="no_such_oracle is not made for this system"):
        importlib.import_module("no_such_oracle")
    assert importlib.import_module("math").pi  # what is installed is found first
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module")
