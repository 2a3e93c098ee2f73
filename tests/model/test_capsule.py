"""What a capsule of a body must be."""

import pickle

import numpy as np

from veridyn.errors import Faults
from veridyn.model.capsule import LinkCapsule, check_capsule
from veridyn.model.link import Link

GOOD = LinkCapsule((0.0, 0.0, 0.0), (0.4, 0.0, 0.0), 0.05)


def faults(capsule: LinkCapsule) -> list[str]:
    found = Faults()
    check_capsule(capsule, "body 'arm', capsule 1", found)
    return [str(f) for f in found.found]


def test_each_fault_has_its_place() -> None:
    assert faults(GOOD) == []
    bad = LinkCapsule((0.0, 0.0), (np.inf, 0.0, 0.0), -0.1)  # pyright: ignore[reportArgumentType]
    start, end, radius = faults(bad)
    assert "body 'arm', capsule 1: its start is not a point." in start and "its end is not a point." in end
    assert "a radius must be above zero." in radius and "-0.1" in radius
    assert len(faults(LinkCapsule(GOOD.start, GOOD.end, float("nan")))) == 1


def test_capsules_travel_between_processes_with_their_body() -> None:
    link = Link(name="arm", capsules=[GOOD])  # pyright: ignore[reportArgumentType]
    assert pickle.loads(pickle.dumps(link)).capsules == (GOOD,)
