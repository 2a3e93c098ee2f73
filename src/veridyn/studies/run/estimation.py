"""The section ``estimator`` of a study file as a method object; whatever is wrong with it is reported with its line."""

from __future__ import annotations

from dataclasses import replace

from veridyn.errors import DataError, DeviceError, Fault, IdentificationError, did_you_mean
from veridyn.files.yaml_plain import Place
from veridyn.identify.estimate import ESTIMATORS
from veridyn.identify.settings import Device, IdentifySettings
from veridyn.model.machine import Machine
from veridyn.settings import names
from veridyn.studies.config.identify import EstimatorSettings
from veridyn.studies.config.study import Loaded, dotted
from veridyn.studies.identification import Estimation
from veridyn.symbolic.gpu import open_gpu


def estimation_of(loaded: Loaded, at: Place, chosen: EstimatorSettings) -> Estimation:
    """The method and the covariance that the study file names, with settings checked as in Python."""
    kind = ESTIMATORS.get(chosen.name)
    if kind is None:
        hint = did_you_mean(chosen.name, list(ESTIMATORS))
        raise loaded.error(loaded.fault((*at, "name"), f"there is no estimator '{chosen.name}'.", hint=hint))
    if chosen.settings and not names(kind):
        what = f"estimator '{chosen.name}' has no settings."
        raise loaded.error(loaded.fault((*at, "settings"), what, hint="Drop the key."))
    settings = IdentifySettings(covariance=chosen.covariance, device=device_of(loaded))
    return Estimation(loaded.build((*at, "settings"), kind, chosen.settings), settings)


def device_of(loaded: Loaded) -> Device:
    """The device that the study file names; refused before any log is read where it is a GPU and there is none."""
    device: Device = loaded.study.device
    if device == "cuda":
        try:
            open_gpu()
        except DeviceError as error:
            line = loaded.yaml.line(("device",))
            raise loaded.error([replace(f, where=f"device, {f.where}", line=line) for f in error.faults]) from None
    return device


def check_estimation(loaded: Loaded, at: Place, machine: Machine, estimation: Estimation) -> None:
    """Refuse what the method cannot do with this machine and these rows, before any log is read."""
    try:
        estimation.method.check(machine, loaded.study.rows, estimation.settings.correlated)
    except (IdentificationError, DataError) as error:
        line = loaded.yaml.line(at)
        faults = [Fault(f.what, f"{dotted(at)}, {f.where}", f.expected, f.found, f.hint, line) for f in error.faults]
        raise loaded.error(faults) from None
