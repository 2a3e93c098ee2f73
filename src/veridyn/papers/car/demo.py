"""Everything about the car in one go: manoeuvres ranked, drives, spectra, the study of 2006, the study of 2002."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from veridyn.files.machine.write import model_text
from veridyn.papers.car.drive import TRAINING, VALIDATION, Campaign, campaign, campaign_2002, drives_2006
from veridyn.papers.car.excitation import Excitation, ranked
from veridyn.papers.car.knowledge import CarKnown
from veridyn.papers.car.known_2002 import drawn_2002
from veridyn.papers.car.machine import car_38
from veridyn.papers.car.sensors import sensors_2002, sensors_2006
from veridyn.papers.car.simulator.description import Vehicle
from veridyn.papers.car.simulator.run import VehicleRun
from veridyn.papers.car.spectra import Spectra, car_modes, spectra
from veridyn.papers.car.study import CarStudy, car_study
from veridyn.papers.car.study_2002 import Study2002, study_2002
from veridyn.progress import Progress, silent
from veridyn.studies.result import Result, fingerprint


@dataclass(frozen=True, eq=False)
class CarDemonstration:
    """The studies of both papers on a simulated car. `shown` is the drive that a report animates."""

    study: CarStudy
    second: Study2002
    spectra: Spectra
    excitations: tuple[Excitation, ...]
    shown: VehicleRun
    inputs: Mapping[str, str]
    quick: bool

    @property
    def figures(self) -> dict[str, float]:
        return self.study.figures | self.second.figures

    def result(self, name: str, seed: int | None) -> Result:
        return self.study.result(name, seed=seed, quick=self.quick, inputs=self.inputs, more=self.second.figures)


def car_demonstration(rng: np.random.Generator, quick: bool = False, progress: Progress = silent) -> CarDemonstration:
    """Rank manoeuvres, drive, identify, validate. What is handed in of the car is wrong by its deviations. `quick`: shorter drives."""
    car, sensors = Vehicle(), sensors_2006()
    given = CarKnown.of(car, sensors).drawn(rng)
    made = campaign(rng, drives_2006(rng, quick), car, sensors, _named(progress, "2006"), given)
    excitations = ranked(rng, made.vehicle, 5.0 if quick else 11.0, progress)
    study = car_study(made, made.truth(TRAINING), progress=progress)
    found = spectra(made.drives[VALIDATION].log, car_modes(made.vehicle))
    then = drawn_2002(CarKnown.of(car, sensors_2002()), rng)
    older = campaign_2002(rng, quick, made.vehicle, _named(progress, "2002"), then)
    second = study_2002(older, progress)
    return CarDemonstration(study, second, found, excitations, made.drives[VALIDATION].run, _inputs(made, older), quick)


def _named(progress: Progress, year: str) -> Progress:
    def tell(task: str, done: float, total: float | None) -> None:
        progress(f"{task}, paper of {year}", done, total)

    return tell


def _inputs(*campaigns: Campaign) -> dict[str, str]:
    logs = {f"log: {name}": fingerprint(d.log) for made in campaigns for name, d in made.drives.items()}
    return {"model": fingerprint(model_text(car_38()))} | logs
