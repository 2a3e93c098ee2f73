"""Where the logs of real machines are: the folder that VERIDYN_DATA names. They are no part of the repository."""

import os
from pathlib import Path

import pytest


def folder(name: str) -> Path:
    """The folder of one machine; the test is skipped, with the reason, where it is not there."""
    root = os.environ.get("VERIDYN_DATA", "")
    if not root:
        pytest.skip("no real logs: the variable VERIDYN_DATA does not name their folder")
    path = Path(root) / name
    if not path.is_dir():
        pytest.skip(f"no real logs of '{name}' in the folder that VERIDYN_DATA names")
    return path
