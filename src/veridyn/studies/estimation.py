"""The section ``estimator`` of a study file as the words of the door of identification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from veridyn.errors import Fault, did_you_mean
from veridyn.files.yaml_plain import Place
from veridyn.identify.estimate import SETTINGS
from veridyn.identify.fitting import ESTIMATORS
from veridyn.studies.config.identify import EstimatorSettings
from veridyn.studies.config.study import Loaded
from veridyn.studies.identification import Estimation


def estimation_of(loaded: Loaded, at: Place, chosen: EstimatorSettings) -> Estimation:
    """What the study asks for; faults name the line of the study file."""
    if chosen.name not in ESTIMATORS:
        hint = did_you_mean(chosen.name, list(ESTIMATORS))
        raise loaded.error(loaded.fault((*at, "name"), f"there is no estimator '{chosen.name}'.", hint=hint))
    wanted = SETTINGS.get(chosen.name)
    if not chosen.settings:
        return Estimation(chosen.name, None, chosen.covariance)
    if wanted is None:
        fault = loaded.fault((*at, "settings"), f"estimator '{chosen.name}' has no settings.", hint="Drop the key.")
        raise loaded.error(fault)
    faults: list[Fault] = []
    made = _built(loaded, (*at, "settings"), wanted, chosen.settings, faults)
    if faults:
        raise loaded.error(faults)
    return Estimation(chosen.name, made, chosen.covariance)


def _built(loaded: Loaded, at: Place, kind: type, given: Mapping[str, Any], faults: list[Fault]) -> Any:
    """An instance of a class of settings from keys and values, settings within settings too."""
    hints = get_type_hints(kind)
    known = [f.name for f in fields(kind)]
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            faults.append(loaded.fault((*at, key), f"there is no key '{key}' here.", hint=did_you_mean(key, known)))
            continue
        inner = next((t for t in (hints[key], *get_args(hints[key])) if is_dataclass(t) and isinstance(t, type)), None)
        if inner is not None and isinstance(value, Mapping):
            values[key] = _built(loaded, (*at, key), inner, value, faults)
        else:
            values[key] = tuple(value) if isinstance(value, list) else value
    if faults:
        return None
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        faults.append(loaded.fault(at, f"these settings will not do: {error}."))
        return None
