"""The machines whose files come with veridyn, each read once in a process: a machine never changes."""

from __future__ import annotations

from functools import cache
from importlib import resources

from veridyn.files.machine.load import parse_machine
from veridyn.model.machine import Machine


@cache
def described(file: str) -> Machine:
    """The machine of a model file in this folder, such as "arm.yaml"."""
    text = resources.files("veridyn.machines").joinpath(file).read_text(encoding="utf-8")
    return parse_machine(text, source=file)
