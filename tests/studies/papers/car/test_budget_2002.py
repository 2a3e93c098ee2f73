"""The budget of Table 4 against fits made anew with knowledge that is really wrong and a zero that is really off."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from veridyn.machines.car_drive import RAMPS, campaign, drives_2002, shifted
from veridyn.machines.car_knowledge import CarKnown
from veridyn.machines.car_known_2002 import informed_channels, informed_motion, moved_2002
from veridyn.machines.car_record import CarRecord, record
from veridyn.machines.car_sensors import sensors_2002
from veridyn.model.experiment import Experiment
from veridyn.model.motion import Motion
from veridyn.signals.motion import motion
from veridyn.studies.papers.car.bent import fitted
from veridyn.studies.papers.car.bent_2002 import Model2002
from veridyn.studies.papers.car.budget_2002 import Answers2002
from veridyn.studies.papers.car.study_2002 import COMMON, CUT, HOW, sixteen, with_knowledge


@cache
def asked() -> Answers2002:
    made = campaign(
        np.random.default_rng(3),
        {name: drive for name, drive in drives_2002(quick=True).items() if name in RAMPS},
        sensors=sensors_2002(),
    )
    machine = with_knowledge(sixteen(made.known))

    def seen(log: Experiment, known: CarKnown) -> CarRecord:
        return record(machine, log, known.sensors, COMMON)

    def read(what: CarRecord, known: CarKnown) -> Motion:
        return motion(machine, informed_channels(machine, what, known), CUT)

    logs = [made.drives[name].log for name in RAMPS]
    found = fitted(Model2002(machine, True), [read(seen(log, made.known), made.known) for log in logs], HOW)
    return Answers2002.of(found, logs, made.known, seen, read, HOW)


def refitted(logs: list[Experiment], known: CarKnown) -> np.ndarray:
    """The change of the sixteen with logs that are read from the beginning."""
    a = asked()
    machine = a.found.model.straight
    motions = [informed_motion(machine, log, known, COMMON, CUT) for log in logs]
    return fitted(a.found.model, motions, HOW).values - a.found.values


@pytest.mark.parametrize(
    ("item", "names"),
    [
        ("front half_track", ("ks13", "ks17")),
        pytest.param("air Cz", ("M6", "MZ6"), marks=pytest.mark.slow),
        ("rear carrier mass", ("M6", "off7")),
        pytest.param("rear half track", ("MX6", "MY6"), marks=pytest.mark.slow),
    ],
)
def test_wrong_knowledge_does_what_the_budget_says(item: str, names: tuple[str, ...]) -> None:
    """First order: within 10 %, or 5 % of the deviation by noise."""
    a = asked()
    actual, stated = refitted(list(a.logs), moved_2002(a.known, {item: 1.0})), a.to_item(item)
    for name in names:
        k = a.found.names.index(name)
        assert stated[k] != 0.0, name
        assert stated[k] == pytest.approx(actual[k], rel=0.1, abs=0.05 * a.found.sigma[k]), name


@pytest.mark.parametrize(
    ("channel", "size", "names"),
    [("dynamometer.1.fz", 5.0, ("M6", "off13", "MZ6")), ("clearance.1", 1e-4, ("off13", "off17"))],
)
def test_zeros_do_what_the_budget_says(channel: str, size: float, names: tuple[str, ...]) -> None:
    a = asked()
    assert channel in a.channels and "wheel.1" not in a.channels
    moved = [shifted(log, {n: size if n == channel else 0.0 for n in log.names}) for log in a.logs]
    actual, stated = refitted(moved, a.known), a.to_zero(channel)
    for name in names:
        k = a.found.names.index(name)
        assert stated[k] == pytest.approx(actual[k], rel=0.1, abs=0.05 * a.found.sigma[k]), name
