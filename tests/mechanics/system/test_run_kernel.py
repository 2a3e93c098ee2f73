"""Sampled joint controllers of a run: a mass in closed form from tick to tick, and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from veridyn.errors import DataError
from veridyn.mechanics.system.compiled_run import CompiledRun, JointControllers
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import damper
from veridyn.model.graph import Body
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
MASS, STEP, SUBSTEPS = 2.0, 0.01, 4
T = STEP * np.arange(80)


def by_hand(kp: float, ki: float, kd: float, limit: float, ticks: int, lag: int) -> tuple[Array, Array]:
    """x and force of a mass at the samples: constant forces between ticks, so that each step is exact; r is linear between samples."""
    h, x, v, force, integral = STEP / SUBSTEPS, 0.0, 0.0, 0.0, 0.0
    past, path, forces = [], [], []
    for count in range(SUBSTEPS * (len(T) - 1) + 1):
        past.append((x, v))
        if count % ticks == 0:
            q, qd = past[max(count - lag, 0)]
            e, ed = (np.interp(count * h, T, r) - y for r, y in ((np.sin(8.0 * T), q), (8.0 * np.cos(8.0 * T), qd)))
            raw = kp * e + kd * ed + integral
            force = float(np.clip(raw, -limit, limit))
            if (raw - force) * ki * e <= 0.0:
                integral += ki * e * ticks * h
        if count % SUBSTEPS == 0:
            path.append(x)
            forces.append(force)
        x, v = x + h * v + h * h * force / (2.0 * MASS), v + h * force / MASS
    return np.array(path), np.array(forces)


@pytest.mark.parametrize(("ticks", "lag"), [(1, 0), (4, 0), (6, 5), (2, 9)])
def test_a_mass_from_tick_to_tick(ticks: int, lag: int) -> None:
    """PID with a limit that it meets, at several rates and ages of the measurement."""
    inertia = {"1": from_centre(MASS, np.zeros(3), np.eye(3))}
    tree = Tree.build([Body("1", joint="sliding")], inertia=inertia, gravity=(0.0, 0.0, 0.0))
    servo = JointControllers(
        kp=np.array([300.0]), ki=np.array([400.0]), kd=np.array([30.0]), limit=np.array([60.0]), ticks=ticks, lag=lag
    )
    command = np.stack([np.sin(8.0 * T), 8.0 * np.cos(8.0 * T)], axis=1)[None]
    found, _ = CompiledRun(tree, servo=servo).run(
        STEP, np.zeros((1, 2)), np.zeros((1, len(T), 1)), {}, command=command, substeps=SUBSTEPS
    )
    x, force = by_hand(300.0, 400.0, 30.0, 60.0, ticks, lag)
    assert (np.abs(force) == 60.0).any() and (np.abs(force) < 60.0).any()
    assert found.q[0, :, 0] == pytest.approx(x, abs=1e-11)
    assert found.forces[0, :, 0] == pytest.approx(force, abs=1e-8)
    with pytest.raises(DataError, match="need commands"):
        CompiledRun(tree, servo=servo).run(STEP, np.zeros((1, 2)), np.zeros((1, len(T), 1)), {})


def test_sensitivities_are_those_of_differences() -> None:
    """Of positions and of forces, by gains, a parameter and the start, with limits that are met and a measurement of two steps before."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    link = from_centre(0.6, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    tree = Tree.build(bodies, inertia={"1": link, "2": link}, elements=[damper("q1", 0.1), damper("q2", 0.1)])
    gains = tuple((key, j) for j in range(2) for key in ("kp", "ki", "kd"))
    values = tree.parameters.values.copy()
    spread = np.eye(len(values))[:, [tree.parameters.index("ZZ2"), tree.parameters.index("h_q1")]]
    own = {"kp": np.array([40.0, 15.0]), "ki": np.array([30.0, 20.0]), "kd": np.array([2.0, 0.5])}
    command = np.stack([0.5 * np.sin(6.0 * T), np.cos(4.0 * T), 3.0 * np.cos(6.0 * T), -4.0 * np.sin(4.0 * T)], axis=1)
    start = np.array([[0.1, 0.4, 0.0, 0.0]])

    def runs(own: dict[str, Array], values: Array, start: Array, varied: Varied | None = None, forces: bool = False):
        servo = JointControllers(**own, limit=np.array([6.0, 3.0]), ticks=2, lag=2)
        run = CompiledRun(tree, servo=servo, varied=varied)
        rows = range(2) if varied is not None else ()
        asked = {"command": command[None], "parameters": values, "substeps": SUBSTEPS}
        return run.run(STEP, start, np.zeros((1, len(T), 2)), {}, **asked, rows=rows, law_forces=forces)

    varied = Varied(spread, gains=gains)
    found, S = runs(own, values, start, varied)
    _, by_force = runs(own, values, start, varied, True)
    limited = np.isclose(np.abs(found.forces[0]), [6.0, 3.0])
    assert limited.any() and not limited.all()
    for k in range(2 + len(gains) + 4):
        ends, size = [], 1e-6
        for way in (size, -size):
            there, now, begun = {key: x.copy() for key, x in own.items()}, values.copy(), start.copy()
            if k < 2:
                now += way * spread[:, k]
            elif k < 2 + len(gains):
                key, j = gains[k - 2]
                there[key][j] += way
            else:
                begun[0, k - 2 - len(gains)] += way
            ends.append(runs(there, now, begun)[0])
        for name, own_S in (("q", S), ("forces", by_force)):
            slope = (getattr(ends[0], name) - getattr(ends[1], name))[0] / (2.0 * size)
            # 1e-14 of the rounding of positions, times k_p, over 2e-6
            assert np.abs(own_S[0, :, :, k] - slope).max() < 1e-6 * np.abs(slope).max() + 2e-7, (k, name)


def test_zero_delay_and_age_by_differences() -> None:
    """Of positions, by the encoder's zero, the command's delay and the measurement's age, with an integral and ages between two steps."""
    bodies = [Body("1", placement=MDH(alpha=np.pi / 2)), Body("2", "1", placement=MDH(d=0.3))]
    link = from_centre(0.6, (0.2, 0.0, 0.0), 0.01 * np.eye(3))
    tree = Tree.build(bodies, inertia={"1": link, "2": link}, elements=[damper("q1", 0.1), damper("q2", 0.1)])
    keys = ("zero", "command_delay", "measurement_delay")
    gains = tuple((key, j) for j in range(2) for key in keys)
    gain = {"kp": np.array([40.0, 15.0]), "ki": np.array([30.0, 20.0]), "kd": np.array([2.0, 0.5])}
    own = {"zero": np.array([0.03, -0.02]), "command_delay": np.array([0.004, 0.0021])}
    own["measurement_delay"] = np.array([0.0061, 0.0013])  # 2.44 and 0.52 steps

    def runs(own: dict[str, Array], varied: Varied | None = None):
        t = T[:, None] - own["command_delay"]
        r, rate = np.sin(6.0 * t), 6.0 * np.cos(6.0 * t)
        command = np.concatenate([r, rate, rate, -36.0 * r], axis=1)[None]
        ages = {key: own[key] for key in ("zero", "measurement_delay")}
        servo = JointControllers(**gain, limit=np.array([60.0, 30.0]), lag=4, **ages)
        run = CompiledRun(tree, servo=servo, varied=varied)
        rows, still = range(2) if varied is not None else (), np.zeros((1, len(T), 2))
        return run.run(STEP, np.array([[0.1, 0.4, 0.0, 0.0]]), still, {}, command=command, substeps=SUBSTEPS, rows=rows)

    _, S = runs(own, Varied(np.zeros((len(tree.parameters), 0)), gains=gains))
    for k, (key, j) in enumerate(gains):
        ends = []
        for way in (1e-6, -1e-6):
            there = {name: x.copy() for name, x in own.items()}
            there[key][j] += way
            ends.append(runs(there)[0].q[0])
        slope = (ends[0] - ends[1]) / 2e-6
        # 1e-14 of the rounding of positions over 2e-6
        assert np.abs(S[0, :, :, k] - slope).max() < 1e-6 * np.abs(slope).max() + 1e-7, (key, j)


def test_ages_and_slopes_that_a_run_does_not_have() -> None:
    """Measurements older than the states that are kept, and delays without the command's slope."""
    inertia = {"1": from_centre(MASS, np.zeros(3), np.eye(3))}
    tree = Tree.build([Body("1", joint="sliding")], inertia=inertia, gravity=(0.0, 0.0, 0.0))
    one = {"kp": np.ones(1), "ki": np.zeros(1), "kd": np.zeros(1), "limit": np.full(1, np.inf), "lag": 1}
    given = (STEP, np.zeros((1, 2)), np.zeros((1, len(T), 1)), {})
    old = JointControllers(**one, measurement_delay=np.array([0.03]))
    with pytest.raises(DataError, match="older than the states"):
        CompiledRun(tree, servo=old).run(*given, command=np.zeros((1, len(T), 2)))
    varied = Varied(np.zeros((len(tree.parameters), 0)), gains=(("command_delay", 0),))
    with pytest.raises(DataError, match="need its slope"):
        CompiledRun(tree, servo=JointControllers(**one), varied=varied).run(*given, command=np.zeros((1, len(T), 2)))
