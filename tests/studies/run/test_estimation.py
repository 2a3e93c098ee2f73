from pathlib import Path

import pytest

from studies.bench_robot import STUDY, robot
from veridyn.errors import DeviceError, Fault, FileError
from veridyn.identify.estimate import ESTIMATORS
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.estimators.weighted import OLS, WLS
from veridyn.identify.settings import IdentifySettings
from veridyn.studies.config.study import load_study
from veridyn.studies.identification import Estimation
from veridyn.studies.run import estimation
from veridyn.studies.run.estimation import check_estimation, estimation_of


def made(folder: Path, text: str) -> Estimation:
    (folder / "s.yaml").write_text(STUDY + f"estimator: {text}\n")
    loaded = load_study(folder / "s.yaml")
    return estimation_of(loaded, ("estimator",), loaded.study.estimator)


def test_settings_become_a_method(tmp_path: Path) -> None:
    assert made(tmp_path, "{name: wls}") == Estimation() == Estimation(WLS())
    assert made(tmp_path, "{name: ols, covariance: hac}") == Estimation(OLS(), IdentifySettings(covariance="hac"))
    assert made(tmp_path, "{name: robust, settings: {loss: tukey}}") == Estimation(Robust("tukey"))
    nested = made(tmp_path, "{name: consistent, settings: {weight: 2, prior: {relative: 0.3}, unsigned: [d1]}}").method
    assert nested == Consistent(prior=Prior(relative=0.3), weight=2, unsigned=("d1",))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_can_be_named(tmp_path: Path, name: str) -> None:
    given = ", settings: {frequency: 0.1}" if name == "likelihood" else ""
    assert type(made(tmp_path, f"{{name: {name}{given}}}").method) is ESTIMATORS[name]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name: wlss}", r"s.yaml, estimator.name \(line 21\): there is no estimator 'wlss'.\n.*Did you mean 'wls'"),
        ("{name: wls, settings: {a: 1}}", r"estimator 'wls' has no settings"),
        (
            "{name: map, settings: {relativ: 1}}",
            r"settings.relativ \(line 21\): Prior has no setting 'relativ'.\n.*Did you mean 'relative'",
        ),
        (
            "{name: consistent, settings: {prior: {relativ: 1}}}",
            r"estimator.settings.prior.relativ \(line 21\): Prior has no setting 'relativ'",
        ),
        (
            "{name: robust, settings: {iterations: many}}",
            r"estimator.settings.iterations \(line 21\): .*\nExpected a whole number of at least 1, found 'many'",
        ),
        (
            "\n  name: robust\n  settings:\n    loss: tukey\n    tolerance: .nan",
            r"estimator.settings.tolerance \(line 25\): .*\nExpected a number above 0, found nan",
        ),
        ("{name: oe, settings: {substeps: true}}", r"settings.substeps \(line 21\).*\n.*found True"),
        ("{name: oe, settings: {law: pid}}", r"settings.law \(line 21\).*\n.*a control law.*, found 'pid'"),
        ("{name: map, settings: {sigma: {M1: 0}}}", r"settings.sigma.M1 \(line 21\).*\n.*above 0, found 0"),
        ("{name: gauss_markov, settings: {noise: [[1, 2]]}}", r"settings.noise \(line 21\).*\n.*a covariance"),
        ("{name: likelihood}", r"estimator.settings \(line 21\): Likelihood needs the setting 'frequency'"),
    ],
)
def test_what_is_no_estimator_or_setting_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        made(tmp_path, text)


def test_what_a_method_cannot_do_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(STUDY + "estimator: {name: gauss_markov, covariance: hac}\n")
    loaded = load_study(tmp_path / "s.yaml")
    chosen = estimation_of(loaded, ("estimator",), loaded.study.estimator)
    with pytest.raises(FileError, match=r"s.yaml, estimator, covariance \(line 21\): estimator 'gauss_markov' "):
        check_estimation(loaded, ("estimator",), robot(), chosen)


def test_a_device_that_is_missing_is_refused_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise DeviceError(Fault("a GPU was asked for, and this machine has none.", where="device 'cuda'"))

    monkeypatch.setattr(estimation, "open_gpu", missing)
    with pytest.raises(FileError, match=r"s.yaml, device, device 'cuda' \(line 22\): a GPU was asked for"):
        made(tmp_path, "{name: wls}\ndevice: cuda")
    monkeypatch.setattr(estimation, "open_gpu", lambda: None)
    assert made(tmp_path, "{name: wls}\ndevice: cuda").settings.device == "cuda"
    with pytest.raises(FileError, match="device"):
        made(tmp_path, "{name: wls}\ndevice: gpu")
