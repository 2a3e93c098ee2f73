"""Files that come with veridyn are read once, and give what reading them gives."""

from __future__ import annotations

import pytest

from veridyn.errors import DataError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.write import model_text
from veridyn.machines.described import described


@pytest.mark.parametrize("file", ["linkage.yaml", "crane.yaml"])
def test_the_machine_is_that_of_the_file_and_made_once(file: str) -> None:
    assert described(file) is described(file)
    assert model_text(described(file)) == model_text(load_model(f"veridyn:{file}"))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(DataError, match="veridyn brings no file"):
        described("no_machine.yaml")
