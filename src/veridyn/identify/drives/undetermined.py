"""What a log of commands and positions cannot show of drives, in words: directions in which the posterior is nearly the prior
(:func:`veridyn.inference.posterior.open_directions`), whose unknowns scale or move together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.drives.drive_unknowns import WORDS, DriveUnknown
from veridyn.inference.posterior import open_directions as directions_of

NAMES = {
    "armature": "armature",
    "viscous": "viscous friction",
    "coulomb": "dry friction",
    "kp": "kp",
    "kd": "kd",
    "zero": "encoder zero",
    "command_delay": "delay of commands",
    "measurement_delay": "delay of measurements",
    **WORDS,
}
REMEDIES = (
    (
        {"kp", "armature"},
        "they scale together: give one of them, or record a run with a known load on the links",
    ),
    (
        {"kd", "viscous"},
        "only their sum acts while commands are held: give one of them, or record a run with another kd",
    ),
    ({"kp", "coulomb"}, "they scale together: give one of them, or record a run with a known load on the links"),
    (
        {"zero", "kp"},
        "gravity, the zero and kp are one direction at one load: record poses that gravity loads otherwise, or another kp",
    ),
    ({"zero"}, "record slow motion both ways over poses that gravity loads differently, or measure the zero"),
    ({"command_delay", "measurement_delay"}, "record steps of the command, or give one of both delays"),
    ({"armature"}, "record faster motion: it takes accelerations"),
)


@dataclass(frozen=True)
class OpenDirection:
    """Unknowns that the data leave open together: their names, the share of the prior's deviation that is left, and the sentence."""

    names: tuple[str, ...]
    left: float
    text: str

    def __str__(self) -> str:
        return self.text


def open_directions(unknowns: Sequence[DriveUnknown], covariance: Array) -> tuple[OpenDirection, ...]:
    """Of unknowns with posterior covariance (u, u) in z, every direction that is not determined, joint by joint, the least known first.

    Directions are those of the unknowns of one joint, whatever the others are: joints of one kind have equal ones, which would mix.
    """
    found: list[OpenDirection] = []
    for joints in dict.fromkeys(u.joints for u in unknowns):
        own = [k for k, u in enumerate(unknowns) if u.joints == joints]
        for direction in directions_of(covariance[np.ix_(own, own)]):
            members = [unknowns[own[a]] for a in direction.members]
            found.append(
                OpenDirection(tuple(u.name for u in members), direction.left, _sentence(members, direction.left))
            )
    return tuple(found)


def _sentence(members: Sequence[DriveUnknown], left: float) -> str:
    """Of unknowns of the same joints."""
    joints = members[0].joints
    where = joints[0] if len(joints) == 1 else f"{joints[0]} to {joints[-1]}"
    keys = {u.key for u in members}
    remedy = next(
        (text for needed, text in REMEDIES if needed <= keys), "give it a narrower prior, or record other motion"
    )
    what = f"{_listed([NAMES[u.key] for u in members])} of {where}"
    together = "" if len(members) == 1 else " act together"
    return f"{what}{together}: {100.0 * left:.0f} % of the prior's deviation is left; {remedy}."


def _listed(words: Sequence[str]) -> str:
    own = list(dict.fromkeys(words))
    return own[0] if len(own) == 1 else f"{', '.join(own[:-1])} and {own[-1]}"
