"""What docs/contract.md names is there: commands, exit codes, keys and figures of result.json, files of a run, versions of formats."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import veridyn
from veridyn.cli import DEFECT, app, output
from veridyn.files import fit_file
from veridyn.files.machine import write_parts
from veridyn.lazy import listed
from veridyn.studies.config import study
from veridyn.studies.result import ParameterRow, Result

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "veridyn"
PAGE = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
SECTIONS = dict(zip(*[iter(re.split(r"^## (.+)$", PAGE, flags=re.M)[1:])] * 2, strict=True))
CODE = re.compile(r"`([^`]+)`")
FIXED_LETTERS = 4  # of a text that is put together: f"{a}_{b}" would be any name


def rows(section: str) -> list[list[str]]:
    """The cells of each row of a section's table, without its head."""
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def written_names(*folders: str) -> tuple[set[str], list[re.Pattern[str]]]:
    """Texts in the source of some folders, and patterns of those that are put together: f"{name}_std_percent"."""
    whole, made = set(), []
    for folder in folders:
        for file in sorted((SOURCE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    whole.add(node.value)
                elif isinstance(node, ast.JoinedStr):
                    fixed = [p.value for p in node.values if isinstance(p, ast.Constant)]
                    if sum(c.isalpha() for c in "".join(map(str, fixed))) >= FIXED_LETTERS:
                        parts = [
                            re.escape(str(p.value)) if isinstance(p, ast.Constant) else r"\w+" for p in node.values
                        ]
                        made.append(re.compile("".join(parts)))
    return whole, made


def unwritten(named: list[str], *folders: str) -> list[str]:
    """Those of some names that no source in the folders writes."""
    whole, made = written_names(*folders)
    return [n for n in named if n not in whole and not any(p.fullmatch(n) for p in made)]


def test_every_figure_that_is_named_is_written() -> None:
    named = [name for figures, *_ in rows("result.json") for name in CODE.findall(figures)]
    assert len(named) > 40
    assert not unwritten(named, "studies", "identify/pipeline", "observe/consistency")
    assert unwritten(["nonsense_of_nobody", "rejected_OUTPUT"], "observe/consistency") == ["nonsense_of_nobody"]


@pytest.mark.parametrize("kind", ["identify", "excite", "observe", "simulate"])
def test_each_kind_of_study_has_figures(kind: str) -> None:
    assert any(runs.split(",")[0] == kind for _, runs, *_ in rows("result.json"))


def test_keys_of_a_result_and_of_its_parameters_are_those_that_are_written() -> None:
    listed_keys, each = SECTIONS["result.json"].split("Each entry of `parameters`")
    made = Result("s", 0, False, {}, {}, (), {}).as_dict()
    assert CODE.findall(listed_keys) == list(made)
    assert CODE.findall(each.split(".")[0]) == [f.name for f in fields(ParameterRow)]


def test_exit_codes_are_those_of_the_command_line() -> None:
    assert [int(code) for code, _ in rows("Commands")] == [0, output.MISSED, app.BAD_INPUT, DEFECT]


def test_commands_are_those_of_the_command_line() -> None:
    named = re.findall(r"`veridyn (\w+)`", SECTIONS["Commands"])
    groups = [g.name for g in app.app.registered_groups]
    assert sorted(named) == sorted([*groups, *(command.__name__ for command in app.COMMANDS)])


def test_files_of_a_run_folder_are_written_somewhere() -> None:
    named = [name for files, *_ in rows("Files of a run folder") for name in CODE.findall(files)]
    assert len(named) > 15
    named = [n.replace(".csv", ".{suffix}") if n in ("truth.csv", "log.csv") else n for n in named]
    templates = {n for n in named if "{suffix}" in n}
    assert not unwritten([n for n in named if n not in templates], "studies", "cli")
    texts = [file.read_text(encoding="utf-8") for file in (SOURCE / "studies").rglob("*.py")]
    assert all(any(f'f"{n}"' in text for text in texts) for n in templates)


def test_versions_of_formats_are_those_of_the_code() -> None:
    current = [write_parts.FORMAT, study.FORMAT, fit_file.FORMAT]
    assert [[int(cell) for cell in cells] for _, *cells in rows("File formats")] == [[n, n, n] for n in current]


def test_modules_are_those_of_the_package() -> None:
    named = set(re.findall(r"`veridyn\.(\w+)`", SECTIONS["Names"]))
    assert named == {name for name, (home, _) in listed(veridyn.__name__).items() if home == "veridyn"}
