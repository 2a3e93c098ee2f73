"""The four-bar linkage of paper 003: the machine on which observers are tried."""

from __future__ import annotations

from importlib import resources

from veridyn.files.natural import parse_mechanism
from veridyn.model.natural import Mechanism


def fourbar() -> Mechanism:
    """The linkage as its file describes it: bars of 2, 8 and 5 m between fixed points 10 m apart, one degree of freedom `phi`."""
    text = resources.files("veridyn.machines").joinpath("fourbar.yaml").read_text(encoding="utf-8")
    return parse_mechanism(text, "fourbar.yaml")
