"""Sensitivities of simulated runs against finite differences of the same simulation."""

from __future__ import annotations

import numpy as np
import pytest

from identify.hanging_arm import SOFT, clean, truth
from identify.wheel_rig import log, rig
from veridyn.identify.estimators.log_runs import cut, with_element_states
from veridyn.identify.estimators.shooting import Shooting

LAWS = {
    "direct": None,
    "in closed loop": lambda t, q, qd: (
        np.array([2.0, 1.0]) * (0.5 * np.sin(3 * t) - 1.5 - q) - np.array([0.3, 0.2]) * qd
    ),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_sensitivities_are_those_of_finite_differences(law) -> None:
    """By four parameters and by the initial state. Where dry friction turns round within a step
    the trapezoidal rule is off by its step over that time: 5 % with steps of 10 ms, about 1 % with these of 2.5 ms."""
    machine = truth()
    shooting = Shooting(machine=machine, law=law, friction_speed=SOFT, substeps=4)
    (runs,) = cut(machine, [clean()], 1.0)
    assert len(runs) == 6 and runs.samples == 100
    runs = runs[:2]
    values = machine.parameters.values.copy()
    initial = np.concatenate([runs.q[:, 0], runs.qd[:, 0]], axis=1)
    names = ("ZZ2", "MX1", "h_q1", "fs_q2")
    spread = np.stack([np.eye(len(values))[machine.parameters.index(n)] for n in names], axis=1)
    found, S_q, S_v, _ = shooting.sensitivities(runs, initial, values, spread)
    assert found.q == pytest.approx(shooting.simulate(runs, initial, values).q, abs=1e-12)
    for k in range(len(names) + 4):
        size = 1e-5
        if k < len(names):
            ends = [shooting.simulate(runs, initial, values + way * size * spread[:, k]) for way in (1.0, -1.0)]
        else:
            move = np.eye(4)[k - len(names)]
            ends = [shooting.simulate(runs, initial + way * size * move, values) for way in (1.0, -1.0)]
        for S, name in ((S_q, "q"), (S_v, "qd")):
            slope = (getattr(ends[0], name) - getattr(ends[1], name)) / (2.0 * size)
            assert np.linalg.norm(S[..., k] - slope) < 0.02 * np.linalg.norm(slope), (k, name)


def test_runs_reproduce_what_was_simulated() -> None:
    machine = truth()
    (runs,) = cut(machine, [clean()], 2.0)
    initial = runs.initial
    found = Shooting(machine=machine, friction_speed=SOFT).simulate(runs, initial, machine.parameters.values)
    assert found.q == pytest.approx(runs.q, abs=1e-10)


def test_sensitivities_of_a_tyre_with_its_slip_as_a_state() -> None:
    """By an inertia, by two constants of the tyre's law, and by the initial state, in which its slips are.

    Wheel and tyre swing at 72 rad/s; over steps of 1.25 ms the trapezoidal rule is off by some tenths of a percent, over 2.5 ms by 1.4 %.
    """
    machine, names = rig(), ("tyre.C_KAPPA", "tyre.SIGMA_KAPPA")
    shooting = Shooting(machine=machine, substeps=8, constants=names)
    (runs,) = cut(machine, [with_element_states(machine, log()[:120])], 0.6)
    values, theta = machine.parameters.values.copy(), np.array([12000.0, 0.4])
    spread = np.eye(len(values))[:, [machine.parameters.index("ZZ_wheel")]]
    initial = runs.initial
    assert initial.shape == (2, 6)
    found, S_q, S_v, _ = shooting.sensitivities(runs, initial, values, spread)
    for k, size in enumerate([1e-5, 1.0, 1e-5, *[1e-6] * 6]):
        ends = []
        for way in (size, -size):
            mass = values + way * spread[:, 0] if k == 0 else values
            law = theta + way * np.eye(2)[k - 1] if k in (1, 2) else theta
            state = initial + way * np.eye(6)[k - 3] if k >= 3 else initial
            ends.append(shooting.at(law).simulate(runs, state, mass))
        for S, name in ((S_q, "q"), (S_v, "qd")):
            slope = (getattr(ends[0], name) - getattr(ends[1], name)) / (2.0 * size)
            assert np.linalg.norm(S[..., k] - slope) <= 0.01 * np.linalg.norm(slope) + 1e-6, (
                k,
                name,
            )  # 25 rad/s, rounded, over 2e-6
    assert found.signals["tyre.kappa"].shape == (2, 60)
