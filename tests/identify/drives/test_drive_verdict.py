"""A fit of drives is good only where held-out samples, logs and encoders say nothing against it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.identify.drives.demo_leg import fitted_leg, recorded_leg

import veridyn as vd
from veridyn.errors import IdentificationWarning
from veridyn.files.archive import load, save
from veridyn.identify.drives.drive_log import SATURATION, drive_records
from veridyn.identify.drives.drive_verdict import disagreement_of
from veridyn.identify.drives.held_out import WORSE_THAN_FILE
from veridyn.inference.finding import FoundCause
from veridyn.model.experiment import Channel

HUNG = slice(500, 560)  # samples of 5 ms


def finding(cause: str) -> FoundCause:
    return FoundCause(cause=cause, place="calf", rank=1, message="it was seen.")


def hung(log: vd.Experiment) -> vd.Experiment:
    """The encoder of the calf repeats one value for 0.3 s of motion."""
    c = log["position.calf"]
    values = c.values.copy()
    values[HUNG] = values[HUNG.start]
    return vd.Experiment({**log.channels, c.name: Channel(c.name, c.t, values, c.unit)}, log.name)


def test_a_clean_log_with_held_out_samples_is_good() -> None:
    fit = fitted_leg()
    assert fit.verdict.grade == "good" and fit.findings == () and fit.verdict.reasons == ()
    assert "201 times as closely" in fit.verdict.headline and fit.summary().endswith("verdict: good")
    assert "thigh_drive.kd" in " ".join(fit.verdict.may_not)
    judged = fit.with_validation(recorded_leg().validation)
    assert judged.verdict.grade == "good" and len(judged.held_out_logs) == len(fit.held_out_logs) + 1


CASES = {
    "not validated": ({"unseen": None}, ("validation",)),
    "disagreement": ({"disagreement": disagreement_of(3.0)}, ("disagreement",)),
    "frozen": ({"findings": (finding("frozen"),)}, ("finding",)),
    "saturation": ({"findings": (finding(SATURATION),)}, ("bound",)),
    "worse on one log": ({"findings": (finding(WORSE_THAN_FILE),)}, ("worse than file", "finding")),
}
GRADES = ("not validated", "fair", "fair", "fair", "poor")


@pytest.mark.parametrize(("name", "grade"), list(zip(CASES, GRADES, strict=True)))
def test_what_speaks_against_it(name: str, grade: str) -> None:
    changes, kinds = CASES[name]
    verdict = replace(fitted_leg(), **changes).verdict
    assert verdict.grade == grade and tuple(r.kind for r in verdict.reasons) == kinds


def test_a_delay_at_zero_is_a_bound() -> None:
    fit = fitted_leg()
    at_zero = tuple(replace(d, value=0.0) if d.key == "command_delay" else d for d in fit.drives)
    verdict = replace(fit, drives=at_zero).verdict
    assert verdict.grade == "fair" and [r.kind for r in verdict.reasons] == ["bound"]
    assert "thigh.command_delay" in verdict.reasons[0].text


def test_worse_than_the_file_on_all_that_was_held_out() -> None:
    """The fit and the file change places: their errors are 201 times apart."""
    fit = fitted_leg()
    assert fit.unseen is not None
    swapped = replace(fit, unseen=replace(fit.unseen, rows=fit.unseen.before, before=fit.unseen.rows), chance=0.0)
    assert swapped.verdict.grade == "poor" and swapped.verdict.reasons[0].kind == "worse than file"


def test_a_hung_encoder_is_a_finding_of_the_log_that_has_it() -> None:
    made, fit = recorded_leg(), fitted_leg()
    (record,) = drive_records(made.model, hung(made.training))
    assert [(m.kind, m.fault.where) for m in record.mistakes] == [("frozen", "training, channel 'position.calf'")]
    with pytest.warns(IdentificationWarning, match="it is frozen"):
        judged = fit.with_validation(hung(made.validation))
    first = judged.findings[0]
    assert (first.cause, first.place) == ("frozen", f"{made.validation.name}, channel 'position.calf'")
    assert judged.verdict.grade != "good"


def test_a_loaded_fit_has_the_same_verdict(tmp_path) -> None:
    fit = replace(fitted_leg(), widening=2.0, disagreement=disagreement_of(2.0), findings=(finding("frozen"),))
    save(fit, tmp_path / "fit.json")
    assert load(tmp_path / "fit.json").verdict == fit.verdict
