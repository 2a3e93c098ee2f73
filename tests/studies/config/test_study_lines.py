"""Lines of new study files: keys with their meaning, how a table is read, names in comments, and paths."""

from pathlib import Path

import numpy as np

from veridyn.files.log.load import Survey
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.studies.config.excite import MotionSettings
from veridyn.studies.config.guessing import Guess
from veridyn.studies.config.identify import IdentifyAccept, SamplingSettings, SignalSettings
from veridyn.studies.config.study_lines import beside, head_lines, key_lines, log_lines, shortened, time_lines, wrapped

X = np.sin(np.arange(20.0))


def test_a_key_has_its_default_and_its_meaning() -> None:
    (line,) = key_lines(SignalSettings, "lowpass")
    assert line == f"  lowpass: auto # {SignalSettings.model_fields['lowpass'].description}"
    assert key_lines(MotionSettings, "frequency", note="guessed")[0].endswith("; guessed")
    assert key_lines(IdentifyAccept, "suspicions", 0, depth=0)[0].startswith("suspicions: 0 # ")


def test_a_long_meaning_stands_above_its_key() -> None:
    *above, line = key_lines(SamplingSettings, "dead_zone")
    assert line == "  dead_zone: auto"
    assert len(above) > 1 and all(comment.startswith("  # ") and len(comment) < 140 for comment in above)


def test_a_table_without_a_clock_asks_for_its_rate() -> None:
    (line,) = time_lines(Survey(Path("a.csv"), {"a": X}, {}), "")
    assert line.startswith("  rate: # the log has no clock: write how many samples a second")
    assert time_lines(Survey(Path("a.csv"), {"a": X}, {}, False, decimal=","), "", 500.0) == [
        "  rate: 500 # samples a second: the log has no clock",
        '  decimal: ","',
        "  header: [a] # the file has none; call the columns what they are",
    ]
    assert time_lines(Survey(Path("a.mf4"), {"a": X}, {}, clocks={"a": X}), "") == []


def test_columns_stand_with_what_is_missing_and_what_is_left() -> None:
    found = [Guess("q.a", "angle 1", "rad", "guessed")]
    lines = log_lines(["  time: t"], found, ["force.a"], "    # note", left=["b"])
    assert lines == [
        "",
        "log:",
        "  time: t",
        "  columns: # channel: column [unit]",
        '    q.a: "angle 1 [rad]" # guessed',
        "    # not found, and needed: force.a",
        "    # note",
        "    # columns not used: b",
    ]
    assert log_lines([], [])[2:] == ["  columns: {} # channel: column [unit]"]


def test_a_head_names_the_machine_or_says_study(tmp_path: Path) -> None:
    for name, called in (("my arm", "my-arm-motion"), ("日本", "study-motion")):
        machine = Machine.of_bodies([Body("a", None)], name=name)
        lines = head_lines("A motion of '{}'", "excite", machine, tmp_path / "s.yaml", tmp_path / "m.yaml", "-motion")
        assert f"name: {called}" in lines and lines[0].startswith(f"# A motion of '{name}'. ")
        assert "  file: m.yaml" in lines and "seed: 1" not in lines


def test_paths_are_beside_the_study_or_whole(tmp_path: Path) -> None:
    assert beside(tmp_path / "logs" / "a.csv", tmp_path / "s.yaml") == "logs/a.csv"
    assert beside(tmp_path / "a.csv", tmp_path / "studies" / "s.yaml") == str(tmp_path / "a.csv")


def test_of_many_names_the_first_are_shown() -> None:
    assert wrapped("# ", []) == []
    assert wrapped("# ", [str(k) for k in range(40)])[0].endswith("29, …")


def test_patterns_stand_for_names_with_one_first_word() -> None:
    names = ["wheel_left", "wheel_right", "head_1", "lift"]
    assert shortened(names, ["arm_1"]) == ["wheel_*", "head_1", "lift"]
    assert shortened(names, ["wheel_back"]) == names
