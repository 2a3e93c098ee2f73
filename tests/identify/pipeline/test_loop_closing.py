"""How loops were closed: spans, conditions, and encoders that are measured besides."""

from __future__ import annotations

import numpy as np
import pytest

from identify.test_logged import exact, log
from veridyn.identify.logged import logged
from veridyn.identify.pipeline.loop_closing import closing
from veridyn.machines import palletizer
from veridyn.machines.arm import arm
from veridyn.signals.motion import Signals

DRIVES = ("q1", "q2", "q4")


def test_spans_and_conditions() -> None:
    machine, m = palletizer(), exact("palletizer")
    found = closing(machine, [logged(machine, log(machine, m, DRIVES), Signals())])
    assert found is not None and found.given == DRIVES and found.spare == {} and found.suspicions() == []
    for k, c in enumerate(machine.coordinates):
        assert found.spans[c] == pytest.approx((m.q[:, k].min(), m.q[:, k].max()), abs=1e-9)
    # A parallelogram is worst where crank and upper arm are nearest to one line.
    flat = np.abs(np.sin(m.q[:, 3] - m.q[:, 1]))
    assert found.at == pytest.approx(m.t[int(np.argmin(flat))], abs=0.05)
    assert min(found.worst, found.home) > 1.0
    assert closing(arm(), []) is None


def test_an_encoder_that_says_otherwise_is_suspected() -> None:
    machine, m = palletizer(), exact("palletizer")
    made = log(machine, m, (*DRIVES, "q3"))
    fine = closing(machine, [logged(machine, made, Signals())])
    assert fine is not None and fine.suspicions() == [] and fine.spare["q3"].rms < 1e-9
    turned = made.channels["q.q3"]
    off = closing(
        machine,
        [logged(machine, made.replacing(type(turned)("q.q3", turned.t, turned.values + 0.05, "rad")), Signals())],
    )
    assert off is not None
    (said,) = off.suspicions()
    assert (
        said.kind == "loop and encoder disagree"
        and "position of 'q3'" in str(said)
        and "0.05 of it steady" in str(said)
    )
