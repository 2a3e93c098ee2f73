"""Makes the helpers under tests/ importable as ``from strangers.random_trees import random_tree``, and shares the files out to workers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

# Files that take longest come first, so that no worker waits for the other at the end.
LONGEST = (
    "studies/papers/car",
    "report/papers/test_car",
    "observe/test_free.py",
    "cli/test_fitted.py",
    "cli/test_damaged_observer.py",
    "identify/test_conformance.py",
    "examples",
    "cli",
    "studies",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        place = item.path.relative_to(HERE).as_posix()
        return next((k for k, start in enumerate(LONGEST) if place.startswith(start)), len(LONGEST))

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests stay on one worker with what they share; so do all files that look at the one day of the car."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            source = Path(config.rootpath, file)
            return "car_day" if "studies.car_day" in source.read_text(encoding="utf-8") else file

    config.option.loadscopereorder = False
    return ByFile(config, log)
