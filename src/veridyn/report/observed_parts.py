"""What machines of different kinds give to the common page of an observation."""

from __future__ import annotations

from typing import NamedTuple

from veridyn.observe.history import StateHistory
from veridyn.report.blocks import Key, Section


class ObservedParts(NamedTuple):
    """What a page of an observation is made of beside limits, innovations and consistency, which all have: sections `before` and `after`
    those, key figures, settings, and the observation, if there is one, from sample `skip` on."""

    name: str
    observation: StateHistory | None
    skip: int
    keys: list[Key]
    before: list[Section]
    after: list[Section]
    settings: dict[str, str]
