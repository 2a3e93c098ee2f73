"""One machine, observed in two formulations on the same log: the same estimates, within a small part of their deviations."""

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from one_machine import FORMULATIONS, MACHINES
from veridyn.errors import CapabilityError, DataWarning
from veridyn.mechanics.formulated import in_joints
from veridyn.mechanics.formulation import RunSettings
from veridyn.observe.filters.methods import FILTERS
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.pipeline import observe_with
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings

NOISE = ProcessNoise(force=10.0, acceleration=1e-2, start=1e-2, start_rate=5e-2, start_force=1.0)
STARTS = {
    "arm": {"q1": 0.3, "q2": -0.4, "q3": 0.5, "q4": 0.2, "q5": -0.3, "q6": 0.1},
    "crane": {"x": 0.2, "swing": 0.3},
    "fourbar": {"phi": 0.8},
}


def logged(name: str) -> tuple[vd.Machine, vd.Experiment]:
    machine = MACHINES[name]()
    _, q, qd = in_joints(machine).prepared(RunSettings(unknown=(), start=STARTS[name]))
    return machine, vd.simulate(machine, vd.manoeuvres.Driven(0.5, 100.0, q, qd), rng=np.random.default_rng(3))


# The sigma points of the arm take longer than all others together; its other filters, and the UKF of the others, stay.
PAIRS = [
    pytest.param(name, filter, marks=pytest.mark.slow if (name, filter) == ("arm", "ukf") else ())
    for name in MACHINES
    for filter in ("ekf", "error_ekf", "ukf")
]


@pytest.mark.parametrize(("name", "filter"), PAIRS)
def test_estimates_are_within_a_twentieth_of_their_deviations(name: str, filter: str) -> None:
    machine, log = logged(name)
    how = ObserverSetup(
        FILTERS[filter](), ObserveSettings(model_error="off", process_noise=NOISE, start=STARTS[name], step=1e-3)
    )
    tree, natural = (observe_with(how, machine.with_formulation(f), log) for f in FORMULATIONS)
    assert (tree.states, tree.system.outputs, tree.system.inputs, tree.units) == (
        natural.states,
        natural.system.outputs,
        natural.system.inputs,
        natural.units,
    )
    assert (tree.system.formulation, natural.system.formulation) == FORMULATIONS
    off = np.abs(natural.reduced - tree.reduced) / tree.sigma
    assert off.max() < 0.05
    np.testing.assert_allclose(natural.sigma, tree.sigma, rtol=0.05)


def test_the_output_of_a_planar_gyroscope_is_read_under_its_old_name() -> None:
    machine, log = logged("fourbar")
    settings = vd.ObserveSettings(model_error="off", process_noise=NOISE, start=STARTS["fourbar"], step=0.01)
    expected = vd.observe(machine, log, settings=settings)
    old = vd.Experiment(
        {
            n.removesuffix(".z"): vd.model.Channel(n.removesuffix(".z"), c.t, c.values, c.unit)
            for n, c in log.channels.items()
        }
    )
    with pytest.warns(DataWarning, match=r"'gyro' is read as 'gyro\.z'"):
        found = vd.observe(machine, old, settings=settings)
    np.testing.assert_array_equal(found.reduced, expected.reduced)


def test_a_force_density_may_be_named_by_the_drive() -> None:
    machine, log = logged("crane")
    named = [ProcessNoise(force={name: 10.0}, start=1e-2, start_rate=5e-2) for name in ("motor", "x")]
    settings = vd.ObserveSettings(model_error="off", unknown=("motor",), start=STARTS["crane"], step=0.01)
    one, two = (vd.observe(machine, log, settings=replace(settings, process_noise=noise)) for noise in named)
    np.testing.assert_array_equal(one.reduced, two.reduced)


@pytest.mark.parametrize("filter", ["ekf", "ukf"])
def test_parameters_are_estimated_alike(filter: str) -> None:
    """A damper, a mass and, on the tree alone, a constant of a law: slopes are by what forces are linear in."""
    machine, log = logged("crane")
    chosen = {"rail_friction": (5.0, 0.0, 0.0, 100.0), "M_load": (20.0, 0.0)}
    how = vd.ObserveSettings(
        model_error="off", process_noise=NOISE, start=STARTS["crane"], unknown=(), step=0.01, parameters=chosen
    )
    tree, natural = (vd.observe(machine.with_formulation(f), log, filter, how) for f in FORMULATIONS)
    assert natural.states == tree.states and {"parameter.rail_friction", "parameter.M_load"} <= set(natural.states)
    at = natural.states.index("parameter.rail_friction")
    assert abs(natural.reduced[-1, at] - natural.reduced[0, at]) > 1e-3  # it is estimated, and not only carried along
    assert (np.abs(natural.reduced - tree.reduced) / tree.sigma).max() < 0.05
    np.testing.assert_allclose(natural.sigma, tree.sigma, rtol=0.05)
    with pytest.raises(CapabilityError, match="estimated 'motor'") as caught:
        vd.observe(machine, log, filter, replace(how, parameters=("motor",)))
    assert caught.value.formulation == "natural"


def test_dry_friction_is_rounded_off_alike() -> None:
    machine, log = logged("crane")
    rubbing = machine.with_elements([vd.elements.coulomb("x", 20.0, "fs")])
    how = vd.ObserveSettings(
        model_error="off",
        process_noise=NOISE,
        start=STARTS["crane"],
        step=1e-3,
        friction_speed=0.05,
        parameters={"fs": (5.0, 0.0)},
    )
    tree, natural = (vd.observe(rubbing.with_formulation(f), log, "ekf", how) for f in FORMULATIONS)
    assert (np.abs(natural.reduced - tree.reduced) / tree.sigma).max() < 0.05
    np.testing.assert_allclose(natural.sigma, tree.sigma, rtol=0.05)
