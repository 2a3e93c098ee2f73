"""Why is this parameter not identifiable? The combination, the reason, and the motion that helps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from identify.regression.test_observation_closed import measured as closed_measured
from identify.smooth_arm import clean, noisy, truth
from veridyn.errors import ModelError
from veridyn.identify.base import base_parameters
from veridyn.identify.diagnosis.explain import candidates, enriched, explain, null_vectors, what_next
from veridyn.identify.estimate import identify
from veridyn.machines import palletizer
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.loops.closure import closed_motion
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import drag, offset, spring
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.spatial.rotations import MDH

RIGHT = np.pi / 2
N = 200


def axle() -> Machine:
    """A free chassis with one axle: two suspensions with springs and offsets, and an anti-roll bar between them."""
    left, right = (MDH(gamma=RIGHT, d=side, theta=-RIGHT) for side in (0.75, -0.75))
    bodies = [
        Body("chassis", None, "fixed", label="c"),
        Body("w1", "chassis", "sliding", left, actuated=False, coordinate="z1"),
        Body("w2", "chassis", "sliding", right, actuated=False, coordinate="z2"),
    ]
    elements = [
        spring("z1", 26000.0, "k_left"),
        spring("z2", 26000.0, "k_right"),
        spring({"z1": 1.0, "z2": -1.0}, 20000.0, "k_ar"),
        offset("z1", 12000.0, "off_left"),
        offset("z2", 12000.0, "off_right"),
    ]
    inertia = {"chassis": [500.0, 0, 0, 900.0, 0, 1000.0, 0, 0, 0, 700.0]}
    inertia |= {w: [1.0, 0, 0, 1.0, 0, 1.0, 0, 0, 0, 24.0] for w in ("w1", "w2")}
    machine = Machine.of_bodies(bodies, base="free", inertia=inertia, elements=elements)
    zero = {f"{s}_{w}": 0.0 for w in ("w1", "w2") for s in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ")}
    return machine.with_parameters(machine.parameters.known(zero))


MEAN = -0.29  # clearance about which the axle rolls, in metres


def rolling(machine: Machine, heave: float = 0.0) -> Motion:
    """Pure roll of the clearances, z1 + z2 = 2 MEAN, unless some heave is added; the chassis moves generally."""
    rng = np.random.default_rng(0)
    roll, up = 0.05 * rng.normal(size=(3, N)), heave * rng.normal(size=(3, N))
    q, qd, qdd = (np.column_stack([u + r, u - r]) for r, u in zip(roll, up, strict=True))
    return Motion(0.01 * np.arange(N), q + MEAN, qd, qdd, BaseMotion(*rng.normal(size=(3, N, 3))))


def test_pure_roll_hides_the_springs_of_an_axle() -> None:
    """FACTS 2.13: one null direction, k_left = k_right = a, k_ar = −a/2, off_left = off_right = −a q0."""
    machine = axle()
    motion = rolling(machine)
    base = base_parameters(machine, motion)
    assert base.count == len(machine.parameters.select("estimated")) - 1
    names = machine.parameters.names
    v = null_vectors(base, names.index("k_left"))
    assert len(v) == 1
    direction = dict(zip(names, v[0] / v[0][names.index("k_left")], strict=True))
    expected = {"k_left": 1.0, "k_right": 1.0, "k_ar": -0.5, "off_left": -MEAN, "off_right": -MEAN}
    assert {n: x for n, x in direction.items() if x != 0.0} == pytest.approx(expected, rel=1e-9)
    D = regressor(machine, motion)
    assert np.abs(D @ v[0]).max() < 1e-10 * np.abs(D).max() * np.abs(v).max()


@pytest.mark.parametrize("name", ["k_left", "k_right", "k_ar", "off_left", "off_right"])
def test_the_way_out_of_pure_roll_is_named(name: str) -> None:
    machine = axle()
    e = explain(machine, name, rolling(machine))
    assert e.verdict == "grouped" and e.name == name
    assert e.motions == ("z1 moves by itself", "z2 moves by itself")
    assert any(name in line for line in e.combinations)
    assert str(e).startswith(f"{name} enters this motion only in ")
    assert "z1 moves by itself, or z2 moves by itself" in str(e)


def test_heave_separates_them() -> None:
    machine = axle()
    e = explain(machine, "k_left", rolling(machine, heave=0.02))
    assert e.verdict == "identifiable" and str(e) == "k_left is identifiable by itself in this motion."


def arm() -> Machine:
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=RIGHT, d=0.2)), Body("3", "2", placement=MDH(d=0.4))]
    return Machine.of_bodies(bodies)


def test_the_first_link_of_an_arm() -> None:
    """It turns about the vertical only: XX has no effect whatever moves, and why is said."""
    e = explain(arm(), "XX1")
    assert e.verdict == "without effect" and e.motions == ()
    assert "body '1' turns about one direction only, (0, 0, 1) in its frame" in str(e)
    assert "a free base, would be needed" in str(e)


def test_structure_that_no_motion_separates() -> None:
    e = explain(arm(), "M3")
    assert e.verdict == "grouped" and e.motions == ()
    assert "MX2R = MX2 + 0.4*M3" in e.combinations
    assert "no motion separates it" in str(e)
    moving = Motion(np.arange(50.0), *np.random.default_rng(0).normal(size=(3, 50, 3)))
    assert str(explain(arm(), "M3", moving)) == str(e)


def test_identifiable_given_a_motion() -> None:
    assert str(explain(arm(), "XY3")) == "XY3 is identifiable by itself, given a motion that excites it."


def test_a_locked_joint_is_named() -> None:
    """Joint 3 locked and its row not measured: what link 3 has is not told from link 2 until it moves."""
    machine = arm()
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, N, 3))
    q[:, 2], qd[:, 2], qdd[:, 2] = 0.3, 0.0, 0.0
    locked = Motion(0.01 * np.arange(N), q, qd, qdd)
    rows = ["q1", "q2"]
    e = explain(machine, "MX3", locked, rows=rows)
    assert e.verdict == "grouped" and e.motions == ("q3 moves by itself",)
    assert "A motion would separate it in which, besides, q3 moves by itself." in str(e)
    q[:, 2], qd[:, 2], qdd[:, 2] = np.random.default_rng(2).normal(size=(3, N))
    assert explain(machine, "MX3", Motion(0.01 * np.arange(N), q, qd, qdd), rows=rows).verdict == "identifiable"


def test_a_body_that_only_heaves() -> None:
    """FACTS 2.13: no rotation leaves the inertias dead, and MZ needs a push along x or y, or a turn."""
    machine = Machine.of_bodies([Body("c", None, "fixed"), Body("w", "c", "sliding")], base="free")
    rng = np.random.default_rng(0)
    up = np.zeros((N, 3))
    up[:, 2] = 9.81 + rng.normal(size=N)
    motion = Motion(0.01 * np.arange(N), *rng.normal(size=(3, N, 1)), BaseMotion(*np.zeros((2, N, 3)), up))
    e = explain(machine, "MZ_c", motion)
    assert e.verdict == "without effect" and "has no effect in this motion" in str(e)
    assert {"the base accelerates along x", "the base accelerates along y"} <= set(e.motions)
    assert "the base accelerates along z" not in e.motions
    assert explain(machine, "MX_c", motion).verdict != "without effect"


def test_known_and_tied_parameters_are_said_to_be_so() -> None:
    machine = arm()
    p = machine.parameters.known({"M2": 3.0}).tied({"YY3": "XX3"})
    machine = machine.with_parameters(p)
    assert str(explain(machine, "M2")) == "M2 is known (3 kg) and not estimated."
    assert explain(machine, "M2").verdict == "known"
    assert str(explain(machine, "YY3")) == "YY3 is tied: it is 1 times XX3. Ask about XX3."


def test_a_body_that_never_turns() -> None:
    machine = Machine.of_bodies([Body("lift", joint="sliding")])
    e = explain(machine, "ZZ_lift")
    assert e.verdict == "without effect" and "body 'lift' never turns" in str(e)


def test_an_element_on_no_row_asked() -> None:
    machine = Machine.of_bodies(tree_of(arm()).bodies, elements=[spring("q3")])
    assert "its element acts on none of these rows" in str(explain(machine, "k_q3", rows=["q1"]))


def test_everything_that_could_move_is_tried() -> None:
    machine = Machine.of_bodies([Body("c", None, "fixed"), Body("w", "c")], base="free", elements=[drag("c.fx")])
    motion = Motion(np.arange(100.0), *np.zeros((3, 100, 1)), BaseMotion(*np.ones((4, 100, 3))))
    labels = [label for label, _ in enriched(machine, motion)]
    assert labels[0] == "w moves by itself" and "the speed varies" in labels and len(labels) == 8


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ModelError, match=r"there is no parameter 'XX9'[\s\S]*Did you mean 'XX"):
        explain(arm(), "XX9")


def test_a_closed_machine_moves_only_as_its_loops_let_it() -> None:
    """With the crank still, what it carries is hidden, and moving it is the way out."""
    machine = palletizer()
    t = np.arange(200) / 50.0
    q = np.column_stack([np.sin(t), -1.3 + 0.3 * np.sin(2.1 * t), np.full(200, 2.9)])
    qd = np.column_stack([np.cos(t), 0.63 * np.cos(2.1 * t), np.zeros(200)])
    qdd = np.column_stack([-np.sin(t), -1.323 * np.sin(2.1 * t), np.zeros(200)])
    said = explain(machine, "MY4", closed_motion(machine, t, q, qd, qdd))
    assert said.verdict == "grouped" and "q4 moves by itself" in said.motions


def measured(m: Motion, seed: int) -> Motion:
    return noisy(np.random.default_rng(seed), replace(m, forces=inverse_dynamics(truth(), m)))


def slow() -> Motion:
    m = clean()
    return measured(replace(m, t=m.t * 4, qd=m.qd / 4, qdd=m.qdd / 16), 1)


def test_the_deviations_foretold_are_those_obtained() -> None:
    first = slow()
    fit = identify(truth(), first)
    best = what_next(fit, first)[0]
    second = dict(candidates(truth(), first))[best.motion]
    again = [measured(second, seed) for seed in (2, 3, 4)]  # a candidate has 400 samples, the recording 1500
    both = identify(truth(), [first, *again, measured(second[:300], 5)])
    now = dict(zip(both.names, both.sigma, strict=True))
    assert best.sharpened
    for name, (before, after) in best.sharpened.items():
        assert after < before / 1.5
        assert now[name] == pytest.approx(after, rel=0.1)


def test_of_slow_motion_it_says_faster() -> None:
    first = slow()
    advice = what_next(identify(truth(), first), first)
    assert advice[0].motion == "the same motion runs 1.5 times as fast"
    assert str(advice[0]).startswith("One more recording as long as this one in which the same motion runs")


def test_where_nothing_is_poor_it_says_nothing() -> None:
    first = slow()
    assert what_next(identify(truth(), first), first, poor=1e6) == ()


def test_a_coordinate_alone_keeps_to_what_it_has_done() -> None:
    m = clean()
    for label, other in candidates(truth(), m):
        if "alone" in label:
            assert (np.ptp(other.q, axis=0) <= np.ptp(m.q, axis=0) * (1 + 1e-9)).all()
            assert (np.abs(other.qd).max(axis=0) <= np.abs(m.qd).max(axis=0) * (1 + 1e-9)).all()
            assert (np.abs(other.qdd).max(axis=0) <= np.abs(m.qdd).max(axis=0) * (1 + 1e-9)).all()
            assert np.count_nonzero(np.ptp(other.q, axis=0) > 1e-9) == 1


def test_candidates_of_a_closed_machine_keep_its_loops_closed() -> None:
    machine = palletizer()
    fit = identify(machine, closed_measured(machine, 300, 1.0))
    m = closed_measured(machine, 300, 1.0)
    found = dict(candidates(machine, m))
    assert {label.split(" ")[0] for label in found} >= {"the"}
    for moved in found.values():
        assert np.isfinite(inverse_dynamics(machine, moved)).all()  # refuses open loops
    assert all(a.gain > 0.0 for a in what_next(fit, m))
