"""Texts that are no description are refused early: too many values, written or repeated by aliases."""

from __future__ import annotations

import pytest

from veridyn.errors import FileError
from veridyn.files import yaml_nodes
from veridyn.files.yaml_nodes import compose


def test_reading_stops_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is not even looked at: what is no YAML behind the bound is not reported."""
    monkeypatch.setattr(yaml_nodes, "MAX_NODES", 2001)
    keys = "".join(f"key{k}: 1\n" for k in range(1000))
    assert len(compose(keys).value) == 1000  # the mapping, its keys and its values
    with pytest.raises(
        FileError, match=r"a\.yaml, line 1001: it holds more values than any description(.|\n)*at most 2001"
    ):
        compose(keys + "one: more\n]]]\n", "a.yaml")


def test_aliases_count_as_often_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_nodes, "MAX_NODES", 100)
    assert len(compose("a: &x [1, 2, 3]\nb: [*x, *x]\n").value) == 2
    with pytest.raises(FileError, match="aliases"):
        compose("a: &x [1, 2, 3]\nb: &y [*x, *x, *x, *x]\nc: &z [*y, *y, *y]\nd: [*z, *z, *z]\n")


@pytest.mark.parametrize(
    ("text", "source", "said"),
    [
        ("<robot><xacro:arm/></robot>", "a.urdf.xacro", "Expand it first: xacro a.urdf.xacro > a.urdf"),
        ('<?xml version="1.0"?>\n<robot/>', "b.xacro", "Expand it first: xacro b.xacro > b.urdf"),
        ("\n<robot><xacro:arm/></robot>", "c.yaml", "this is a xacro file, not yet a URDF"),
        ("<robot/>", "d.yaml", "this is XML, not YAML.\nThe name of a URDF file ends in .urdf."),
        ("<mujoco/>", "e.yaml", "The name of an MJCF file ends in .xml or .mjcf."),
        ("<html/>", "f.yaml", "this is XML, not YAML."),
    ],
)
def test_xml_is_named(text: str, source: str, said: str) -> None:
    with pytest.raises(FileError) as refused:
        compose(text, source)
    assert said in str(refused.value) and str(refused.value).startswith(f"{source}, ")
