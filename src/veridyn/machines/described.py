"""The machines whose files come with veridyn, each read once in a process: a machine never changes."""

from __future__ import annotations

from functools import cache

from veridyn.files.machine.load import parse_machine
from veridyn.files.shipped import PREFIX, shipped
from veridyn.model.machine import Machine


@cache
def described(file: str) -> Machine:
    """The machine of a model file that comes with veridyn, such as "arm.yaml"."""
    return parse_machine(shipped(PREFIX + file).read_text(encoding="utf-8"), source=file)
