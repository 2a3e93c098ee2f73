"""Parameters that drift: followed where a log determines them, frozen where it does not; truth from a linear equation in closed steps."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

from veridyn.errors import ModelError
from veridyn.model.elements.element import damper
from veridyn.model.experiment import Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.parameters import Drift, Uncertainty
from veridyn.model.sensor import Sensor
from veridyn.observe.observation import Observation
from veridyn.observe.observe import observe
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import DETERMINED, ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.spatial.inertia import from_centre

J, FRICTION, STEP, SIGMA = 0.5, 0.8, 0.005, 1e-3  # kg m², N*m*s/rad, s, rad
DRIFT = Drift(0.4, 600.0)
NOISE = ProcessNoise(acceleration=1e-4, start=0.01, start_rate=0.01)


@cache
def rotor(drifts: bool = True) -> Machine:
    """A wheel that turns about the vertical: J q̈ = τ − c q̇."""
    made = Machine.of_bodies(
        [Body("wheel")],
        name="rotor",
        inertia={"wheel": from_centre(2.0, [0.0, 0.0, 0.0], np.diag([J, J, J]))},
        gravity=(0.0, 0.0, -9.81),
        elements=[damper("wheel", FRICTION, "c")],
        sensors=[Sensor("encoder", "coordinate", "wheel", SIGMA)],
    )
    return made.with_parameters(made.parameters.drifting({"c": DRIFT} if drifts else {}))


def log(friction: float, amplitude: float, samples: int = 2000, seed: int = 0) -> Experiment:
    """A held torque on J q̈ = τ − c q̇, step by step in closed form: ω → ω e + (1 − e) τ/c with e = exp(−c Δt/J)."""
    t, rng = STEP * np.arange(samples), np.random.default_rng(seed)
    torque, e = amplitude * np.sin(3.0 * t), np.exp(-friction * STEP / J)
    q, omega = np.zeros(samples), 0.0
    for k in range(samples - 1):
        end = torque[k] / friction
        q[k + 1] = q[k] + end * STEP + (omega - end) * (1.0 - e) * J / friction
        omega = end + (omega - end) * e
    values = {"encoder": q + SIGMA * rng.standard_normal(samples), "force.wheel": torque}
    return Experiment.from_arrays(t, values, {"encoder": "rad", "force.wheel": "N*m"}, "log")


def observed(machine: Machine, of: Experiment, **settings: object) -> Observation:
    found = observe(machine, of, "ekf", ObserveSettings(process_noise=NOISE, unknown=(), **settings))  # pyright: ignore[reportArgumentType]
    assert isinstance(found, Observation)
    return found


def test_friction_that_has_changed_since_the_fit_is_found() -> None:
    found = observed(rotor(), log(1.4 * FRICTION, 5.0))
    k = found.states.index("parameter.c")
    value, sigma = found.reduced[-1, k], found.sigma[-1, k]
    assert sigma < 0.1 * DRIFT.by and abs(value - 1.4 * FRICTION) < 3.0 * sigma
    assert found.system.frozen == () and abs(found.state("parameter.c")[0] - FRICTION) < DRIFT.by
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        without = observed(rotor(), log(1.4 * FRICTION, 5.0), drifts=False)
    assert any("too sure of itself" in str(one.message) for one in caught)
    assert "parameter.c" not in without.states and 0.9 < found.nis().mean < 1.1


def test_what_the_log_does_not_determine_is_frozen() -> None:
    """A wheel that stands still: its friction keeps value and deviation, which grows by the walk alone, P(t) = by² (1 + t/within)."""
    found = observed(rotor(), log(FRICTION, 0.0))
    k = found.states.index("parameter.c")
    assert found.system.frozen == ("c",) and (found.state("parameter.c") == FRICTION).all()
    expected = DRIFT.by * np.sqrt(1.0 + (found.t - found.t[0]) / DRIFT.within)
    np.testing.assert_allclose(found.sigma[:, k], expected, rtol=1e-9)
    assert "parameter 'c' drifts, and this log does not determine it" in found.summary()


def test_one_that_is_determined_is_so_by_its_variance() -> None:
    found = observed(rotor(), log(FRICTION, 5.0))
    k = found.states.index("parameter.c")
    alone = DRIFT.by * np.sqrt(1.0 + (found.t - found.t[0]) / DRIFT.within)
    assert (found.sigma[:, k] / alone).min() < DETERMINED


def test_the_covariance_of_the_fit_is_carried_over_whole() -> None:
    """Σ with the covariance between the drifting parameter and one that is considered; by² comes on top of the first alone."""
    covariance = np.array([[4e-4, 3e-5], [3e-5, 1e-5]])
    machine = rotor().with_uncertainty(Uncertainty(("ZZ_wheel", "c"), covariance[::-1, ::-1]))
    system, q, qd = ObserverSetup(settings=ObserveSettings(process_noise=NOISE, unknown=())).system(machine)
    at = [system.states.index(f"parameter.{name}") for name in ("c", "ZZ_wheel")]
    P = system.belief(q, qd).P[np.ix_(at, at)]
    np.testing.assert_allclose(P, covariance + np.diag([DRIFT.by**2, 0.0]))
    assert system.considered is not None and system.considered[at].tolist() == [False, True]
    assert system.density[at] == pytest.approx([DRIFT.by**2 / DRIFT.within, 0.0])


def test_without_marks_nothing_changes() -> None:
    of = log(FRICTION, 5.0, samples=300)
    plain, off = observed(rotor(drifts=False), of), observed(rotor(), of, drifts=False)
    assert plain.states == off.states and plain.system.carried is None
    np.testing.assert_array_equal(plain.reduced, off.reduced)


def test_names_choose_among_the_marks() -> None:
    of = log(FRICTION, 5.0, samples=300)
    assert "parameter.c" in observed(rotor(), of, drifts=["c"]).states
    with pytest.raises(ModelError, match=r"'cc' is not marked as drifting.*\n.*\n?.*Did you mean 'c'"):
        observed(rotor(), of, drifts=("cc",))


def test_what_the_settings_estimate_is_theirs() -> None:
    """A deviation and a walk that are given take the place of the drift's."""
    settings = ObserveSettings(process_noise=NOISE, unknown=(), parameters={"c": (0.1, 0.02)})
    system, q, qd = ObserverSetup(settings=settings).system(rotor())
    k = system.states.index("parameter.c")
    assert system.belief(q, qd).P[k] == pytest.approx(0.1**2) and system.density[k] == 0.02
    assert system.carried is None
