"""One machine, simulated in two formulations: the same motion, as soon as the step is short enough."""

from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from one_machine import FORMULATIONS, MACHINES
from veridyn.errors import CapabilityError
from veridyn.mechanics.formulated import in_joints
from veridyn.mechanics.formulation import RunSettings
from veridyn.mechanics.system.simulation import Method

STARTS = {
    "arm": {"q1": 0.3, "q2": -0.4, "q3": 0.5, "q4": 0.2, "q5": -0.3, "q6": 0.1},
    "crane": {"x": 0.2, "swing": 0.3},
    "fourbar": {"phi": 0.8},
}
HALVINGS = 6
SAME = 1e-6  # rad or m: what the formulations may differ by


@pytest.mark.parametrize("name", MACHINES)
def test_positions_are_those_of_the_other_formulation(name: str) -> None:
    """RK4 with a step that is halved until halving it once more changes nothing; closing constraints takes nothing away from that."""
    machine = MACHINES[name]()
    _, q, qd = in_joints(machine).prepared(RunSettings(unknown=(), start=STARTS[name]))
    found = {}
    for formulation in FORMULATIONS:
        one, step, before = machine.with_formulation(formulation), 4e-3, None
        for _ in range(HALVINGS):
            how = vd.manoeuvres.Driven(0.2, 50.0, q, qd, method=Method("RK4", step=step))
            now = how.run(one).motion.q
            if before is not None and np.abs(now - before).max() < 0.1 * SAME:
                break
            before, step = now, 0.5 * step
        else:
            pytest.fail(f"{name} as {formulation} does not converge")
        found[formulation] = now
    assert np.ptp(found["tree"], axis=0).max() > 1e-2  # it moves
    np.testing.assert_allclose(found["natural"], found["tree"], rtol=0, atol=SAME)


def test_dry_friction_is_rounded_off_alike() -> None:
    """The arm with all of its friction, also that of a motor on two joints."""
    arm = vd.load_model("veridyn:arm.yaml")
    _, q, qd = in_joints(arm).prepared(RunSettings(unknown=(), start=STARTS["arm"]))
    soft = Method("RK4", step=1e-3, friction_speed=0.05)
    motions = [
        vd.manoeuvres.Driven(0.1, 50.0, q, qd, method=soft).run(arm.with_formulation(f)).motion.q for f in FORMULATIONS
    ]
    assert np.ptp(motions[0], axis=0).max() > 1e-3  # it moves
    np.testing.assert_allclose(*motions, rtol=0, atol=SAME)
    with pytest.raises(CapabilityError, match="dry friction that holds"):
        vd.manoeuvres.Driven(0.1, 50.0, q, qd, method=replace(soft, friction_speed=0.0)).run(
            arm.with_formulation("natural")
        )


@pytest.mark.parametrize("name", MACHINES)
def test_logs_have_the_same_channels(name: str) -> None:
    machine = MACHINES[name]()
    _, q, qd = in_joints(machine).prepared(RunSettings(unknown=(), start=STARTS[name]))
    how = vd.manoeuvres.Driven(0.1, 50.0, q, qd)
    logs = [vd.simulate(machine.with_formulation(f), how, rng=np.random.default_rng(1)) for f in FORMULATIONS]
    assert logs[0].names == logs[1].names and [c.unit for c in logs[0].channels.values()] == [
        c.unit for c in logs[1].channels.values()
    ]
    for channel in logs[0]:
        np.testing.assert_allclose(logs[0][channel].values, logs[1][channel].values, rtol=1e-6, atol=1e-6)
