"""Logs of closed machines become motions: any coordinates that determine the machine serve, and the others follow as Pinocchio has them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

import veridyn as vd
from strangers.closed_logs import Stranger, sines
from veridyn.errors import DataError
from veridyn.identify.logged import determining, logged, motion
from veridyn.machines.parallel import delta, linkage, palletizer
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.transmission import Transmission
from veridyn.signals.motion import Signals

CENTRE = {"palletizer": (0.0, -1.3, 2.9), "delta": (0.5, 0.5, 0.5)}
MACHINES = {"palletizer": palletizer, "delta": delta}
UNIT = {"turning": ("rad", "N*m"), "sliding": ("m", "N")}


@lru_cache
def exact(name: str) -> Motion:
    machine = MACHINES[name]()
    t = np.arange(0.0, 2.0, 0.01)
    drives = sines(t, np.array(CENTRE[name]), np.full(3, 0.25), 0.5, 3, np.random.default_rng(4))
    return Stranger(machine, {**machine.assembly.guess, **machine.assembly.hold}).motion(t, *drives)


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
    assert determining(machine, ("q1", "q3", "q4", "q5"), "run")[0] == "q1"
    assert set(determining(machine, ("q1", "q2", "q3", "q5"), "run")) >= {"q1", "q2"}
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
