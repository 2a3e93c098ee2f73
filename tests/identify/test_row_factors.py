"""Row factors merged in any order, and by two methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from identify.dense_equations import RIGHT, arm, check, dense, log, same
from strangers.random_trees import random_motion
from veridyn.errors import IdentificationError
from veridyn.identify.estimators.least_squares import solve
from veridyn.identify.observation import observation
from veridyn.identify.sampling import Sampling
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.body import Body
from veridyn.model.elements import coulomb, damper, spring
from veridyn.model.machine import Machine
from veridyn.spatial.transforms import MDH


@pytest.mark.parametrize("seed", range(3))
def test_merging_in_any_order(seed: int) -> None:
    machine, motion = arm(), log(1000)
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, 1000), 5, replace=False))
    parts = [observation(machine, motion[a:b]) for a, b in zip([0, *cuts], [*cuts, 1000], strict=True)]
    order = rng.permutation(6)
    total = parts[order[0]]
    for k in order[1:]:
        total = total.merge(parts[k])
    whole = observation(machine, motion)
    same(total, whole)
    assert solve(total).values == pytest.approx(solve(whole).values, rel=1e-10)


def test_several_motions_are_one_log() -> None:
    machine, motions = arm(), [log(300, 1), log(500, 2), log(40, 3)]
    o = observation(machine, motions)
    assert o.samples == 3 * 840
    tables = [dense(machine, m, machine.rows) for m in motions]
    joined = [(np.vstack([t[j][0] for t in tables]), np.concatenate([t[j][1] for t in tables])) for j in range(3)]
    check(machine, solve(o), joined)


def test_gram_equals_qr_on_well_conditioned_data() -> None:
    """A slide with friction, damping and a spring: nothing to group within a row."""
    bodies = [Body("1", joint="sliding", placement=MDH(alpha=RIGHT))]
    machine = Machine.of_bodies(bodies, elements=[damper("q1", 2.0), spring("q1", 5.0), coulomb("q1", 1.0)])
    asked = machine.parameters.known(dict.fromkeys(machine.parameters.names[:9], 0.0)).replacing({"M1": 3.0})
    machine = machine.with_parameters(asked)
    rng = np.random.default_rng(0)
    motion = random_motion(rng, machine, 3000, wrenches=False)
    motion = replace(motion, forces=inverse_dynamics(machine, motion) + 0.1 * rng.normal(size=(3000, 1)))
    a, b = (solve(observation(machine, motion, sampling=Sampling(method=m))) for m in ("qr", "gram"))
    assert b.values == pytest.approx(a.values, rel=1e-10)
    assert np.diag(b.covariance) == pytest.approx(np.diag(a.covariance), rel=1e-9)


def test_gram_is_refused_on_badly_conditioned_data() -> None:
    """All standard parameters of an arm are dependent within each row."""
    with pytest.raises(IdentificationError, match=r"row 'q\d': sums of products are unsafe here[\s\S]*Use method='qr'"):
        observation(arm(), log(500), sampling=Sampling(method="gram"))
