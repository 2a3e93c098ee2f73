"""The recording that would decide between causes, in words.

Two causes that one log cannot separate have columns that are alike along its motion. Each depends on something that the other does not:
the pose, the load, the speed, time, or whether the machine moves at all. A recording in which that alone changes separates them.
"""

from __future__ import annotations

from collections.abc import Sequence

from veridyn.identify.diagnosis import structure as s

ZERO, DRIFT, OFFSET, SCALE = "encoder zero", "encoder drift", "force offset", "force scale"
FORCE_DRIFT, SIZE = "force drift", "machine size"

# What separates a pair; the order does not matter.
_PAIRS = {
    frozenset(
        (s.LATE_FORCE, s.LOW_PASS)
    ): "fast reversals: a filter rounds their steps off, a delay moves them as they are",
    frozenset(
        (s.LATE_FORCE, s.VISCOUS)
    ): "the same path with faster reversals: a delay grows with acceleration, friction with speed",
    frozenset(
        (s.LATE_FORCE, s.FLEXIBLE)
    ): "the same path slower: a delay stays as long, a joint that yields follows its load",
    frozenset(
        (s.LATE_FORCE, s.PRESLIDING)
    ): "the same path slower: a delay stays as long, friction that yields takes longer to slide",
    frozenset(
        (s.LOAD_FRICTION, s.DRY)
    ): "the same motion with another payload: friction of the load grows, Coulomb friction does not",
    frozenset(
        (s.LOAD_FRICTION, SCALE)
    ): "the same path at other speeds: a factor does not turn with the direction of motion",
    frozenset((s.LOAD_FRICTION, s.WARM_UP)): "the same motion again, warm, and with another payload",
    frozenset(
        (s.GRAVITY, ZERO)
    ): "rests in other poses, the first joint turned: a slope stays where it is, a zero turns with its joint",
    frozenset(
        (s.GRAVITY, s.CABLE)
    ): "rests in other poses, the first joint turned: a slope stays where it is, a cable goes along",
    frozenset((s.GRAVITY, OFFSET)): "rests in other poses: an offset stays the same in all of them",
    frozenset(
        (s.ASYMMETRIC, OFFSET)
    ): "a rest that is approached from both sides: an offset stays, friction changes its side",
    frozenset(
        (s.SPRING, s.CABLE)
    ): "the joint over its whole range: a spring goes on growing, a cable that winds round comes back",
    frozenset(
        (s.SPRING, ZERO)
    ): "the joint in other poses of the joints before it: gravity changes with them, a spring does not",
    frozenset((s.WARM_UP, FORCE_DRIFT)): "the same motion again, warm: a sensor drifts on, friction does not",
    frozenset((s.WARM_UP, s.PAYLOAD)): "the same motion with the load known to be there from the start",
    frozenset(
        (DRIFT, FORCE_DRIFT)
    ): "rests in one and the same pose at the start and at the end, seen by another sensor of position",
    frozenset(
        (s.ROTOR, SCALE)
    ): "the same path at half the speed: a factor stays, what a rotor takes falls to a quarter",
    frozenset((ZERO, SIZE)): "rests in other poses, and one distance between joints measured by hand",
}
# What shows a cause by itself, beside the parameters that it moves.
_ALONE = {
    s.ROTOR: "the same motion of the joint in another pose of the joints behind it: the moment of links changes, a rotor's does not",
    s.DRY: "sweeps of the joint at several constant speeds, both ways",
    s.VISCOUS: "sweeps of the joint at several constant speeds, both ways",
    s.ASYMMETRIC: "sweeps of the joint at several constant speeds, both ways",
    s.STRIBECK: "slow sweeps of the joint at several constant speeds, down to a creep",
    s.LOAD_FRICTION: "the same motion with another payload",
    s.PRESLIDING: "slow reversals of the joint, by less and less",
    s.SPRING: "rests of the joint over its whole range",
    s.CABLE: "rests of the joint over its whole range",
    s.WARM_UP: "the same motion cold, and again when the machine is warm",
    s.FLEXIBLE: "rests under several known loads, the position of the link measured besides",
    s.GRAVITY: "rests in many poses, the first joint turned right round",
    s.PAYLOAD: "one log before that moment and one behind it",
    SCALE: "the same motion with a payload of known mass",
    s.LATE_FORCE: "the same path with faster reversals",
    s.LOW_PASS: "the same path with faster reversals",
    s.IN_STEPS: "the same motion with more digits in the column",
    FORCE_DRIFT: "rests in one and the same pose at the start and at the end",
    OFFSET: "a rest that is approached from both sides",
    ZERO: "rests in several poses, or the index mark of the encoder",
    DRIFT: "rests in one and the same pose at the start and at the end",
    SIZE: "one distance between joints measured by hand",
}


def deciding_recording(kind: str, others: Sequence[str] = ()) -> str:
    """What would separate a cause from those that a log cannot tell from it; without others, what would show it by itself.

    Empty where nothing is known of the kind, as of swapped columns, which a look at the log decides.
    """
    if others and any(other != kind for other in others):
        pairs = [_PAIRS.get(frozenset((kind, other)), "") for other in others if other != kind]
        found = [text for text in dict.fromkeys(pairs) if text]
        found = found or [_ALONE[k] for k in (kind, *others) if k in _ALONE][:2]
        return "; ".join(dict.fromkeys(found))
    if others:  # of one kind, at several places
        return "a motion in which one of these joints moves while the others rest"
    return _ALONE.get(kind, "")
