from dataclasses import replace

import numpy as np
import pytest

from studies.small_arm import small_study, with_check
from veridyn.identify.pipeline.identification import IdentificationStudy
from veridyn.identify.validation import Validation
from veridyn.inference.finding import FoundCause
from veridyn.report.verdict import verdict


def with_error(factor: float) -> IdentificationStudy:
    """The same study as if the other motion had been predicted that much worse."""
    study = small_study()
    rows = tuple(replace(r, rms=factor * r.measured_std) for r in study.check.rows)
    return with_check(study, forces=Validation(rows))


def test_a_good_study_says_what_it_is_good_for() -> None:
    said = verdict(small_study())
    assert said.grade == "good"
    assert "small arm" in said.headline
    assert any("24 parameters to be estimated" in s for s in said.findings)
    worst = max(0.2 * r.measured_rms / r.measured_std for r in small_study().check.rows)  # priors are a fifth off
    assert any(f"the worst row was off by {100 * worst:.0f} %" in s for s in said.findings)
    assert "rad/s" in said.may[0]
    assert any("simulated" in s for s in said.may_not)


@pytest.mark.parametrize(("error", "grade"), [(0.02, "good"), (0.1, "fair"), (0.4, "poor"), (float("nan"), "poor")])
def test_the_grade_follows_the_error_on_motion_not_seen(error: float, grade: str) -> None:
    assert verdict(with_error(error)).grade == grade


def test_a_poor_model_is_not_recommended_for_anything_but_repair() -> None:
    said = verdict(with_error(0.4))
    assert "not to be used" in said.headline
    assert len(said.may) == 1 and "lacks" in said.may[0]


def test_error_that_grows_on_the_other_motion_is_told() -> None:
    assert any(
        "q1 and q2 the rms error on the other motion is more than 1.5 times" in s
        for s in verdict(with_error(0.1)).findings
    )


def test_rows_that_contradict_each_other_and_coloured_residuals_are_told() -> None:
    study = small_study()
    coloured = {row: replace(w, p_value=0.0) for row, w in study.whiteness.items()}
    contradicted = verdict(replace(study, fit=replace(study.fit, residual_sigma=1.5), whiteness=coloured))
    said = [*(r.text for r in contradicted.reasons), *contradicted.findings]
    assert sum("contradict each other" in s and "1.50" in s for s in said) == 1
    assert any("residuals of q1 and q2 are correlated" in s and "assumes white noise" in s for s in said)
    allowed = replace(study.fit, white_covariance=study.fit.covariance)
    assert any(s.endswith("allow for it.") for s in verdict(replace(study, fit=allowed, whiteness=coloured)).findings)


def test_without_a_truth_nothing_is_said_of_it() -> None:
    study = small_study()
    said = verdict(replace(study, truth=np.full(len(study.truth), np.nan)))
    assert not any("truth" in s for s in said.findings)
    assert not any("simulated" in s for s in said.may_not)


def test_deviations_that_promise_too_much_are_told() -> None:
    study = small_study()
    far = replace(study, truth=study.fit.values + 3.0 * study.fit.sigma)
    assert not any("too small." in s for s in verdict(study).findings)
    assert any("stated deviations are too small" in s for s in verdict(far).findings)
    assert any("larger than stated" in s for s in verdict(far).may)


def test_a_row_that_carries_little_does_not_decide_the_grade_but_is_told() -> None:
    study = small_study()
    big, small = study.check.rows
    rows = (
        replace(big, rms=0.02 * big.measured_std),
        replace(small, rms=0.3, noise=1e-3, measured_std=0.01 * big.measured_std),
    )
    said = verdict(with_check(study, forces=Validation(rows)))
    assert said.grade == "good"
    assert any(
        "at worst 2.0 %" in s and s.split(";")[0].endswith("in row q1, no more than the noise of the measured force")
        for s in said.findings
    )
    assert any("carry little force are off by more" in s and "q2" in s for s in said.findings)


def test_a_row_of_noise_is_listed_and_neither_it_nor_a_noise_floor_decides_the_grade() -> None:
    """A finger that carries .085 N of noise among rows of another unit, and a row of which noise leaves 20 %: the model is right."""
    study = small_study()
    big, small = study.check.rows
    finger = replace(small, row="finger", rms=0.1, measured_rms=0.085, measured_std=0.1, noise=0.1, unit="N")
    floor = replace(big, rms=0.2 * big.measured_std, noise=0.2 * big.measured_std)
    study = replace(study, own=Validation((floor, finger)))
    said = verdict(with_check(study, forces=Validation((floor, finger))))
    assert said.grade == "good"
    assert any("Not judged" in s and "finger (rms error 0.1 N)" in s for s in said.findings)
    wrong = replace(floor, noise=0.02 * big.measured_std)
    assert verdict(with_check(study, forces=Validation((wrong, finger)))).grade == "poor"
    alone = verdict(with_check(study, forces=Validation((finger,))))
    assert alone.grade == "not validated" and "cannot be judged" in alone.headline


def test_samples_that_the_fit_used_are_not_called_unseen() -> None:
    said = verdict(with_check(small_study(), share=0.0))
    assert said.grade == "not validated" and "is not known" in said.headline
    assert [r.kind for r in said.reasons] == ["validation"]
    partly = verdict(with_check(small_study(), share=0.4))
    assert any("Only 40 % of the validation samples were not used for the fit" in r.text for r in partly.reasons)


def test_any_cause_keeps_the_verdict_from_good_and_is_its_reason() -> None:
    """However little it moves, and however well the fit predicts: until it is cleared up, values are not quoted."""
    study = with_error(0.02)
    finding = FoundCause(cause="rotor inertia", place="q2", rank=1, moves="ZZ2", shift=2.5, message="q2: a rotor.")
    said = verdict(replace(study, fit=replace(study.fit, findings=(finding,))))
    assert said.grade == "fair"
    assert [(r.kind, r.text) for r in said.reasons] == [("finding", "q2: a rotor.")]
    assert not any("Quoting" in s for s in said.may) and any("before the possible faults" in s for s in said.may_not)
