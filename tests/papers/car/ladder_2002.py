"""Where Table 4 of a simulated car differs from the truth as the paper has it, and how each difference vanishes: one step at a time.

Instruments have their bands and no noise or zeros. First what a maker knows is handed in, exactly, one piece after the other: air and
carriers, where the wheels stand, the work along their paths; then springs, dampers and bars may bend. Then the simulator is simplified: the
engine sits fast, springs and bars are straight, dampers are, and instruments have no bands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.identify.estimate import identify
from veridyn.identify.settings import IdentifySettings
from veridyn.model.machine import Machine
from veridyn.papers.car.bent import fitted
from veridyn.papers.car.drive import RAMPS, Campaign, campaign, drives_2002
from veridyn.papers.car.known_2002 import TEN_ROWS_2002, Model2002, informed_motion
from veridyn.papers.car.log import CLEARANCE
from veridyn.papers.car.sensors import CarSensors, sensors_2002
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.tables import WheelTables
from veridyn.papers.car.study_2002 import COMMON, CUT, HOW, motion_2002, sixteen, true_sixteen, with_knowledge
from veridyn.progress import Progress, silent

GROUPS_2002 = {
    "M6": ("M6",),
    "MY6, MZ6": ("MY6", "MZ6"),
    "ks": ("ks7", "ks10", "ks13", "ks17"),
    "h": ("h7", "h10", "h13", "h17"),
}


@dataclass(frozen=True)
class Rung2002:
    """A step: the largest error of each group of parameters in percent of the truth."""

    step: str
    errors: Mapping[str, float]


def ladder_2002(
    rng: np.random.Generator, vehicle: Vehicle | None = None, quick: bool = False, progress: Progress = silent
) -> tuple[Rung2002, ...]:
    """All steps, on one pair of ramps, the same roads for every car."""
    car = vehicle or Vehicle()
    state = rng.bit_generator.state

    def driven(who: Vehicle, sensors: CarSensors) -> Campaign:
        rng.bit_generator.state = state
        ramps = {name: drive for name, drive in drives_2002(quick).items() if name in RAMPS}
        return campaign(rng, ramps, who, sensors, progress)

    quiet = sensors_2002().quiet()
    first = driven(car, quiet)
    steps = [
        Rung2002("as printed", _errors(first, _printed(first))),
        Rung2002("air and carriers from tables", _errors(first, _known(first, places=False, work=False))),
        Rung2002("wheels where the tables put them", _errors(first, _known(first, work=False))),
        Rung2002("work along the wheels' paths", _errors(first, _known(first))),
        Rung2002("springs, dampers and bars may bend", _errors(first, _known(first, curved=True))),
    ]
    rigid = car.without("driveline")
    springs = rigid.without("springs", "stops", "bars")
    straight = springs.without("dampers", "friction")
    for name, who, sensors in (
        ("simulator: the engine sits fast", rigid, quiet),
        ("simulator: springs and bars are straight", springs, quiet),
        ("simulator: dampers are straight", straight, quiet),
        ("simulator: instruments without bands", straight, quiet.perfect()),
    ):
        made = driven(who, sensors)
        steps.append(Rung2002(name, _errors(made, _known(made, curved=True))))
    return tuple(steps)


def _errors(made: Campaign, values: Mapping[str, float]) -> dict[str, float]:
    true = true_sixteen(made)
    return {g: max(100.0 * abs(values[n] / true[n] - 1.0) for n in names) for g, names in GROUPS_2002.items()}


def _printed(made: Campaign) -> dict[str, float]:
    machine = sixteen(made.known)
    motions = [motion_2002(made, machine, name) for name in RAMPS]
    fit = identify(machine, motions, rows=TEN_ROWS_2002, settings=IdentifySettings(sampling=HOW), diagnose="off")
    return _named(fit.names, fit.values.tolist())


def _known(made: Campaign, places: bool = True, work: bool = True, curved: bool = False) -> dict[str, float]:
    """With what is handed in. `places`: the axles' tables; `work`: along the wheels' paths; `curved`: bends and bars."""
    machine: Machine = with_knowledge(sixteen(made.known))
    if not work:
        machine = machine.with_parameters(machine.parameters.known({f"path_{q}": 0.0 for q in CLEARANCE}))
    known = made.known
    if not places:
        known = replace(known, kinematics=replace(known.kinematics, tables=WheelTables.none()))
    motions = [informed_motion(machine, made.drives[name].log, known, COMMON, CUT) for name in RAMPS]
    found = fitted(Model2002(machine, curved), motions, HOW)
    return _named(found.names, found.values.tolist())


def _named(names: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    return dict(zip(names, values, strict=True))
