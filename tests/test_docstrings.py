"""The public functions document every parameter, what they return and an example, and the example runs."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import veridyn
from veridyn.identify.estimate import ESTIMATORS
from veridyn.identify.excitation.shape import SHAPES
from veridyn.lazy import listed

PUBLIC = {name: getattr(veridyn, name) for name in dir(veridyn)}
FUNCTIONS = {name: f for name, f in PUBLIC.items() if inspect.isfunction(f)}
MODULES = [name for name, value in PUBLIC.items() if inspect.ismodule(value) and name != "errors"]
# What stands in the modules beside the front door, and there only.
BESIDE = {
    f"{module}.{name}": getattr(PUBLIC[module], name)
    for module in MODULES
    for name in listed(f"veridyn.{module}")
    if name not in PUBLIC
}
HEADING = re.compile(r"^(\w+)\n-+$", re.MULTILINE)


def sections(function: Callable[..., Any]) -> dict[str, str]:
    """The text below each heading of a docstring in NumPy style."""
    parts = HEADING.split(inspect.getdoc(function) or "")
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(text: str) -> list[str]:
    """The names that a section of parameters describes, in order: "name : type", or several with commas between."""
    return [name for line in re.findall(r"^(\w[\w, ]*) : \S", text, re.MULTILINE) for name in line.split(", ")]


def examples() -> dict[str, doctest.DocTest]:
    """The examples of all public functions and classes, of their methods, and of the modules themselves."""
    finder, parser = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestParser()
    found = {}
    for name, value in (PUBLIC | BESIDE).items():
        if inspect.ismodule(value):
            tests = [parser.get_doctest(value.__doc__ or "", {}, name, value.__file__, 0)]
        else:
            tests = finder.find(value, name, globs={}) if inspect.isfunction(value) or inspect.isclass(value) else []
        found |= {test.name: test for test in tests if test.examples}
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_parameter_of_a_public_function_is_documented(name: str) -> None:
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters)
    assert documented(sections(FUNCTIONS[name])["Parameters"]) == parameters


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_public_function_has_a_summary_returns_and_an_example(name: str) -> None:
    summary = (inspect.getdoc(FUNCTIONS[name]) or "").splitlines()[0]
    assert summary.endswith((".", ":")) and len(summary) <= 140
    assert {"Parameters", "Returns", "Examples"} <= set(sections(FUNCTIONS[name]))
    assert name in EXAMPLES


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - {"__version__"}))
def test_every_name_of_the_front_door_has_an_example(name: str) -> None:
    assert name in EXAMPLES


@pytest.mark.parametrize("name", sorted(BESIDE))
def test_what_stands_in_the_modules_says_what_it_is(name: str) -> None:
    value = BESIDE[name]
    if inspect.isfunction(value) or inspect.isclass(value):
        text = inspect.getdoc(value) if inspect.isfunction(value) else value.__doc__
        assert text and not text.startswith(f"{value.__name__}("), (
            name
        )  # not the one that a dataclass makes of its fields


# Results of runs that take long, files and cards that are not at hand; each has an example or a test on its page of the documentation.
NOT_SHOWN = {
    "estimators": "CarFit DriveEstimate DrivePlan DriveReplay DrivesFit ExcitationPlan FlexibleFit ResonanceFit Trial diagnose "
    "encoder_offsets essential evidence find_mistakes identify_resonance",
    "files": "load_osim load_storage",
    "filters": "CarObservation ParameterFit",
    "gpu": "DeviceBase DeviceMotion DeviceRuns",
    "studies": "run_identify",
}


def test_all_other_names_of_the_modules_stand_in_an_example() -> None:
    text = "\n".join(line for test in EXAMPLES.values() for e in test.examples for line in (e.source, e.want))
    words = set(re.findall(r"\w+", text))
    lacking = {name for name in BESIDE if name.split(".")[1] not in words}
    assert lacking == {f"{module}.{name}" for module, names in NOT_SHOWN.items() for name in names.split()}


@pytest.fixture(scope="module")
def identified() -> dict[str, Any]:
    """The names that the example of `identify` defines: those of the methods go on from there, and import nothing."""
    test = EXAMPLES["identify"]
    doctest.DocTestRunner().run(test, clear_globs=False)
    return dict(test.globs)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_runs_and_prints_what_it_shows(
    name: str, identified: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    test, lines = EXAMPLES[name], list[str]()
    alone = any("import" in example.source for example in test.examples)
    test.globs = {} if alone else dict(identified)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    result = runner.run(test, out=lines.append)
    assert result.attempted > 0 and result.failed == 0, "".join(lines)


def test_every_estimator_and_every_family_of_motions_has_an_example() -> None:
    methods = [*ESTIMATORS.values(), *SHAPES.values()]
    assert {method.__name__ for method in methods} <= {name.split(".")[-1] for name in EXAMPLES}
