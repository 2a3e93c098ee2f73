"""A study of kind observe is run as its settings are made for."""

from types import SimpleNamespace
from typing import Any

import pytest

from veridyn.studies.config.car import CarObserveFile
from veridyn.studies.config.observe import ObserveFile
from veridyn.studies.run import dispatch


def test_settings_decide_which_observation_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("observe_car_study", "observe_study"):
        monkeypatch.setattr(dispatch, name, lambda loaded, progress, name=name: name)
    for settings, name in ((CarObserveFile, "observe_car_study"), (ObserveFile, "observe_study")):
        loaded: Any = SimpleNamespace(study=settings.model_construct())
        assert dispatch.run_observe(loaded) == name
