from studies.small_arm import small_study
from veridyn.studies.config.identify import IdentifyAccept
from veridyn.studies.run.limits import missed


def test_limits_that_are_kept_say_nothing() -> None:
    study = small_study()
    kept = IdentifyAccept(
        training_percent=50, validation_percent=50, row_percent={"q1": 50}, suspicions=0, condition=1e6
    )
    assert missed(study, kept, 0) == []
    assert missed(study, IdentifyAccept(), 7) == []
    assert missed(study, IdentifyAccept(base_parameters=study.fit.base.count, well_identified=1), 0) == []


def test_each_limit_that_is_missed_is_a_sentence() -> None:
    hard = IdentifyAccept(
        training_percent=1e-3,
        validation_percent=1e-3,
        row_percent={"q1": 1e-3, "q9": 5},
        base_parameters=99,
        condition=1,
        well_identified=99,
        suspicions=0,
    )
    said = missed(small_study(), hard, 1)
    assert len(said) == 8
    assert any("accept.validation_percent" in s for s in said)
    assert any("row 'q9'" in s and "no such row" in s for s in said)
