"""Output error with dry friction that holds: sensitivities against differences, and the parameters of a log that rests and moves."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.estimate import identify
from veridyn.identify.estimators.log_runs import cut
from veridyn.identify.estimators.output_error import OutputError
from veridyn.identify.estimators.run_model import run_model
from veridyn.identify.replay import replay
from veridyn.mechanics.integrate import Method, integrate
from veridyn.model.body import Body
from veridyn.model.elements import coulomb, damper
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.transforms import MDH

STEP = 0.01


def prescribed() -> Machine:
    """A slide that carries a second one, both with dry friction; in the plane, so that nothing but friction holds them."""
    bodies = [Body("1", joint="sliding"), Body("2", "1", joint="sliding", placement=MDH(alpha=np.pi / 3))]
    inertia = {"1": from_centre(2.0, np.zeros(3), np.eye(3)), "2": from_centre(1.0, np.zeros(3), np.eye(3))}
    elements = [coulomb("q1", 3.0), damper("q1", 0.8), coulomb("q2", 1.5), damper("q2", 0.5)]
    return Machine.of_bodies(bodies, inertia=inertia, gravity=(0.0, 0.0, 0.0), elements=elements)


@pytest.fixture(scope="module")
def log() -> Motion:
    t = STEP * np.arange(251)
    forces = np.stack([5.0 * np.sin(3.0 * t) + np.sin(7.0 * t), 3.0 * np.sin(5.0 * t + 1.0)], axis=1)

    def drive(time: float, q: np.ndarray, qd: np.ndarray) -> list[float]:
        return [float(np.interp(time, t, f)) for f in forces.T]

    found = integrate(prescribed(), t, [0.0, 0.0], [0.0, 0.0], drive, method=Method("RK4", step=STEP)).motion
    resting = np.abs(found.qd) < 1e-12
    assert 0.05 < resting.mean() < 0.9 and ((found.qd[1:] * found.qd[:-1]) < 0.0).any()  # it rests, and it turns round
    return found


def test_sensitivities_are_those_of_differences(log: Motion) -> None:
    """∂q/∂parameters over many stops and reversals, of the step that the simulation takes."""
    machine = prescribed()
    values = machine.parameters.values.copy()
    varied = [
        k for k, name in enumerate(machine.parameters.names) if name.startswith(("M", "f", "h")) and values[k] > 0.0
    ]
    assert len(varied) == 6
    model = run_model(machine, [log], values, varying=varied)
    (runs,) = cut(machine, [log], np.inf)
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
        assert off < 3e-3  # trapezoidal rule on sensitivities, Kutta's on the motion


def test_a_log_that_rests_gives_the_parameters(log: Motion) -> None:
    """From a start that is 20 % off; with friction rounded off the same log is not reproduced."""
    machine = prescribed()
    names = [name for name, v in zip(machine.parameters.names, machine.parameters.values, strict=True) if v > 0.0]
    estimated = [n for n in names if n.startswith(("M", "f", "h"))]
    start = {
        n: 1.2 * v for n, v in zip(machine.parameters.names, machine.parameters.values, strict=True) if n in estimated
    }
    wrong = machine.with_parameters(start)
    fit = identify(wrong, log, OutputError(initial="measured", friction_speed=0.0, start="tree"), diagnose="off")
    truth = fit.base.reduce(machine.parameters.values)
    assert fit.values == pytest.approx(truth, rel=1e-3, abs=1e-4)
    held = replay(machine, log, friction_speed=0.0)
    creeps = replay(machine, log, friction_speed=0.05)
    assert max(row.rms for row in held.rows) < 1e-9 < 1e-3 < max(row.rms for row in creeps.rows)
