"""What packagers rely on: one version everywhere, the recipe's requirements are the package's, and the check of the wheel is whole."""

from __future__ import annotations

import re
import runpy
import subprocess
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import veridyn as vd

ROOT = Path(__file__).parents[1]
KINDS = {"Upgrade notes", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def yaml(path: Path) -> dict:
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def test_one_version() -> None:
    assert PROJECT["version"] == vd.__version__
    assert yaml(ROOT / "CITATION.cff")["version"] == vd.__version__
    assert yaml(ROOT / "packaging/conda/recipe.yaml")["context"]["version"] == vd.__version__


def test_the_changelog_begins_with_the_version_and_how_to_follow_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", text, re.MULTILINE)
    released = [(version, date) for version, date in headings if version != "Unreleased"]
    cited = yaml(ROOT / "CITATION.cff")
    assert released[0] == (cited["version"], str(cited["date-released"]))
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", part, re.MULTILINE)
        assert len(kinds) == len(set(kinds)) and set(kinds) <= KINDS, kinds


def test_addresses_are_the_same_everywhere() -> None:
    urls, cited = PROJECT["urls"], yaml(ROOT / "CITATION.cff")
    assert cited["repository-code"] == urls["Repository"] and cited["url"] == urls["Documentation"]
    assert yaml(ROOT / "packaging/conda/recipe.yaml")["about"]["repository"] == urls["Repository"]
    assert {"Issues", "Changelog"} <= set(urls)


def test_classifiers_reach_from_the_oldest_interpreter_to_the_newest_that_is_tried() -> None:
    minors = [int(m[1]) for c in PROJECT["classifiers"] if (m := re.fullmatch(r".*Python :: 3\.(\d+)", c))]
    tried = yaml(ROOT / ".github/workflows/ci.yml")["jobs"]["linux"]["strategy"]["matrix"]["python"]
    assert PROJECT["requires-python"] == f">=3.{minors[0]}"
    assert [f"3.{minor}" for minor in minors] == tried


def test_the_recipe_requires_what_the_package_does() -> None:
    run = yaml(ROOT / "packaging/conda/recipe.yaml")["requirements"]["run"]
    asked = {re.sub(r"\s", "", line) for line in run if not line.startswith("python ")}
    assert asked == set(PROJECT["dependencies"])


def test_docs_list_the_extras_of_users() -> None:
    table = (ROOT / "docs/getting-started.md").read_text(encoding="utf-8")
    listed = {
        name
        for row in re.findall(r"^\| (`[a-z`, ]+`) \|", table, re.MULTILINE)
        for name in re.findall(r"`([a-z]+)`", row)
    }
    for_the_project, empty = {"test", "docs"}, {"collision"}
    assert listed == set(PROJECT["optional-dependencies"]) - for_the_project - empty


def test_the_check_of_the_wheel_asks_for_every_extra() -> None:
    """What is asked for there is what tests/test_extras.py asks for with hidden imports: Pinocchio serves comparisons alone."""
    asked = {name.split()[0] for name in runpy.run_path(str(ROOT / "packaging" / "check.py"))["WITHOUT"]}
    assert asked == set(PROJECT["optional-dependencies"]) - {"test", "docs", "all", "collision", "pinocchio"}


def test_the_source_distribution_holds_what_its_tests_read() -> None:
    """Everything at the top of the repository, but for what serves this repository alone."""
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not told:
        pytest.skip("this is no checkout")
    tracked = {line.split("/")[0] for line in told.splitlines()} - {".ci", ".gitignore", "pyproject.toml"}
    sdist = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "sdist"
    ]
    assert tracked == {path.removeprefix("/") for path in sdist["include"]}


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name)
def test_workflows_and_templates_are_yaml(path: Path) -> None:
    assert isinstance(yaml(path), dict)


def test_what_the_matrix_tries_exists() -> None:
    named = re.findall(r'"(tests/[^"]+)"', (ROOT / "packaging/matrix.py").read_text(encoding="utf-8"))
    assert named and not [name for name in named if not (ROOT / name).is_file()]
