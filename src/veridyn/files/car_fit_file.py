"""The part of a saved fit that a car of a few numbers adds: the noise it goes with, and the search that its values come from."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from veridyn.errors import Faults
from veridyn.identify.car.result import CarFit
from veridyn.identify.result import Fit
from veridyn.mechanics.single_track.noise import CarNoise
from veridyn.model.parameter_fit import ParameterFit, ParameterGuess

Array = NDArray[np.float64]
SEARCH_COVARIANCE = "search_covariance"  # the array of the search's own covariance, tuned noises included


class CarFitSection(BaseModel):
    """Every key is known and has its type."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoiseFile(CarFitSection):
    """A :class:`CarNoise`."""

    slip_error: float = Field(gt=0.0)
    bank: float = Field(gt=0.0)
    lateral: float = Field(gt=0.0)
    yaw: float = Field(gt=0.0)
    walk: dict[str, float] = {}


class FoundFile(CarFitSection):
    """A parameter, or a noise that was tuned: what was found, its deviation, and what was known of it before."""

    value: float
    sigma: float
    prior: float
    prior_sigma: float
    lower: float
    upper: float
    positive: bool


class CarFile(CarFitSection):
    """What a :class:`CarFit` has beside a fit."""

    noise: NoiseFile
    found: dict[str, FoundFile]
    log_likelihood: float
    evaluations: int
    converged: bool
    uninformed: list[str]
    at_bound: dict[str, float]
    largest: float


def car_file(fit: CarFit) -> CarFile:
    """The part of a file that a fit of a car has."""
    n, search = fit.noise, fit.fit
    found = {
        name: FoundFile(
            value=value,
            sigma=search.sigma[name],
            prior=search.guesses[name].value,
            prior_sigma=search.guesses[name].sigma,
            lower=search.guesses[name].lower,
            upper=search.guesses[name].upper,
            positive=search.guesses[name].positive,
        )
        for name, value in search.values.items()
    }
    return CarFile(
        noise=NoiseFile(slip_error=n.slip_error, bank=n.bank, lateral=n.lateral, yaw=n.yaw, walk=dict(n.walk)),
        found=found,
        log_likelihood=search.log_likelihood,
        evaluations=search.evaluations,
        converged=search.converged,
        uninformed=list(search.uninformed),
        at_bound=dict(search.at_bound),
        largest=fit.largest,
    )


def car_fit_of(fit: Fit, car: CarFile, covariance: Array) -> CarFit:
    """The fit of a car from its common part, the part that a file has of the car, and the covariance of the search."""
    search = ParameterFit(
        values={name: f.value for name, f in car.found.items()},
        sigma={name: f.sigma for name, f in car.found.items()},
        covariance=covariance,
        guesses={
            name: ParameterGuess(value=f.prior, sigma=f.prior_sigma, lower=f.lower, upper=f.upper, positive=f.positive)
            for name, f in car.found.items()
        },
        log_likelihood=car.log_likelihood,
        evaluations=car.evaluations,
        converged=car.converged,
        uninformed=tuple(car.uninformed),
        at_bound=dict(car.at_bound),
    )
    common: dict[str, Any] = {f.name: getattr(fit, f.name) for f in fields(Fit)}
    return CarFit(**common, noise=CarNoise(**car.noise.model_dump()), fit=search, largest=car.largest)


def check_car_file(
    car: CarFile, names: list[str], sensors: list[str], arrays: dict[str, NDArray[np.generic]]
) -> Faults:
    """Faults of the part: a search that does not belong to the values, or a covariance that does not belong to the search."""
    faults, size = Faults(), len(car.found)
    missing = [name for name in names if name not in car.found]
    if missing:
        faults.add(f"nothing is found of '{missing[0]}', which the fit has.", where="car, found")
    odd = [
        n for n in car.found if n not in names and n.removeprefix("noise.") not in (*NoiseFile.model_fields, *sensors)
    ]
    if odd:
        faults.add(f"'{odd[0]}' is neither a value of the fit nor a noise.", where="car, found")
    array = arrays.get(SEARCH_COVARIANCE)
    if array is None or array.dtype != np.float64 or array.shape != (size, size):
        shown = "none" if array is None else f"{array.dtype} {array.shape}"
        faults.add(f"array '{SEARCH_COVARIANCE}' does not fit.", expected=f"float64 ({size}, {size})", found=shown)
    return faults
