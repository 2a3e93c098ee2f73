"""Drive gains that nothing known carries, or that do not feel it, are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from identify.test_payload import GAINS, IV, LOAD, driven, truth, unknown
from identify.undiagnosed import identify
from veridyn.errors import IdentificationError, IdentificationWarning
from veridyn.identify.gains import attenuation
from veridyn.identify.payload import carrying
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.validate import predicted, validate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics

NAMES = ("K1", "K2", "K3", "K4")


def test_gains_without_a_load_are_refused_by_name():
    with pytest.raises(
        IdentificationError, match=r"drive gains K1, K2, K3, K4: the measured side is zero[\s\S]*a load that is known"
    ):
        identify(unknown(), [driven(), driven(loaded=True)])


def test_gains_that_do_not_feel_what_is_known_are_refused_by_name():
    """A load of a gram in all that noise: the gains cannot be told from zero."""
    machine, rng = unknown(), np.random.default_rng(0)
    runs = [driven(rng, size=3.0), carrying(machine, driven(rng, size=3.0), "4", 1e-3 * LOAD)]
    with pytest.raises(
        IdentificationError, match=r"drive gain K1: it cannot be distinguished from zero|instruments hardly resemble"
    ):
        identify(machine, runs, IV)
    with pytest.raises(
        IdentificationError, match=r"drive gain K1.*: it cannot be distinguished from zero[\s\S]*more than 3 deviations"
    ):
        identify(machine, runs)


def test_exact_currents_bias_nothing_and_nothing_is_said():
    """Warnings are errors here."""
    machine = unknown()
    fit = identify(machine, [driven(), carrying(machine, driven(loaded=True), "4", LOAD)])
    at = [fit.names.index(name) for name in NAMES]
    assert fit.values[at] == pytest.approx(GAINS, rel=1e-7)
    assert (attenuation(fit, NAMES) < fit.sigma[at]).all()


def test_identified_gains_that_give_the_only_force_are_what_a_prediction_is_held_against():
    """K i against the forces of the true arm; with no torque measured, no row had a size before, and no error."""
    machine = unknown()
    fit = identify(machine, [driven(), carrying(machine, driven(loaded=True), "4", LOAD)])
    other = driven(np.random.default_rng(5), size=0.05)
    y = np.column_stack([g * other.signals[f"i{k}"] for k, g in enumerate(GAINS, 1)])
    error = y - inverse_dynamics(truth(), other)
    check = validate(fit, other)
    assert [r.measured_rms for r in check.rows] == pytest.approx(np.sqrt((y**2).mean(axis=0)), rel=1e-6)
    assert [r.rms for r in check.rows] == pytest.approx(np.sqrt((error**2).mean(axis=0)), rel=1e-5)
    assert check.worst is not None and all(r.judged for r in check.rows) and 0.0 < check.std_error < 0.1
    assert predicted(fit, other)[1] == pytest.approx(y, rel=1e-6, abs=1e-9)


def test_noise_that_biases_less_than_the_deviations_is_not_told():
    machine, rng = unknown(), np.random.default_rng(1)
    fit = identify(
        machine, [driven(rng, size=0.003), carrying(machine, driven(rng, loaded=True, size=0.003), "4", LOAD)]
    )
    at = [fit.names.index(name) for name in NAMES]
    assert (np.abs(fit.values[at] - GAINS) < 4.0 * fit.sigma[at]).all()


def test_what_noise_of_currents_takes_off_is_told_about_right():
    """All that is left over is noise of the currents here, so what is told is what is missing, but for chance and first order."""
    machine, lost, told = unknown(), [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        runs = [driven(rng), carrying(machine, driven(rng, loaded=True), "4", LOAD)]
        with pytest.warns(IdentificationWarning, match=r"drive gains K1, K2, K3, K4: [\s\S]*found up to 7[.\d]*, "):
            fit = identify(machine, runs, settings=IdentifySettings(covariance="white"))
        at = [fit.names.index(name) for name in NAMES]
        lost.append(GAINS - fit.values[at])
        told.append(attenuation(fit, NAMES))
    print(np.mean(lost, axis=0), np.mean(told, axis=0))
    assert np.mean(told, axis=0) == pytest.approx(np.mean(lost, axis=0), rel=0.3)
