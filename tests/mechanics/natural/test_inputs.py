"""Measured wrenches on bodies in natural coordinates: the accelerations, derivatives and estimates are those of the tree."""

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from mechanics.test_formulations import MACHINES
from veridyn.errors import CapabilityError, DataError
from veridyn.mechanics.formulated import formulated
from veridyn.mechanics.formulation import RunSettings
from veridyn.mechanics.system.simulation import Inputs
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.observe.observe import observe_with
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings

NAMES = tuple(f"wrench.rod.{row}" for row in WRENCH_ROWS)
GIVEN = dict(zip(NAMES, (3.0, -2.0, 0.7, 0.2, -0.3, 0.4), strict=True))


@pytest.mark.parametrize("name", ["slider-crank", "rssr"])
def test_accelerations_and_derivatives_of_steps_are_those_of_the_tree(name: str) -> None:
    found = []
    for formulation in ("tree", "natural"):
        form = formulated(MACHINES[name]().with_formulation(formulation)).taking(NAMES)
        assert form.inputs_in([*NAMES, "other"]) == NAMES
        model, q, qd = form.prepared(RunSettings(inputs=NAMES, start={"phi": 0.6}, rates={"phi": 2.0}))
        loads, u = model.loads(GIVEN), model.start_unknown
        at, f = model.instant(q, qd, u, loads), model.f
        still = model.instant(q, qd, u, model.loads(dict.fromkeys(NAMES, 0.0)))
        assert np.abs(at.qdd - still.qdd).max() > 1e-3  # it acts
        step = model.advanced(q, qd, u, 1e-3, loads, True, 0.0, 0)
        slopes = model.accelerated(at)[:, : 2 * f]
        found.append((model.local(q, at.qdd)[f:], slopes, step.found.F[: 2 * f, : 2 * f]))
    for tree, natural in zip(*found, strict=True):
        np.testing.assert_allclose(natural, tree, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("filter", [vd.EKF(), vd.EKF(engine="python")])
def test_an_observer_takes_the_wrench_of_its_log_in_both_formulations(filter: vd.EKF) -> None:
    machine = replace(MACHINES["slider-crank"](), sensors=(vd.Sensor("crank", "coordinate", "phi", 1e-3),))
    push = Inputs(wrenches=lambda t, q, qd: {"rod": [5.0 * np.sin(8.0 * t), 2.0, 0.0, 0.0, 0.0, 0.3]})
    q = formulated(machine.with_formulation("tree")).prepared(RunSettings(unknown=()))[1]
    log = vd.simulate(machine, vd.manoeuvres.Driven(0.4, 200.0, q, 0.0 * q, push), rng=np.random.default_rng(0))
    how = ObserverSetup(
        filter,
        ObserveSettings(
            model_error="off",
            process_noise=ProcessNoise(acceleration=1e-2, start=1e-2, start_rate=1e-2),
            unknown=(),
            step=1e-3,
        ),
    )
    tree, natural = (observe_with(how, machine.with_formulation(f), log) for f in ("tree", "natural"))
    assert natural.system.inputs == tree.system.inputs and set(NAMES) <= set(natural.system.inputs)
    assert (np.abs(natural.reduced - tree.reduced) / tree.sigma).max() < 0.05
    blind = observe_with(how.replaced(inputs=()), machine.with_formulation("natural"), log)
    assert (np.abs(blind.reduced - tree.reduced) / tree.sigma).max() > 1.0


def test_what_has_no_frame_or_is_no_body_is_refused() -> None:
    """The load of the crane is one point; a wrench in the plane of a point has no direction."""
    crane = formulated(vd.load_model("veridyn:crane.yaml"))
    with pytest.raises(CapabilityError, match="its points and vectors do not fix its orientation"):
        crane.taking([f"wrench.load.{row}" for row in WRENCH_ROWS]).prepared(RunSettings())
    with pytest.raises(DataError, match=r"a wrench acts on 'hook', which is no body"):
        crane.taking(["wrench.hook.fx"])
