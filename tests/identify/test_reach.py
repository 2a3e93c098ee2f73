import numpy as np
import pytest

from studies.excavator_log import MODEL
from veridyn.files.machine.load import load_model
from veridyn.identify.reach import closed_or_none, readings_in_reach
from veridyn.machines.parallel import delta, palletizer
from veridyn.mechanics.loops.closure import closed_home
from veridyn.mechanics.regressor import regressor
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import hexapod

DEGREES = 180.0 / np.pi


def around_home(machine: Machine, size: float) -> tuple[tuple[str, ...], np.ndarray]:
    own = list(machine.independent)
    rng = np.random.default_rng(2)
    return tuple(machine.coordinates[k] for k in own), closed_home(machine)[own] + size * rng.uniform(
        -1.0, 1.0, (80, len(own))
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (np.diag([DEGREES] * 3), "q1, q2, q4 in degrees, not radians"),
        (np.diag([1.0, DEGREES, 1.0]), "q2 in degrees, not radians"),
        (np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]]), "q2 and q4 swapped"),
        (np.diag([1.0, 1.0, -1.0]), "q4 with the other sign"),
    ],
)
def test_the_mistake_is_among_what_is_named(change: np.ndarray, words: str) -> None:
    given, q = around_home(palletizer(), 0.2)
    assert words in readings_in_reach(palletizer(), given, q @ change.T)


def test_lengths_in_millimetres() -> None:
    given, q = around_home(hexapod(), 0.01)
    scaled = q.copy()
    scaled[:, 2] *= 1e3
    assert readings_in_reach(hexapod(), given, scaled) == ["l3 in mm, not m"]


def test_nothing_simple_helps() -> None:
    """The platform metres away, where arms and rods of 0.9 m in all cannot follow."""
    assert readings_in_reach(delta(), ("x", "y", "z"), np.tile([5.0, 5.0, -5.0], (10, 1))) == []


def test_rates_follow_too() -> None:
    machine = palletizer()
    given, q = around_home(machine, 0.2)
    whole = closed_or_none(machine, given, Motion(np.arange(80.0), q, np.ones_like(q), 0.0 * q))
    assert whole is not None
    # A parallelogram: the forearm keeps its direction while the upper arm swings, q3 = q4 − q2 but for a constant.
    assert np.ptp(whole.q[:, 2] - (whole.q[:, 3] - whole.q[:, 1])) < 1e-9
    assert np.abs(whole.qd[:, 2]).max() < 1e-9 and np.allclose(whole.qd[:, 0], 1.0)
    still = np.zeros((1, 3))
    assert (
        closed_or_none(delta(), ("x", "y", "z"), Motion(np.zeros(1), np.array([[0.0, 0.0, -2.0]]), still, still))
        is None
    )


def test_a_trial_next_to_a_stretched_cylinder_keeps_its_loops_closed() -> None:
    """A nanometre from the dead centre: rates were those of a place a micrometre away, and the trial opened its loops."""
    machine = load_model(MODEL)
    t = np.arange(400) / 50.0
    w = 2.0 * np.pi * 0.3
    s, c, d = np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)
    still = np.zeros_like(t)
    a, b = np.hypot(1.2, 0.3), np.hypot(0.05, 0.22)  # from the pivot of the bucket to both pins of its cylinder
    length = a + b - 1e-9 - 0.05 * (1.0 + s)
    q = np.column_stack([0.3 * s, 1.28 + still, 1.31 + still, length])
    qd, qdd = (np.column_stack([0.3 * x, still, still, -0.05 * x]) for x in (c, d))
    made = closed_or_none(machine, ("swing", "s1", "s2", "s3"), Motion(t, q, qd, qdd))
    assert made is not None
    assert np.isfinite(regressor(machine, made, engine="numpy")).all()
    # Law of cosines: length² = a² + b² − 2 a b cos φ; φ̈ from its second derivative.
    cos = (a * a + b * b - length**2) / (2.0 * a * b)
    sin = np.sqrt(1.0 - cos**2)
    rate = length * qd[:, 3] / (a * b * sin)
    bend = (qd[:, 3] ** 2 + length * qdd[:, 3] - a * b * cos * rate**2) / (a * b * sin)
    k = machine.coordinates.index("dig")
    worst = int(np.argmax(np.abs(bend)))
    assert abs(bend[worst]) > 5e3
    np.testing.assert_allclose(np.abs(made.qdd[worst, k]), np.abs(bend[worst]), rtol=1e-5)
