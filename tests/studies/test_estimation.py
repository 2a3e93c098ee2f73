from pathlib import Path

import pytest

from studies.bench_robot import STUDY
from veridyn.errors import FileError
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.prior import Prior
from veridyn.identify.estimators.robust import Robust
from veridyn.studies.config.study import load_study
from veridyn.studies.estimation import estimation_of
from veridyn.studies.identification import Estimation


def made(folder: Path, text: str) -> Estimation:
    (folder / "s.yaml").write_text(STUDY + f"estimator: {text}\n")
    loaded = load_study(folder / "s.yaml")
    return estimation_of(loaded, ("estimator",), loaded.study.estimator)


def test_settings_become_those_of_the_estimator(tmp_path: Path) -> None:
    assert made(tmp_path, "{name: wls}") == Estimation()
    assert made(tmp_path, "{name: ols, covariance: hac}") == Estimation("ols", None, "hac")
    assert isinstance(made(tmp_path, "{name: robust, settings: {loss: huber}}").settings, Robust)
    nested = made(tmp_path, "{name: consistent, settings: {weight: 2, prior: {relative: 0.3}}}").settings
    assert nested == Consistent(prior=Prior(relative=0.3), weight=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name: wlss}", r"s.yaml, estimator.name \(line 21\): there is no estimator 'wlss'.\n.*Did you mean 'wls'"),
        ("{name: wls, settings: {a: 1}}", r"estimator 'wls' has no settings"),
        ("{name: map, settings: {relativ: 1}}", r"there is no key 'relativ' here.\n.*Did you mean 'relative'"),
        (
            "{name: consistent, settings: {prior: {relativ: 1}}}",
            r"estimator.settings.prior \(line 21\): there is no key 'relativ'|prior.relativ",
        ),
    ],
)
def test_what_is_no_estimator_or_setting_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        made(tmp_path, text)
