"""Motors whose force is a gain times a measured signal: natural coordinates take the signal as the tree does."""

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from mechanics.test_formulations import MACHINES
from veridyn.errors import CapabilityError, DataError
from veridyn.mechanics.formulated import formulated, in_joints
from veridyn.mechanics.formulation import RunSettings
from veridyn.mechanics.system.simulation import Inputs
from veridyn.model.elements.element import drive_gain
from veridyn.model.machine import Machine
from veridyn.model.parameters import Uncertainty
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import observe_with
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings

FORMULATIONS = ("tree", "natural")
CURRENT = Inputs(signals=lambda t, q, qd: {"current": 2.0 * np.sin(9.0 * t)})
NOTHING = Inputs(signals=lambda t, q, qd: {"current": 0.0})


def driven() -> Machine:
    machine = MACHINES["slider-crank"]().with_elements([drive_gain({"phi": 2.0}, "current", 0.7)])
    return replace(machine, sensors=(vd.Sensor("crank", "coordinate", "phi", 1e-3),))


def test_simulated_and_observed_alike() -> None:
    machine = driven()
    q = in_joints(machine).prepared(RunSettings(unknown=()))[1]
    how = vd.manoeuvres.Driven(0.4, 100.0, q, 0.0 * q, CURRENT)
    tree, natural = (vd.simulate(machine.with_formulation(f), how, rng=np.random.default_rng(0)) for f in FORMULATIONS)
    assert tree.names == natural.names and "signal.current" in tree
    assert np.abs(tree["crank"].values - natural["crank"].values).max() < 1e-6
    still = vd.simulate(machine, vd.manoeuvres.Driven(0.4, 100.0, q, 0.0 * q, NOTHING), rng=np.random.default_rng(0))
    assert np.abs(still["crank"].values - tree["crank"].values).max() > 1e-2  # it acts
    settings = ObserverSetup(
        settings=ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(acceleration=1e-2, start=1e-2, start_rate=1e-2),
            unknown=(),
            step=1e-3,
        )
    )
    one, two = (observe_with(settings, machine.with_formulation(f), tree) for f in FORMULATIONS)
    assert one.system.inputs == two.system.inputs == ("signal.current",)
    assert (np.abs(one.reduced - two.reduced) / one.sigma).max() < 0.05


def test_a_signal_that_nobody_gives_and_an_uncertain_gain_are_refused() -> None:
    machine = driven().with_formulation("natural")
    q = in_joints(machine).prepared(RunSettings(unknown=()))[1]
    with pytest.raises(DataError, match="no input gives the signal 'current'"):
        vd.simulate(machine, vd.manoeuvres.Driven(0.1, 100.0, q, 0.0 * q))
    name = machine.element_names[-1]
    uncertain = machine.with_uncertainty(Uncertainty((name,), np.array([[0.01]])))
    with pytest.raises(CapabilityError, match=rf"considered parameter '{name}'.*which changes with every sample"):
        formulated(uncertain).prepared(RunSettings(unknown=()))
