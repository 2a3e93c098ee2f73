import re
from dataclasses import replace

import numpy as np
import pytest

from strangers.pinocchio_loops import PinLoops
from studies.bench_evidence import SAMPLING, bench_evidence, bench_motion
from studies.bench_robot import JOINTS, robot
from studies.closed_bench import MACHINES, moved
from veridyn.identify.diagnosis.evidence import evidence
from veridyn.identify.diagnosis.plausible import (
    absurd_signs,
    least_inertia,
    measured_rates,
    odd_motion,
    prior_scales,
)
from veridyn.identify.estimate import identify
from veridyn.identify.regression.sampling import Sampling
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics.forward import mass_matrix


def fit(sign: float = 1.0):
    m = bench_motion()
    return identify(
        robot(), replace(m, forces=sign * m.forces), settings=IdentifySettings(sampling=SAMPLING), diagnose="off"
    )


def test_the_inertia_of_a_good_fit_is_that_of_the_machine() -> None:
    m = bench_evidence().motion
    found = least_inertia(fit(), m)
    scale = np.sqrt(np.mean(m.qdd**2, axis=0))
    picked = np.unique(np.linspace(0, len(m) - 1, 40).astype(int))
    true = np.linalg.eigvalsh(mass_matrix(robot(), m.q[picked]) * scale[:, None] * scale)
    assert found is not None
    assert found[0] == pytest.approx(true[:, 0].min(), rel=0.2)
    assert absurd_signs(fit(), bench_evidence()) == []


def test_forces_turned_round_give_an_absurd_machine() -> None:
    kinds = {s.kind: str(s) for s in absurd_signs(fit(-1.0), bench_evidence())}
    assert set(kinds) == {"friction drives", "inertia below zero"}
    assert "h_q1 = -1." in kinds["friction drives"]  # 1.2 N*m*s/rad, turned round


def test_a_steady_factor_beside_the_priors_is_named() -> None:
    e = bench_evidence()
    assert prior_scales(e) == []
    small = replace(e, motion=e.with_forces(np.eye(3) / 80.0))
    assert re.search(r"q1 0\.012\d*, q2 0\.012\d*, q3 0\.012", str(prior_scales(small)[0]))
    lost = replace(small, machine=small.machine.with_parameters(np.full(len(small.machine.parameters), np.nan)))
    assert prior_scales(lost) == []  # nothing is believed, so nothing contradicts
    rubbing = small.machine.with_parameters({f"{s}_{c}": np.nan for s in ("h", "fs") for c in JOINTS})
    assert len(prior_scales(replace(small, machine=rubbing))) == 1  # inertias alone suffice


def test_speeds_that_cannot_be() -> None:
    e = bench_evidence()
    assert odd_motion(e) == []
    fast = replace(e, motion=e.with_coordinates(np.diag([1.0, 100.0, 1.0])))
    assert [s.fault.where for s in odd_motion(fast)] == ["coordinate 'q2'"]
    assert "leaves the range" in str(odd_motion(e, {"q1": (-0.1, 0.1)})[0])
    assert odd_motion(e, {"q1": (-np.inf, np.inf)}) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda qd: qd * [57.3, 1.0, 1.0], "degrees per second"),
        (lambda qd: qd * [-1.0, 1.0, 1.0], "Its sign is wrong"),
        (lambda qd: qd[:, [1, 0, 2]], "It looks like the speed of 'q2'"),
        (lambda qd: qd * [3.0, 1.0, 1.0], "Look at its column and unit"),
    ],
)
def test_measured_speeds_beside_the_positions(change, said: str) -> None:
    m = bench_motion()
    assert measured_rates(m, m, JOINTS) == []
    found = measured_rates(m, replace(m, qd=change(m.qd)), JOINTS)
    assert said in str(found[0]) and "'q1'" in found[0].fault.where


def test_inertia_of_a_closed_machine_by_pinocchio() -> None:
    """M of the drives is Gᵀ M G of the open tree, G from Pinocchio's constraints."""
    machine, m = MACHINES["palletizer"](), moved("palletizer", 1)
    found = least_inertia(identify(machine, m, settings=IdentifySettings(sampling=Sampling(decimate=10))), m)
    stranger, own = PinLoops(machine), list(machine.independent)
    scale = np.sqrt(np.mean(m.qdd[:, own] ** 2, axis=0))
    picked = m.q[np.unique(np.linspace(0, len(m) - 1, 40).astype(int))]
    M = [stranger.projection(q).T @ stranger.open.mass_matrix(q) @ stranger.projection(q) for q in picked]
    values = np.linalg.eigvalsh(np.array(M) * scale[:, None] * scale)
    assert found is not None and found[:2] == pytest.approx(
        (values[:, 0].min(), values[int(np.argmin(values[:, 0])), -1]), rel=1e-5
    )


def test_friction_of_a_passive_joint_that_drives_is_named() -> None:
    machine, m = MACHINES["palletizer"](), moved("palletizer", 1)
    e = evidence(machine, [m], machine.actuated_coordinates, Sampling())
    fit = identify(machine, m, settings=IdentifySettings(sampling=Sampling(decimate=10)))
    assert absurd_signs(fit, e) == []
    values = fit.values.copy()
    values[fit.names.index("fs3")] = -9.0
    assert [s.kind for s in absurd_signs(replace(fit, values=values), e)] == ["friction drives"]


def test_forces_that_go_against_the_model_are_named() -> None:
    """A palletizer cannot tell gravity upside down from weights on the other side, but its priors can."""
    machine, m = MACHINES["palletizer"](), moved("palletizer", 1)
    wrong = replace(machine, gravity=-np.asarray(machine.gravity))
    (said,) = prior_scales(evidence(wrong, [m], machine.actuated_coordinates, Sampling()))
    assert said.kind == "forces against the model" and re.search(r"q2 -0\.\d+, q4 -0\.\d+", str(said))
    assert prior_scales(evidence(machine, [m], machine.actuated_coordinates, Sampling())) == []
