"""Readings that are withheld: flagged by sensor and span on the sensor's own clock, and compared with their predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.house import arm, log

from veridyn.errors import DataError
from veridyn.observe.consistency.withheld import WithheldOutput, withheld_figures, withheld_outputs, withhold
from veridyn.observe.measurements import Measurements, Status, measurements_of
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.pipeline import observation_run
from veridyn.observe.settings import ObserveSettings


def readings(delay: float = 0.0) -> tuple[Measurements, object]:
    first, second = arm().sensors
    machine = replace(arm(), sensors=(first, replace(second, delay=delay)))
    system = machine_system(machine, ObserveSettings())[0]
    return measurements_of(system, log("observe", 0)), system.table


@pytest.mark.parametrize("delay", [0.0, 0.1])
def test_spans_count_as_the_log_does_whatever_the_delay(delay: float) -> None:
    """A reading that comes 0.1 s late speaks of a time 0.1 s before its stamp, and is named by its stamp."""
    own, table = readings(delay)
    flags = withhold(own, table, {"encoder2": [(1.0, 1.5), (3.0, 3.1)]}).flags  # pyright: ignore[reportArgumentType]
    off = flags[:, own.names.index("encoder2")] == Status.WITHHELD
    assert not (flags[:, own.names.index("encoder1")] == Status.WITHHELD).any()
    stamps = own.t[off] + delay
    assert off.sum() == 101 + 21 and stamps[[0, -1]] == pytest.approx([1.0, 3.1])


def test_every_span_without_a_reading_is_refused() -> None:
    own, table = readings()
    spans = {"encoder1": [(9.0, 10.0)], "encoder3": [(0.0, 1.0)]}
    with pytest.raises(DataError) as caught:
        withhold(own, table, spans)  # pyright: ignore[reportArgumentType]
    assert [f.at for f in caught.value.faults] == [("withheld", "encoder1"), ("withheld", "encoder3")]
    assert "encoder1, encoder2" in caught.value.faults[1].hint


def test_figures_are_those_of_the_predictions() -> None:
    states = observation_run(arm(), log("observe", 0), withheld={"encoder1": [(1.999, 2.301)]}).states
    (one,) = withheld_outputs(states.estimates)
    assert (one.output, len(one.t)) == ("encoder1", 61)
    figures = withheld_figures(states.estimates)
    assert figures["rms_withheld_encoder1"] == pytest.approx(np.sqrt(np.mean(one.errors**2)))
    assert figures["share_inside_two_sigma_withheld_encoder1"] == one.share_inside
    known = WithheldOutput("x", np.arange(4.0), np.array([0.0, 1.9, -2.1, 5.0]), np.ones(4))
    assert known.share_inside == 0.5
