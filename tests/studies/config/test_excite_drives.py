"""The section of commands for drives: its keys are the settings of the design, where a rate is that of the drives and not of the log."""

import pytest

from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml
from veridyn.identify.drives.drive_excitation import DriveExcitation
from veridyn.studies.config.excite_drives import DriveExciteFile
from veridyn.studies.config.study import parse_study

STUDY = "kind: excite\nmodel: {file: leg.yaml}\ndrives: {ask: [kp], sampling: 100, rate: 500}\nlimits: {knee: {range: [-1, 1]}}\n"


def test_the_section_makes_the_settings_of_the_design() -> None:
    study = parse_study(plain_yaml(STUDY))
    assert isinstance(study, DriveExciteFile) and study.name == "commands"
    assert study.drives.settings() == DriveExcitation(ask=("kp",), rate=100.0, ticks=500.0)


def test_a_range_has_its_lower_end_first() -> None:
    with pytest.raises(FileError, match="the range of knee is two positions, the lower one first"):
        parse_study(plain_yaml(STUDY.replace("[-1, 1]", "[1, -1]")))
