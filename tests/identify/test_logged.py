"""Logs of closed machines become motions: any coordinates that determine the machine serve, and the others follow as Pinocchio has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

import veridyn as vd
from strangers.closed_logs import Stranger, sines
from studies.excavator_log import MODEL
from veridyn.errors import DataError
from veridyn.files.machine.load import load_model
from veridyn.identify.logged import determining, logged, motion, readings_in_reach
from veridyn.machines import delta, linkage, palletizer
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.mechanics.tree.loops.assembly import Split, splitting
from veridyn.mechanics.tree.loops.closure import closed_home, closed_or_none
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.experiment import Experiment
from veridyn.model.load import Transmission
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.papers.hexapod.machine import hexapod
from veridyn.signals.motion import Signals

CENTRE = {"palletizer": (0.0, -1.3, 2.9), "delta": (0.5, 0.5, 0.5)}
MACHINES = {"palletizer": palletizer, "delta": delta}
UNIT = {"turning": ("rad", "N*m"), "sliding": ("m", "N")}
DEGREES = 180.0 / np.pi


@lru_cache
def exact(name: str) -> Motion:
    machine = MACHINES[name]()
    t = np.arange(0.0, 2.0, 0.01)
    drives = sines(t, np.array(CENTRE[name]), np.full(3, 0.25), 0.5, 3, np.random.default_rng(4))
    return Stranger(machine, {**machine.assembly.guess, **machine.assembly.hold}).motion(t, *drives)


def split_of(machine: Machine, given: Sequence[str]) -> Split:
    return splitting(tree_of(machine), given)


def log(machine: Machine, m: Motion, positions: tuple[str, ...], **more: np.ndarray) -> Experiment:
    kinds = dict(zip(machine.coordinates, machine.coordinate_kinds, strict=True))
    values = {f"q.{c}": m.q[:, machine.coordinates.index(c)] for c in positions}
    units = {f"q.{c}": UNIT[kinds[c]][0] for c in positions}
    assert m.forces is not None
    values |= {f"force.{c}": m.forces[:, machine.coordinates.index(c)] for c in machine.actuated_coordinates}
    units |= {f"force.{c}": UNIT[kinds[c]][1] for c in machine.actuated_coordinates}
    units |= dict.fromkeys(more, "rad")
    return Experiment.from_arrays(m.t, values | more, units, "run.csv")


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("palletizer", ("q1", "q2", "q4")),
        ("palletizer", ("q1", "q3", "q4")),  # the elbow instead of the shoulder
        ("delta", ("q1", "q2", "q3")),
        ("delta", ("x", "y", "z")),  # where the platform is
    ],
)
def test_what_is_not_measured_follows(name: str, positions: tuple[str, ...]) -> None:
    machine, m = MACHINES[name](), exact(name)
    found = logged(machine, log(machine, m, positions), Signals())
    assert set(found.given) == set(positions) and not found.spare
    inner = slice(20, -20)  # differences know less at the ends
    assert np.abs(found.motion.q - m.q).max() < 1e-9
    assert np.abs(found.motion.qd - m.qd)[inner].max() < 2e-4 * np.abs(m.qd).max()
    assert np.abs(found.motion.qdd - m.qdd)[inner].max() < 2e-3 * np.abs(m.qdd).max()
    np.testing.assert_array_equal(found.motion.forces, m.forces)
    assert vd.motion is motion


def test_more_than_enough_is_compared() -> None:
    machine, m = palletizer(), exact("palletizer")
    found = logged(machine, log(machine, m, ("q1", "q2", "q3", "q4")), Signals())
    assert found.given == ("q1", "q2", "q4")
    assert np.abs(found.spare["q3"]).max() < 1e-9
    off = log(machine, replace(m, q=m.q + np.array([0.0, 0.0, 0.01, 0.0, 0.0])), ("q1", "q2", "q3", "q4"))
    assert np.allclose(logged(machine, off, Signals()).spare["q3"], 0.01)


def test_drives_come_first_and_others_fill_up() -> None:
    machine = palletizer()
    assert determining(machine, ("q1", "q3", "q4", "q5"), "run").names[0] == "q1"
    assert set(determining(machine, ("q1", "q2", "q3", "q5"), "run").names) >= {"q1", "q2"}
    with pytest.raises(
        DataError, match=r"(?s)do not determine 'palletizer'.*3 degrees.*found q.q1, q.q2. Missing of the former: q.q4"
    ):
        determining(machine, ("q1", "q2"), "run")
    with pytest.raises(DataError, match="do not determine"):  # a parallelogram: q3 and q5 turn with q4 − q2 alone
        determining(machine, ("q1", "q3", "q5"), "run")
    with pytest.raises(DataError, match="found no position"):
        logged(
            linkage(),
            Experiment.from_arrays(np.arange(50) / 100.0, {"force.q1": np.ones(50)}, {"force.q1": "N*m"}, "run"),
        )


def test_motors_behind_gears() -> None:
    machine, m = palletizer(), exact("palletizer")
    geared = replace(
        machine, transmission=Transmission(("a", "b"), ("q2", "q4"), np.array([[0.01, 0.0], [-0.01, 0.02]]))
    )
    own = m.q[:, [1, 3]] @ np.linalg.inv(np.array([[0.01, 0.0], [-0.01, 0.02]])).T
    made = log(geared, m, ("q1",), **{"q_motor.a": own[:, 0], "q_motor.b": own[:, 1]})
    assert np.abs(motion(geared, made, Signals()).q - m.q).max() < 1e-9


def test_open_trees_are_as_they_were() -> None:
    from veridyn.machines.arm import arm

    machine = arm()
    t = np.arange(0.0, 1.0, 0.01)
    q = np.sin(t[:, None] + np.arange(machine.n))
    made = Experiment.from_arrays(
        t,
        {f"q.{c}": q[:, k] for k, c in enumerate(machine.coordinates)},
        {f"q.{c}": "rad" for c in machine.coordinates},
    )
    assert logged(machine, made).given == machine.coordinates
    np.testing.assert_array_equal(motion(machine, made).q, vd.signals.motion.motion(machine, made).q)


def test_a_pose_out_of_reach_is_named_with_its_time() -> None:
    """The platform of the delta pulled 1 m below its rods' reach for a moment."""
    machine, m = delta(), exact("delta")
    q = m.q.copy()
    q[:, machine.coordinates.index("z")] -= 1.0 * np.exp(-(((m.t - 1.2) / 0.1) ** 2))
    with pytest.raises(
        DataError, match=r"(?s)run.csv, delta, sample 1\d\d \(t = 1\.\d+ s\): .*(out of reach|singular position)"
    ):
        motion(machine, log(machine, replace(m, q=q), ("x", "y", "z")), Signals())


def test_a_singular_pose_on_the_way_is_named_with_its_time() -> None:
    """A crank that goes through the direction of the upper arm: there the parallelogram is flat."""
    machine = palletizer()
    t = np.arange(0.0, 2.0, 0.01)
    q = np.column_stack([0.0 * t, -1.3 + 0.0 * t, 2.9 - 1.5 * t])  # flat where q4 = q2 + π
    made = Experiment.from_arrays(
        t,
        {"q.q1": q[:, 0], "q.q2": q[:, 1], "q.q4": q[:, 2]},
        dict.fromkeys(("q.q1", "q.q2", "q.q4"), "rad"),
        "run.csv",
    )
    when = (2.9 + 1.3 - np.pi) / 1.5
    with pytest.raises(
        DataError, match=r"run.csv, palletizer, sample \d+ \(t = [\d.]+ s\): a singular position"
    ) as raised:
        motion(machine, made, Signals())
    at = float(str(raised.value).split("t = ")[1].split(" s")[0])
    assert when - 0.02 <= at <= when + 0.12  # found within a stride of 0.1 rad behind it


def test_forces_of_passive_joints_are_refused() -> None:
    machine, m = palletizer(), exact("palletizer")
    made = log(machine, m, ("q1", "q2", "q4"))
    odd = replace(made, channels={**made.channels, "force.q3": replace(made["force.q4"], name="force.q3")})
    with pytest.raises(DataError, match=r"run.csv, force.q3: a passive joint of a loop has no motor"):
        motion(machine, odd, Signals())


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
    assert words in readings_in_reach(split_of(palletizer(), given), q @ change.T)


def test_lengths_in_millimetres() -> None:
    given, q = around_home(hexapod(), 0.01)
    scaled = q.copy()
    scaled[:, 2] *= 1e3
    assert readings_in_reach(split_of(hexapod(), given), scaled) == ["l3 in mm, not m"]


def test_nothing_simple_helps() -> None:
    """The platform metres away, where arms and rods of 0.9 m in all cannot follow."""
    assert readings_in_reach(split_of(delta(), ("x", "y", "z")), np.tile([5.0, 5.0, -5.0], (10, 1))) == []


def test_rates_follow_too() -> None:
    machine = palletizer()
    given, q = around_home(machine, 0.2)
    whole = closed_or_none(split_of(machine, given), Motion(np.arange(80.0), q, np.ones_like(q), 0.0 * q))
    assert whole is not None
    # A parallelogram: the forearm keeps its direction while the upper arm swings, q3 = q4 − q2 but for a constant.
    assert np.ptp(whole.q[:, 2] - (whole.q[:, 3] - whole.q[:, 1])) < 1e-9
    assert np.abs(whole.qd[:, 2]).max() < 1e-9 and np.allclose(whole.qd[:, 0], 1.0)
    still = np.zeros((1, 3))
    assert (
        closed_or_none(
            split_of(delta(), ("x", "y", "z")), Motion(np.zeros(1), np.array([[0.0, 0.0, -2.0]]), still, still)
        )
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
    made = closed_or_none(split_of(machine, ("swing", "s1", "s2", "s3")), Motion(t, q, qd, qdd))
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
