"""Sensitivities of simulated runs against finite differences of the same simulation."""

from __future__ import annotations

import numpy as np
import pytest

from identify.hanging_arm import SOFT, clean, truth
from identify.undiagnosed import identify
from identify.wheel_rig import log, rig
from veridyn.identify.output_error.log_runs import cut, with_element_states
from veridyn.identify.output_error.output_error import OutputError
from veridyn.identify.output_error.shooting import Shooting, run_model
from veridyn.identify.result import ReplaySettings
from veridyn.identify.validate import replay
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.model.elements.element import coulomb, damper
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

LAWS = {
    "direct": None,
    "in closed loop": lambda t, q, qd: (
        np.array([2.0, 1.0]) * (0.5 * np.sin(3 * t) - 1.5 - q) - np.array([0.3, 0.2]) * qd
    ),
}
STEP = 0.01


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_sensitivities_are_those_of_finite_differences(law) -> None:
    """By four parameters and by the initial state: steps are differentiated exactly, so what is left is that of the differences."""
    machine = truth()
    shooting = Shooting(machine=machine, law=law, friction_speed=SOFT, substeps=4)
    (runs,) = cut(machine, [clean()], 1.0)
    assert len(runs) == 6 and runs.samples == 100
    runs = runs[:2]
    values = machine.parameters.values.copy()
    initial = np.concatenate([runs.q[:, 0], runs.qd[:, 0]], axis=1)
    names = ("ZZ2", "MX1", "h_q1", "fs_q2")
    spread = np.stack([np.eye(len(values))[machine.parameters.index(n)] for n in names], axis=1)
    found, S_q, S_v = shooting.sensitivities(runs, initial, values, spread)
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
            assert np.linalg.norm(S[..., k] - slope) < 1e-4 * np.linalg.norm(slope), (k, name)


def test_runs_reproduce_what_was_simulated() -> None:
    machine = truth()
    (runs,) = cut(machine, [clean()], 2.0)
    initial = runs.initial
    found = Shooting(machine=machine, friction_speed=SOFT).simulate(runs, initial, machine.parameters.values)
    assert found.q == pytest.approx(runs.q, abs=1e-10)


def test_sensitivities_of_a_tyre_with_its_slip_as_a_state() -> None:
    """By an inertia, by two constants of the tyre's law, and by the initial state, in which its slips are."""
    machine, names = rig(), ("tyre.C_KAPPA", "tyre.SIGMA_KAPPA")
    shooting = Shooting(machine=machine, substeps=8, constants=names)
    (runs,) = cut(machine, [with_element_states(machine, log()[:120])], 0.6)
    values, theta = machine.parameters.values.copy(), np.array([12000.0, 0.4])
    spread = np.eye(len(values))[:, [machine.parameters.index("ZZ_wheel")]]
    initial = runs.initial
    assert initial.shape == (2, 6)
    found, S_q, S_v = shooting.sensitivities(runs, initial, values, spread)
    for k, size in enumerate([1e-5, 1.0, 1e-5, *[1e-6] * 6]):
        ends = []
        for way in (size, -size):
            mass = values + way * spread[:, 0] if k == 0 else values
            law = theta + way * np.eye(2)[k - 1] if k in (1, 2) else theta
            state = initial + way * np.eye(6)[k - 3] if k >= 3 else initial
            ends.append(shooting.at(law).simulate(runs, state, mass))
        for S, name in ((S_q, "q"), (S_v, "qd")):
            slope = (getattr(ends[0], name) - getattr(ends[1], name)) / (2.0 * size)
            assert np.linalg.norm(S[..., k] - slope) <= 1e-4 * np.linalg.norm(slope) + 1e-6, (
                k,
                name,
            )  # 25 rad/s, rounded, over 2e-6
    assert found.signals["tyre.kappa"].shape == (2, 60)


def prescribed() -> Machine:
    """A slide that carries a second one, both with dry friction; in the plane, so that nothing but friction holds them."""
    bodies = [Body("1", joint="sliding"), Body("2", "1", joint="sliding", placement=MDH(alpha=np.pi / 3))]
    inertia = {"1": from_centre(2.0, np.zeros(3), np.eye(3)), "2": from_centre(1.0, np.zeros(3), np.eye(3))}
    elements = [coulomb("q1", 3.0), damper("q1", 0.8), coulomb("q2", 1.5), damper("q2", 0.5)]
    return Machine.of_bodies(bodies, inertia=inertia, gravity=(0.0, 0.0, 0.0), elements=elements)


@pytest.fixture(scope="module")
def held_log() -> Motion:
    t = STEP * np.arange(251)
    forces = np.stack([5.0 * np.sin(3.0 * t) + np.sin(7.0 * t), 3.0 * np.sin(5.0 * t + 1.0)], axis=1)

    def drive(time: float, q: np.ndarray, qd: np.ndarray) -> list[float]:
        return [float(np.interp(time, t, f)) for f in forces.T]

    found = integrate(prescribed(), t, [0.0, 0.0], [0.0, 0.0], drive, method=Method("RK4", step=STEP)).motion
    resting = np.abs(found.qd) < 1e-12
    assert 0.05 < resting.mean() < 0.9 and ((found.qd[1:] * found.qd[:-1]) < 0.0).any()  # it rests, and it turns round
    return found


def test_sensitivities_are_those_of_differences(held_log: Motion) -> None:
    """∂q/∂parameters over many stops and reversals, of the step that the simulation takes."""
    machine = prescribed()
    values = machine.parameters.values.copy()
    varied = [
        k for k, name in enumerate(machine.parameters.names) if name.startswith(("M", "f", "h")) and values[k] > 0.0
    ]
    assert len(varied) == 6
    model = run_model(machine, [held_log], values, ReplaySettings(friction_speed=0.0), varying=varied)
    (runs,) = cut(machine, [held_log], np.inf)
    spread = np.zeros((len(values), len(varied)))
    spread[varied, range(len(varied))] = 1.0
    state = model.initial(runs)
    columns = model.columns(runs, state, values, spread)[1][0]
    for k, column in enumerate(varied):
        nudge = np.zeros_like(values)
        nudge[column] = 1e-6 * values[column]
        ends = [model.residuals(runs, state, values + s * nudge)[0] for s in (-1.0, 1.0)]
        expected = (ends[0] - ends[1]) / (2.0 * nudge[column])
        off = np.abs(columns[:, :, k] - expected).max() / np.abs(expected).max()
        print(f"{machine.parameters.names[column]}: {off:.1e} of the largest sensitivity")
        assert off < 3e-4  # the instants of stops are differentiated as those of the flow, not of the steps


def test_a_log_that_rests_gives_the_parameters(held_log: Motion) -> None:
    """From a start that is 20 % off; with friction rounded off the same held_log is not reproduced."""
    machine = prescribed()
    names = [name for name, v in zip(machine.parameters.names, machine.parameters.values, strict=True) if v > 0.0]
    estimated = [n for n in names if n.startswith(("M", "f", "h"))]
    start = {
        n: 1.2 * v for n, v in zip(machine.parameters.names, machine.parameters.values, strict=True) if n in estimated
    }
    wrong = machine.with_parameters(start)
    fit = identify(wrong, held_log, OutputError(initial="measured", friction_speed=0.0, start="tree"))
    truth = fit.base.reduce(machine.parameters.values)
    assert fit.values == pytest.approx(truth, rel=1e-3, abs=1e-4)
    held = replay(machine, held_log, friction_speed=0.0)
    creeps = replay(machine, held_log, friction_speed=0.05)
    assert max(row.rms for row in held.rows) < 1e-9 < 1e-3 < max(row.rms for row in creeps.rows)
