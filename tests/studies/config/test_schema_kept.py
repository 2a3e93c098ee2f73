"""What study files promise stays: the schema, the faults of faulty studies, studies with every default, and the page of keys.

The record in `kept/` is written anew, where it is meant to change, by ``python tests/studies/config/kept/record.py``.
"""

from __future__ import annotations

import re

import pytest

from studies.config.kept.record import RECORDS, faulty, kept, names, schema_lines

AGAIN = "python tests/studies/config/kept/record.py"


@pytest.mark.parametrize("name", RECORDS)
def test_what_study_files_promise_stays(name: str) -> None:
    now, before = RECORDS[name](), kept(name)
    assert list(now) == list(before), f"other parts than in kept/{name}.txt; if that is meant: {AGAIN}"
    different = [heading for heading in now if now[heading] != before[heading]]
    for heading in different:
        assert now[heading] == before[heading], f"{heading}, and {len(different) - 1} more; if that is meant: {AGAIN}"


def test_the_faulty_studies_have_faults_and_every_section_is_among_the_studies() -> None:
    out = faulty()
    assert len(out) > 100 and all(lines != ["no fault"] for lines in out.values())
    of_section = {
        match[1] for heading in kept("wrong_types") if (match := re.match(r"(.*), a word for every key of ", heading))
    }
    variants = {heading for heading in schema_lines() if ":" not in heading}
    assert variants == of_section and variants <= set(names())
