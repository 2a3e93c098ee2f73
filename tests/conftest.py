"""Makes the helpers under tests/ importable as ``from strangers.random_trees import random_tree``, and shares the files out to workers."""

from __future__ import annotations

import gc
import importlib.abc
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

NOT_ON_WINDOWS = ("pinocchio", "example_robot_data", "resource")


class SkipsWhatIsMissing(importlib.abc.MetaPathFinder):
    """Asked last: where a module of `names` is not installed, the file of tests that imports it is skipped by name."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname in self.names:
            pytest.skip(f"{fullname} is not made for this system", allow_module_level=True)


if sys.platform == "win32":
    sys.meta_path.append(SkipsWhatIsMissing(NOT_ON_WINDOWS))

# Files that make the same things (a day of the car, runs of the humanoid) or machine code that takes minutes: one worker runs them all.
SHARED = {
    "car": ("papers/car/",),
    "humanoid": ("papers/humanoid/", "identify/test_laboratory.py"),
    "observers": (
        "observe/filters/test_free_step.py",
        "cli/test_fitted.py",
        "cli/test_damaged_observer.py",
    ),
    "drives": ("identify/drives/",),
}
# What these leave to compile is used by others later, so that they come first, and what needs none of it next.
NEXT = ("identify/", "files/", "symbolic/", "model/", "signals/", "spatial/")


def rank(place: str) -> int:
    """Where the tests of a file come, from 0 on; `place` is its path below tests/."""
    order = [*SHARED.values(), *((start,) for start in NEXT)]
    return next((k for k, starts in enumerate(order) if place.startswith(starts)), len(order))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Half a million objects of tests and modules stay to the end: the collector does not look through them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every other worker reads the files from the last to the first: of two, each finds compiled what the other has read."""
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if int(worker) % 2 and isinstance(collector, pytest.Session | pytest.Directory):
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def order(item: pytest.Item) -> tuple[int, str]:
        place = item.path.as_posix().removeprefix(f"{HERE.as_posix()}/")
        return rank(place), place

    items.sort(key=order)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests stay on one worker with what they share, and so do files that share something."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            place = file.removeprefix("tests/")
            return next((name for name, starts in SHARED.items() if place.startswith(starts)), file)

    config.option.loadscopereorder = False
    return ByFile(config, log)
