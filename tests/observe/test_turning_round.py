"""A body that tumbles in space, a parallel robot that goes through its singular pose: no one set of coordinates does, observers go on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from strangers import machine_files as files
from veridyn.files.machine.load import parse_machine
from veridyn.mechanics.natural.channels import exact_readings
from veridyn.mechanics.natural.equations.dynamics import NaturalState, solve_accelerations
from veridyn.mechanics.natural.equations.position import start_of
from veridyn.mechanics.natural.equations.system import NaturalSystem, natural_system
from veridyn.mechanics.natural.steps.integrate import NaturalMethod, NaturalMotion, integrate_natural
from veridyn.mechanics.natural.steps.minimal import minimal
from veridyn.model.experiment import Channel, Experiment
from veridyn.observe.observe import observe
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings

PROCESS_NOISE = ProcessNoise(acceleration=1e-8, start=0.01, start_rate=0.05)
CASES = {  # model file, rates at the start, time, longest step of the filter
    "free body": (files.FREE, {"B.y": 3.0, "B.z": 1.0, "C.z": 2.0}, 2.0, 0.005),
    "three-rrr": (files.THREE_RRR, {}, 1.0, 0.00025),
}


def truth(system: NaturalSystem, rates: dict[str, float], duration: float, rng: np.random.Generator) -> NaturalMotion:
    """From a start drawn as the filter supposes it, by an explicit rule in all coordinates."""
    q, qd = start_of(system, None, rates)
    model = minimal(system, q)
    z = q[model.z] + 0.01 * rng.standard_normal(model.f)
    zd = qd[model.z] + 0.05 * rng.standard_normal(model.f)
    at = model.instant(q, z, zd, np.zeros(0), model.loads(), derivative=False)
    qdd, multipliers = solve_accelerations(system, at.q, at.qd)
    start = NaturalState(0.0, at.q, at.qd, qdd, multipliers)
    clock = 0.01 * np.arange(round(duration / 0.01) + 1)
    return integrate_natural(system, clock, start, method=NaturalMethod("explicit", step=0.0025, rule="DOP853"))


@pytest.mark.parametrize("name", CASES)
def test_the_estimate_follows_and_its_bands_hold(name: str) -> None:
    text, rates, duration, step = CASES[name]
    machine, rng = parse_machine(text), np.random.default_rng(7)
    system = natural_system(machine)
    motion = truth(system, rates, duration, rng)
    noise = {c: i.sigma for i in system.mechanism.sensors for c in i.channels(system.mechanism.dimension)}
    log = Experiment(
        {
            c.name: Channel(c.name, c.t, c.values + noise[c.name] * rng.standard_normal(len(c.t)), c.unit)
            for c in exact_readings(system, motion).channels.values()
        },
        "log",
    )
    found = observe(
        machine,
        log,
        "ekf",
        ObserveSettings(model_error="off", process_noise=PROCESS_NOISE, unknown=(), rates=rates, step=step),
    )
    inside = []
    for coordinate in system.coordinates:
        value, sigma = found.coordinate(coordinate)
        inside.append(np.abs(value - motion.column(coordinate))[20:] <= 1.96 * sigma[20:] + 1e-9)
    nees = found.nees(motion.q, motion.qd, skip=20)
    print(name, "inside", np.mean(inside), nees.summary(), found.nis().summary())
    assert np.mean(inside) > 0.85  # one log holds few independent errors
    assert replace(nees, level=0.999).consistent
    assert replace(found.nis(), level=0.999).consistent
    assert found.constraint_errors().max() < 1e-8
