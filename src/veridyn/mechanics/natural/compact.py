"""Fewer coordinates for the same mechanism: points and vectors of a body beyond the few that place it are combinations of these.

A chassis with many joints has a point for each of them, and as many linear constraints (paper 003, equation 34). Substituted, both are
gone, and the bordered matrices of a step are smaller and quicker to factorise.
"""

from __future__ import annotations

from dataclasses import replace

from veridyn.mechanics.natural.geometry import Geometry
from veridyn.mechanics.natural.mechanism import Mechanism


def compact(mechanism: Mechanism) -> Mechanism:
    """The mechanism with all points and vectors substituted that follow from a body; they stay its points and vectors by name."""
    geometry = Geometry(mechanism)
    still = geometry.fixed
    beyond: dict[str, list[str]] = {}
    for body in mechanism.bodies:
        basis = geometry.bases[body.name]
        own = {basis.origin, *(s[-1] for s in basis.sources)}
        if basis.complete:
            beyond[body.name] = [e for e in body.elements if e not in own and e not in still]
    derived: dict[str, str] = {}
    kept: set[str] = set()
    for name in sorted(beyond, key=lambda body: -len(beyond[body])):
        basis = geometry.bases[name]
        own = {basis.origin, *(s[-1] for s in basis.sources)}
        chosen = [e for e in beyond[name] if e not in derived and e not in kept]
        if chosen:
            derived |= dict.fromkeys(chosen, name)
            kept |= own
    return replace(mechanism, derived=tuple(derived.items()))
