import pytest

from veridyn.errors import FileError
from veridyn.files.yaml_reader import plain_yaml

TEXT = """\
a: 1
b:
  - {x: 1.5, y: two}
  - [true, null, "3", 0x10, 1e3, 12:30]
c: {d: -.inf}
"""


def test_values_are_plain_and_every_place_has_its_line() -> None:
    read = plain_yaml(TEXT, "f.yaml")
    assert read.values == {
        "a": 1,
        "b": [{"x": 1.5, "y": "two"}, [True, None, "3", 16, 1000.0, "12:30"]],
        "c": {"d": -float("inf")},
    }
    assert isinstance(read.values["a"], int)
    assert read.lines["a",] == 1
    assert read.lines["b",] == 2
    assert read.lines["b", 0, "y"] == 3
    assert read.lines["b", 1, 2] == 4


def test_a_place_that_is_not_there_has_the_line_of_what_holds_it() -> None:
    read = plain_yaml(TEXT)
    assert read.line(("b", 0, "z")) == 3
    assert read.line(("nowhere", 7)) == 1


def test_keys_twice_tags_and_merges_are_refused_all_at_once() -> None:
    text = "a: 1\na: 2\nb: !!python/object:os.system {}\nc: &c {x: 1}\nd: {<<: *c}\n"
    with pytest.raises(FileError) as caught:
        plain_yaml(text, "f.yaml")
    said = str(caught.value)
    assert "f.yaml, 3 faults" in said
    assert "(line 2): 'a' stands twice" in said or "line 2: 'a' stands twice" in said
    assert "tag '!!python/object:os.system'" in said
    assert "merge keys (<<)" in said
