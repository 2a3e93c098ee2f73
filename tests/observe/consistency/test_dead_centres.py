"""A gauge on the slider of a crank loses sight of the crank at both dead centres, which the crank's closed form gives.

The truth is a slider-crank by its closed form (:mod:`benchmarks.foreign.small`), integrated by SciPy; the crank turns round.
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from benchmarks.foreign.small import MACHINES
from scipy.integrate import solve_ivp

import veridyn as vd
from veridyn.errors import DataWarning
from veridyn.model.experiment import Experiment
from veridyn.observe.consistency.dead_centres import dead_centres
from veridyn.observe.observation import Observation

SMALL = MACHINES["slider-crank"]
COUNT, GAUGE = 1000, 1e-4  # samples, m
T = 0.002 * np.arange(COUNT)
START, RATE, TORQUE = 0.8, 6.0, 12.0  # rad, rad/s, N*m


@cache
def truth(torque: float) -> tuple[np.ndarray, np.ndarray]:
    """Angle of the crank and place of the slider under a constant torque."""

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        M, c = SMALL.equations(SMALL.constants, y[:1], y[1:])
        return np.array([y[1], (torque - c[0]) / M[0, 0]])

    phi = solve_ivp(rate, (0.0, T[-1]), [START, RATE], t_eval=T, rtol=1e-9, atol=1e-9).y[0]
    r, rod = SMALL.constants["l_crank"], SMALL.constants["l_rod"]
    return phi, r * np.cos(phi) + np.sqrt(rod**2 - (r * np.sin(phi)) ** 2)


def observed(sensor: str, torque: float, start: float = START, how_sure: float = 0.01) -> Observation:
    phi, x = truth(torque)
    sensors = {
        "gauge": vd.Sensor("gauge", "coordinate", "x", GAUGE),
        "encoder": vd.Sensor("encoder", "coordinate", "phi", 1e-3),
    }
    rng, units = np.random.default_rng(3), {"gauge": "m", "encoder": "rad", "force.phi": "N*m"}
    values = {
        "gauge": x + GAUGE * rng.standard_normal(COUNT),
        "encoder": phi + 1e-3 * rng.standard_normal(COUNT),
        "force.phi": np.full(COUNT, torque),
    }
    names = (sensor, "force.phi")
    log = Experiment.from_arrays(T, {n: values[n] for n in names}, {n: units[n] for n in names}, "log")
    how = vd.ObserveSettings(
        sensors=[sensors[sensor]],
        start={"phi": start},
        rates={"phi": RATE},
        unknown=(),
        independents=("phi",),
        process_noise=vd.ProcessNoise(start=how_sure, start_rate=0.1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return vd.observe(vd.load_model(SMALL.file), log, "ekf", how)


def passages(torque: float) -> np.ndarray:
    """When the true crank passes a multiple of π, s."""
    phi, _ = truth(torque)
    return T[np.flatnonzero(np.diff(np.floor(phi / np.pi)))]


def test_dead_centres_are_found_when_the_crank_passes_them() -> None:
    """The gauge reads within a sample or two of where ∂x/∂φ is zero; slow passages first, fast ones lie between samples."""
    seen = observed("gauge", 0.0)
    (found,) = dead_centres(seen.system, seen.estimates)
    assert found.coordinate == "phi" and np.abs(np.array(found.times) - passages(0.0)).max() < 0.005
    fast = observed("gauge", TORQUE)
    (many,) = dead_centres(fast.system, fast.estimates)
    assert np.abs(np.array(many.times[:6]) - passages(TORQUE)[:6]).max() < 0.005
    encoder = observed("encoder", 0.0)
    assert dead_centres(encoder.system, encoder.estimates) == ()


def test_a_filter_that_survives_them_says_nothing_and_one_that_is_lost_names_them() -> None:
    """x is the same on both sides of a dead centre: started on the wrong one, the filter is lost, and the sensors cannot tell."""
    right, lost = observed("gauge", TORQUE), observed("gauge", TORQUE, start=-START)
    assert [f.cause for f in right.findings] == []
    assert lost.nis().mean > 100.0
    named = {f.cause: f for f in lost.findings}
    assert named["dead centre"].place == "phi" and "dead centre" in str(named["dead centre"])
    assert "innovations" in named and "delay" not in named
