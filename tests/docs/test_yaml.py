"""Every block of YAML in README and docs is read by the reader of what it is: a model file, a study, or a part of one.

A line that leaves something out is a comment: # …
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from veridyn.files.machine.load import parse_machine
from veridyn.files.machine.schema import model_schema
from veridyn.files.yaml_reader import plain_yaml
from veridyn.studies.config.study import json_schema, load_study

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^ *```ya?ml[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def yaml_blocks() -> Iterator[tuple[str, str]]:
    """Page and line of each block, and its text."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = page.read_text(encoding="utf-8")
        for found in BLOCK.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{page.relative_to(ROOT).as_posix()}:{line}", found[1]


def sections(schema: Mapping[str, Any]) -> set[str]:
    """The keys at the top of what a schema describes, in all of its forms."""
    found = set(schema.get("properties", {}))
    for word in ("anyOf", "oneOf", "allOf"):
        found |= {key for part in schema.get(word, ()) for key in sections(part)}
    for part in schema.get("$defs", {}).values():
        found |= set(part.get("properties", {}))
    return found


BLOCKS = dict(yaml_blocks())


@pytest.mark.parametrize("place", BLOCKS)
def test_a_block_is_read_as_what_it_is(place: str, tmp_path: Path) -> None:
    text = BLOCKS[place]
    values = plain_yaml(text, place).values
    assert "…" not in re.sub(r"#.*", "", text), f"{place}: what is left out is a comment"
    if "veridyn" not in values:
        known = sections(model_schema()) | sections(json_schema())
        assert set(values) <= known, f"{place}: no file has the keys {set(values) - known}"
    elif "kind" in values:
        study = tmp_path / "study.yaml"
        study.write_text(text, encoding="utf-8")
        assert load_study(study).study.kind == values["kind"]
    else:
        assert parse_machine(text, place).name == values.get("name", "machine")


def test_there_are_many_of_them() -> None:
    assert len(BLOCKS) > 40
