"""Terms of friction as elements: their laws against formulas written out, and when a term is not tried."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.friction_terms import TERMS, Measured, candidates, load_signal, why_not
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.model.elements.element import coulomb, damper, offset
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

MEASURED = Measured("oil", 40.0, (0.1, 0.2))
PLAIN = Machine.of_bodies([Body("1", coordinate="joint-1")])
V = np.linspace(-2.0, 2.0, 21)
OIL, LOAD = 40.0 + V, 3.0 * np.sin(V)
LAWS = {
    "viscous": [V],
    "coulomb": [np.sign(V)],
    "asymmetric": [np.ones_like(V), np.abs(V)],
    "stribeck": [np.sign(V) / (1.0 + (V / 0.1) ** 2)],
    "load": [np.abs(LOAD) * np.sign(V)],
    "quadratic": [V * np.abs(V)],
    "temperature": [V * (OIL - 40.0), np.sign(V) * (OIL - 40.0)],
}


@pytest.mark.parametrize("term", TERMS)
def test_laws(term: str) -> None:
    ways = candidates(PLAIN, term, "joint-1", MEASURED)
    assert len(ways) == (2 if term == "stribeck" else 1)
    machine = PLAIN.with_elements(ways[0])
    zero = np.zeros((len(V), 1))
    m = Motion(np.arange(len(V)) * 1.0, zero, V[:, None], zero, signals={"oil": OIL, load_signal("joint-1"): LOAD})
    D = regressor(machine, m)[:, 0, len(PLAIN.parameters) :]
    assert np.column_stack(LAWS[term]) == pytest.approx(D, rel=1e-12, abs=1e-14)


def test_an_offset_is_not_added_twice_and_what_is_there_is_not_tried() -> None:
    machine = PLAIN.with_elements([offset("joint-1"), damper("joint-1"), coulomb("joint-1")])
    assert [e.kind for e in candidates(machine, "asymmetric", "joint-1", MEASURED)[0]] == ["law"]
    assert (
        why_not(machine, "viscous", "joint-1", MEASURED)
        == why_not(machine, "coulomb", "joint-1", MEASURED)
        == "in the model already"
    )
    assert why_not(PLAIN, "viscous", "joint-1", MEASURED) == ""
    assert why_not(PLAIN, "temperature", "joint-1", Measured("", 0.0, (0.1,))) == "not tried: no temperature is named"
