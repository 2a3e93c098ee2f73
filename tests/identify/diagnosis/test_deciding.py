"""Every cause has a recording that shows it, and pairs that look alike one that separates them."""

from __future__ import annotations

import pytest

from veridyn.identify.diagnosis.causes import KINDS
from veridyn.identify.diagnosis.deciding import deciding_recording


@pytest.mark.parametrize("kind", KINDS)
def test_every_cause_has_one(kind: str) -> None:
    assert deciding_recording(kind)
    assert deciding_recording(kind, ["rotor inertia" if kind != "rotor inertia" else "dry friction"])


@pytest.mark.parametrize(
    ("a", "b", "what"),
    [
        ("late force", "viscous friction", "faster reversals"),
        ("load-dependent friction", "dry friction", "payload"),
        ("gravity direction", "encoder zero", "other poses"),
        ("late force", "low-pass of the force", "fast reversals"),
    ],
)
def test_pairs_do_not_depend_on_their_order(a: str, b: str, what: str) -> None:
    assert what in deciding_recording(a, [b]) and deciding_recording(a, [b]) == deciding_recording(b, [a])


def test_one_kind_at_several_places_is_separated_by_motion() -> None:
    assert "rest" in deciding_recording("force offset", ["force offset"])


def test_nothing_is_said_of_kinds_that_no_recording_decides() -> None:
    assert deciding_recording("positions swapped") == ""
