"""The share of validation samples that the fit did not use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import veridyn.identify.regression.gpu as on_gpu
from identify.smooth_arm import NOISE
from identify.test_payload import GAINS, LOAD, driven, unknown
from numpy_processor import NumpyProcessor
from studies.small_arm import RATE, believed, log_of, small_arm, small_study
from veridyn.errors import Fault, IdentificationWarning, ModelError, SimulationError
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.output_error.output_error import OutputError
from veridyn.identify.payload import carrying
from veridyn.identify.pipeline.identification import (
    Estimation,
    identification,
    identify_and_validate,
)
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import replay, validate
from veridyn.identify.validation import Validation
from veridyn.model.motion import Motion
from veridyn.report.identification import identification_page
from veridyn.report.verdict import verdict
from veridyn.studies.config.identify import IdentifyAccept
from veridyn.studies.run.identify import missed


def test_the_fit_is_that_of_identify_and_the_check_that_of_validate() -> None:
    study = small_study()
    fit = identify(study.model, study.training, settings=IdentifySettings(sampling=Sampling(trim=10)))
    np.testing.assert_array_equal(study.fit.values, fit.values)
    np.testing.assert_array_equal(study.fit.covariance, fit.covariance)
    check = validate(fit, study.validation, settings=IdentifySettings(sampling=Sampling(trim=10)))
    assert study.check == check


def test_figures_say_what_was_found() -> None:
    study = small_study()
    f = study.figures
    assert f["parameters_estimated"] == 24
    assert f["base_parameters"] == f["base_parameters_excited"] == study.fit.base.count
    assert f["well_identified"] == sum(p.sigma_percent < 10 for p in study.parameters)
    assert f["worst_cross_validation_percent"] == pytest.approx(100 * max(r.relative_error for r in study.check.rows))
    assert f["cross_validation_std_percent"] == pytest.approx(100 * study.check.std_error)
    assert f["worst_training_std_percent"] == pytest.approx(100 * max(r.std_error for r in study.own.rows))
    assert f["training_percent"] == pytest.approx(100 * study.fit.relative_error)
    assert f["rows_judged"] == 2 and f["share_validation_held_out"] == 1.0
    assert f["condition"] == study.fit.condition
    assert f["condition_scaled"] == study.fit.condition_scaled
    assert f["residual_sigma"] == pytest.approx(1.0, abs=0.1)
    assert f["rows_with_white_residual"] == 2
    assert all(np.isfinite(v) for v in f.values())
    assert all(v >= 0 for k, v in f.items() if k.endswith("_percent"))


def test_priors_that_are_a_fifth_off_predict_forces_a_fifth_off() -> None:
    # Forces are linear in the parameters, so 1.2 times all of them is 20 % more force; noise adds a little in quadrature.
    study = small_study()
    assert study.figures["worst_cross_validation_before_percent"] == pytest.approx(20.0, abs=0.5)
    assert study.figures["worst_cross_validation_percent"] < 5.0


def test_the_truth_is_reduced_like_the_estimates_and_used_for_nothing_else() -> None:
    study, truth = small_study(), small_arm()
    np.testing.assert_allclose(study.truth, study.fit.base.reduce(truth.parameters.values))
    assert study.figures["share_inside_two_sigma"] > 0.8
    assert study.figures["share_inside_two_sigma"] == np.mean([p.inside for p in study.parameters])
    rng = np.random.default_rng(7)
    logs = log_of(truth, rng, "training"), log_of(truth, rng, "validation")
    blind = identification(believed(truth), *logs, sampling=Sampling(trim=10))
    np.testing.assert_array_equal(blind.fit.values, study.fit.values)
    assert "share_inside_two_sigma" not in blind.figures
    assert all(p.inside is None for p in blind.parameters)


def test_a_truth_of_another_machine_is_refused() -> None:
    truth = small_arm()
    rng = np.random.default_rng(1)
    log = log_of(truth, rng, "log", 1.0)
    other = replace(truth, links=tuple(replace(link, label=f"{link.name}x") for link in truth.links))
    with pytest.raises(ModelError, match="other parameters than the model"):
        identification(truth, log, log, truth=other)


def test_without_priors_there_is_no_before() -> None:
    truth = small_arm()
    rng = np.random.default_rng(2)
    model = truth.with_parameters(np.full(len(truth.parameters), np.nan))
    study = identification(model, log_of(truth, rng, "a", 3.0), log_of(truth, rng, "b", 3.0), truth=truth)
    assert study.before is None
    assert "worst_cross_validation_before_percent" not in study.figures
    assert study.check.relative_error < 0.05


@pytest.mark.filterwarnings("ignore:.*never changes:veridyn.errors.DataWarning")
def test_a_motion_that_excites_less_is_warned_of_by_name() -> None:
    truth = small_arm()
    rng = np.random.default_rng(3)
    log = log_of(truth, rng, "half", 3.0)
    still = log.replacing(replace(log["q.q1"], values=np.zeros(len(log["q.q1"]))))
    with pytest.warns(IdentificationWarning, match=r"(?s)does not excite every identifiable.*not separated: .*h_q1"):
        identification(truth, still, still)


def test_masks_belong_to_the_training_motion_alone() -> None:
    truth = small_arm()
    rng = np.random.default_rng(4)
    training, validation = log_of(truth, rng, "a", 4.0), log_of(truth, rng, "b", 2.0)
    mask = np.arange(int(4.0 * RATE)) % 2 == 0
    study = identification(truth, training, validation, sampling=Sampling(drop={"q1": mask}))
    assert [r.samples for r in study.fit.rows] == [400, 800]
    assert [r.samples for r in study.check.rows] == [400, 400]
    assert study.traces["training"].used.sum(axis=0).tolist() == [400, 800]
    assert study.traces["validation"].used.all()


def test_progress_is_told_by_stage() -> None:
    truth, told = small_arm(), []
    rng = np.random.default_rng(8)
    log = log_of(truth, rng, "a", 2.0)
    identification(truth, log, log, progress=lambda task, done, total: told.append(task))
    assert list(dict.fromkeys(t.split(":")[0] for t in told)) == [
        "preparing the logs",
        "identifying",
        "validating",
        "predicting",
    ]


def test_the_summary_holds_fit_and_validation() -> None:
    text = small_study().summary()
    assert "base parameters by weighted least squares" in text
    assert "on samples not used for the fit" in text


def test_sampling_may_be_made_for_each_motion() -> None:
    truth = small_arm()
    rng = np.random.default_rng(11)
    training, validation = log_of(truth, rng, "a", 4.0), log_of(truth, rng, "b", 2.0)

    def second_half(along: Motion) -> Sampling:
        return Sampling(drop={"q2": np.arange(len(along)) < len(along) // 2})

    study = identification(truth, training, validation, sampling=second_half)
    assert [r.samples for r in study.fit.rows] == [800, 400]
    assert [r.samples for r in study.check.rows] == [400, 200]
    assert study.settings["masked"] == "400 samples of q2"


def test_a_study_on_a_gpu_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy stands in for the GPU."""
    machine, how = small_arm(), Sampling()
    seen, unseen = small_study().training, small_study().validation
    true = identify_and_validate(machine, [seen], [unseen], how, how)
    devices: list[NumpyProcessor] = []
    monkeypatch.setattr(on_gpu, "open_gpu", lambda: devices.append(NumpyProcessor()) or devices[-1])
    found = identify_and_validate(
        machine, [seen], [unseen], how, how, estimation=Estimation(settings=IdentifySettings(device="cuda"))
    )
    assert len(devices) == 2  # for the fit and for the validation
    np.testing.assert_allclose(found.fit.values, true.fit.values, atol=1e-6 * true.fit.sigma.min())
    assert found.check.relative_error == pytest.approx(true.check.relative_error, rel=1e-9)


def test_output_error_reports_forces_as_forces_and_coordinates_apart() -> None:
    """Under one label stood the coordinates' error on the training motion and the forces' error on the other."""
    study = small_study()
    m = study.training[:300]
    found = identify_and_validate(
        study.model, [m], [study.validation], Sampling(), Sampling(), estimation=Estimation(OutputError(horizon=0.5))
    )
    f = found.figures
    assert [r.unit for r in found.fit.rows] == ["rad", "rad"] and [r.unit for r in found.own.rows] == ["N*m", "N*m"]
    assert f["training_percent"] == pytest.approx(100 * validate(found.fit, m, by="forces").relative_error)
    assert f["cross_validation_percent"] == pytest.approx(
        100 * validate(found.fit, study.validation, by="forces").relative_error
    )
    assert f["training_output_percent"] == pytest.approx(100 * found.fit.relative_error)
    assert f["training_output_std_percent"] < f["training_std_percent"]
    simulated = replay(found.fit.described.with_parameters(found.fit.standard), study.validation, horizon=0.5)
    assert f["cross_validation_output_percent"] == pytest.approx(100 * simulated.relative_error)
    assert f["cross_validation_output_std_percent"] == pytest.approx(100 * simulated.std_error)
    assert found.judging == simulated and [r.unit for r in found.judging_own.rows] == ["rad", "rad"]
    limits = IdentifyAccept(validation_percent=0.99 * f["cross_validation_output_percent"])
    assert missed(found, limits, 0)[0].startswith("relative error of simulated positions on the validation logs, %")
    said = verdict(found)
    assert any(s.startswith("Simulated in runs of 0.5 s from measured states") for s in said.findings)
    assert said.may[0].startswith("Simulating motions like those recorded, in runs of 0.5 s")
    page = identification_page(found, found.result("x", seed=1, quick=False, inputs={}), "veridyn")
    assert "Simulation of the validation data" in page


def test_a_simulation_that_fails_is_a_verdict_and_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Validation:
        raise SimulationError(Fault("it left the finite numbers at 1.2 s.", "small arm"))

    monkeypatch.setattr("veridyn.identify.pipeline.held_out.replayed", fails)
    study = small_study()
    how = Estimation(OutputError(horizon=0.5, start="tree", initial="measured"))
    with pytest.warns(IdentificationWarning, match="cannot be simulated with the identified parameters"):
        found = identify_and_validate(
            study.model, [study.training[:200]], [study.validation], Sampling(), Sampling(), estimation=how
        )
    said = verdict(found)
    assert said.grade == "poor" and "cannot be judged: the validation data cannot be simulated" in said.headline
    assert "small arm: it left the finite numbers at 1.2 s" in said.headline
    assert "cross_validation_output_percent" not in found.figures and found.figures["cross_validation_percent"] > 0.0


def test_drive_gains_that_give_the_only_force_are_judged() -> None:
    """Currents, and a load that is known: errors are of the forces that the identified gains give, and as large as their noise."""
    machine, rng = unknown(), np.random.default_rng(2)
    runs = [driven(rng), carrying(machine, driven(rng, loaded=True), "4", LOAD)]
    how = Estimation(Instrumental(reference="measured"))
    found = identify_and_validate(
        machine, runs, [driven(np.random.default_rng(3), loaded=False)], Sampling(), Sampling(), estimation=how
    )
    f = found.figures
    y = np.column_stack([g * found.validation.signals[f"i{k}"] for k, g in enumerate(GAINS, 1)])
    noise = np.linalg.norm(0.3 * NOISE * np.ones(4))
    assert f["cross_validation_percent"] == pytest.approx(100 * noise / np.sqrt((y**2).mean(axis=0).sum()), rel=0.1)
    assert f["rows_judged"] == 4 and not found.unjudged and f["training_percent"] < 2 * f["cross_validation_percent"]
    assert verdict(found).grade != "poor"


def test_samples_of_the_fit_are_counted_in_the_validation() -> None:
    study = small_study()
    m = study.training
    again = identify_and_validate(study.model, [m], [m[300:]], Sampling(), Sampling())
    assert again.figures["share_validation_held_out"] == 0.0
    assert "of which 0 % were not used for the fit" in again.summary()
