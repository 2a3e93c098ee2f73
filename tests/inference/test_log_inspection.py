"""What speaks against the channels of a log: each fault is named by its kind, its log and its channel, and a machine at rest is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.inference.log_inspection import SPOILING, findings_of, log_mistakes, odd_clocks
from veridyn.model.experiment import Experiment

Array = NDArray[np.float64]
RATE, QUANTUM = 200.0, 2.0 * np.pi / 16384.0
ROLES = {"position.a": "q.a", "position.b": "q.b"}


def log(change: Callable[[Array], Array] = lambda q: q, rate: float = RATE, still: bool = False) -> Experiment:
    """Two encoders of 14 bits with noise of a step; `change` of the first; `still`: the machine rests from 4 to 5 s."""
    t = np.arange(2000) / RATE
    s = np.where(still & (t > 4.0), np.maximum(t - 5.0, 0.0) + 4.0, t)
    rng = np.random.default_rng(4)
    q = np.stack([0.5 * np.sin(2.1 * s), 0.7 * np.cos(1.4 * s)]) + QUANTUM * rng.standard_normal((2, len(t)))
    q = QUANTUM * np.round(q / QUANTUM)
    values = {"position.a": change(q[0]), "position.b": q[1], "command.a": np.round(q[0], 1)}
    return Experiment.from_arrays(t * RATE / rate, values, dict.fromkeys(values, "rad"), "run.csv")


def with_span(first: int, last: int, value: Callable[[Array], float]) -> Callable[[Array], Array]:
    def changed(q: Array) -> Array:
        out = q.copy()
        out[first:last] = value(q)
        return out

    return changed


CASES = {
    "frozen": with_span(600, 700, lambda q: float(q[600])),
    "dropout": with_span(600, 612, lambda q: 0.0),
    "spike": with_span(600, 601, lambda q: 3.0),
    "constant": with_span(0, 2000, lambda q: 0.3),
    "held": lambda q: np.repeat(q[::8], 8),
    "clipping": lambda q: np.minimum(q, 0.3),
}


@pytest.mark.parametrize("kind", CASES)
def test_what_a_sensor_does_is_named_with_its_place(kind: str) -> None:
    (only,) = log_mistakes([log(), log(CASES[kind])], ROLES)
    assert kind in SPOILING
    (finding,) = findings_of([only])
    assert (finding.cause, finding.place, finding.rank) == (kind, "run.csv, channel 'position.a'", 1)
    assert finding.message == str(only.fault)


@pytest.mark.parametrize("still", [False, True])
def test_a_clean_log_says_nothing(still: bool) -> None:
    """Nor does a command, which holds its values because it is asked to, and a machine that rests."""
    assert log_mistakes([log(still=still)], ROLES) == []


def test_a_clock_in_milliseconds() -> None:
    assert odd_clocks([log()]) == []
    (slow,) = log_mistakes([log(rate=RATE / 1000.0)], ROLES)
    assert slow.kind == "clock unit" and "milliseconds" in slow.fault.hint
