"""The page of the four-bar linkage: what the correction of equation 58 costs as it is printed."""

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.observe.filters.methods import ErrorEKF
from veridyn.observe.observe import observe_with
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.settings import ObserveSettings
from veridyn.papers.fourbar.machine import (
    LABELS,
    MODEL_START,
    PRINTED,
    SKIP,
    fourbar_run,
    fourbar_settings,
    wrong_fourbar,
)
from veridyn.papers.fourbar.page import SHOWN_SAMPLES, fourbar_page, printed_correction
from veridyn.studies.observation import ObservationStudy, observation


@pytest.fixture(scope="module")
def study() -> ObservationStudy:
    run, setups = fourbar_run(), {"error_ekf": fourbar_settings()["error_ekf"]}
    log = run.log(np.random.default_rng([0, 0]))
    return observation(wrong_fourbar(), run.truth, run.plain, [log], setups, LABELS, chosen="error_ekf", skip=SKIP)


def test_the_printed_correction_opens_the_linkage(study: ObservationStudy) -> None:
    """The crank's end moves along its tangent: its bar of 2 m is open by (2 Δφ)² in m² after a correction by Δφ, whatever the rest does.

    The crank itself, which is the independent coordinate, is the same to what the sensor reads.
    """
    found = printed_correction(study)
    e = study.scores["error_ekf"].example.estimates
    turned = (e.x - e.x_predicted)[:SHOWN_SAMPLES, study.column("phi")]
    assert found.open_closed.max() < 1e-9
    assert (found.open_printed >= (2.0 * turned) ** 2 * (1.0 - 1e-6) - 1e-12).all()
    assert found.open_printed.max() > 0.5  # m²; 30° off at the start
    phi = study.column("phi")
    assert found.error_printed[:, phi] == pytest.approx(found.error_closed[:, phi], abs=1e-6)


def test_the_page_shows_it(study: ObservationStudy) -> None:
    text = fourbar_page(study, study.result("demo fourbar", seed=0, quick=True, inputs={}), "veridyn demo fourbar")
    assert "Correction as printed (58)" in text and "largest constraint error" in text


def test_a_tree_has_no_such_correction(study: ObservationStudy) -> None:
    made_by = study.scores["error_ekf"].example.made_by
    assert made_by is not None
    settings = ObserveSettings(process_noise=PRINTED, start=MODEL_START[0], rates=MODEL_START[1], model_error="off")
    tree = wrong_fourbar().with_formulation("tree")
    with pytest.raises(ModelError, match=r"ErrorEKF\.correction"):
        observe_with(ObserverSetup(ErrorEKF(correction="velocity"), settings), tree, made_by.readings)
