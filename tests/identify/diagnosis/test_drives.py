"""Motors that turn several joints as places of causes: their work is that of the joints, and friction at one is named there."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.damage.foreign import case
from benchmarks.damage.score import damaged
from benchmarks.damage.world import machine_of

import veridyn as vd
from veridyn.identify.diagnosis.drives import (
    acting_alone,
    coupled_drives,
    motor_of,
    motors_without_rotor,
    moving_alone,
    turned_together,
    turns_round,
)


def test_a_motor_of_a_differential_turns_with_two_joints() -> None:
    """Motor angles of benchmarks/foreign/geared.yaml are 80 q2 and 60 (q2 + q3): q3 = θ3/60 − θ2/80."""
    machine = machine_of("geared")
    second, third = coupled_drives(machine)
    assert (second.name, third.name) == ("m2", "m3")
    assert np.allclose(second.turns, [0.0, 1.0, 0.0]) and np.allclose(second.moves, [0.0, 1.0, -1.0])
    assert np.allclose(third.turns, [0.0, 1.0, 1.0]) and np.allclose(third.moves, [0.0, 0.0, 1.0])
    assert acting_alone((second, third)) == {1} and moving_alone((second, third)) == {2}
    assert motor_of(machine, "q1") == "m1" and motor_of(machine, "q2") is None
    assert turns_round(machine, "m3") and not turns_round(machine, "q1")
    rows = third.rows(machine, ("q3", "q2"))
    assert rows is not None and np.allclose(rows, 1.0)
    assert third.rows(machine, ("q1", "q2")) is None


def test_work_of_motors_is_that_of_joints() -> None:
    """Σ_k f_k ċ_k = Γᵀ q̇ with Γ = Σ a_k f_k, and l_k = d_kᵀ Γ gives f_k back."""
    machine, rng = machine_of("geared"), np.random.default_rng(1)
    drives = coupled_drives(machine)
    f, qd = rng.normal(size=2), rng.normal(size=3)
    gamma = sum(d.turns * x for d, x in zip(drives, f, strict=True))
    assert np.isclose(sum(x * (d.turns @ qd) for d, x in zip(drives, f, strict=True)), gamma @ qd)
    assert np.allclose([d.moves @ gamma for d in drives], f)


def test_gears_are_where_motors_are() -> None:
    """What every gear has is asked at q1, m2 and m3, and not at the joints that m2 and m3 turn together."""
    assert turned_together(machine_of("geared")) == {"q2", "q3"} and turned_together(machine_of("arm")) == set()


def test_a_motor_of_a_transmission_has_a_rotor() -> None:
    """An inertia of any value, on what the motor turns with or on its joint, is an answer; without gears nothing is known of rotors."""
    machine = machine_of("geared")
    rotors = [e.parameter_name for e in machine.elements if e.kind == "inertia"]
    assert motors_without_rotor(machine) == set() and len(rotors) == 3
    bare = machine.without_elements(rotors)
    assert motors_without_rotor(bare) == {"q1", "m2", "m3"}
    assert motors_without_rotor(machine.without_elements(rotors[2:])) == {"m3"}
    answered = bare.with_elements([vd.elements.motor_inertia("q3", 0.0)])
    assert motors_without_rotor(answered) == {"q1", "m2"}
    arm = machine_of("arm")
    assert (
        motors_without_rotor(arm.without_elements([e.parameter_name for e in arm.elements if e.kind == "inertia"]))
        == set()
    )


def test_a_machine_without_gears_has_none() -> None:
    assert coupled_drives(machine_of("arm")) == () and motor_of(machine_of("arm"), "q1") is None


@pytest.mark.parametrize(
    ("kind", "size"),
    [("friction that warms up", 0.5), ("asymmetric friction", 0.2), ("torque behind a low-pass", 0.02)],
)
def test_causes_of_a_coupled_motor_are_named_there(kind: str, size: float) -> None:
    """Seed 2: friction of motor 3, and a torque of motor 2."""
    bench, d = case(kind, 2)
    found = bench.identified(*damaged(bench, d, size), "fast").findings[0]
    assert found.place == ("m2" if d.log is None else "m3")
    assert any(word in found.cause for word in d.causes)
    assert f"'{found.place}'" in str(found)
