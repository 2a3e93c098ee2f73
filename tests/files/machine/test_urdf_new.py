"""URDF of machines that came from no URDF: read again, and by Pinocchio, they are the same machine."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from strangers.random_trees import random_motion, random_open_machine
from veridyn.errors import DataWarning, ModelError
from veridyn.files.machine.load import load_model
from veridyn.files.machine.urdf import load_urdf
from veridyn.files.machine.urdf_write import save_urdf
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.body import Body
from veridyn.model.elements import coulomb, damper, spring
from veridyn.model.machine import Machine
from veridyn.spatial.transforms import MDH


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_a_new_urdf_is_the_same_machine(tmp_path: Path, seed: int, base: str) -> None:
    rng = np.random.default_rng(seed)
    machine = random_open_machine(rng, base=base, virtual=0.2)  # type: ignore[arg-type]
    machine = machine.with_elements([e for c in machine.coordinates for e in (damper(c, 0.3), coulomb(c, 0.2))])
    save_urdf(machine, tmp_path / "new.urdf")
    again = load_urdf(tmp_path / "new.urdf", gravity=machine.gravity)
    assert again.base == machine.base and again.coordinates == machine.coordinates
    m = random_motion(rng, machine, 5, wrenches=False)
    wanted = inverse_dynamics(machine, m, engine="numpy")
    assert np.abs(inverse_dynamics(again, m, engine="numpy") - wanted).max() < 1e-10 * np.abs(wanted).max()


def test_pinocchio_reads_a_new_urdf_as_the_same_machine(tmp_path: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(7)
    machine = random_open_machine(rng, 5, kinds=("turning", "sliding"), branched=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        save_urdf(machine.with_elements([spring(machine.coordinates[0], 1.0)]), tmp_path / "new.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "new.urdf"))
    model.gravity.linear = machine.gravity
    q, qd, qdd = rng.standard_normal((3, 5))
    parts = [
        (np.cos(x), np.sin(x)) if kind == "turning" else (x,)
        for x, kind in zip(q, machine.coordinate_kinds, strict=True)
    ]
    wanted = pin.rnea(model, model.createData(), np.array([x for part in parts for x in part]), qd, qdd)
    m = random_motion(rng, machine, 1, wrenches=False)
    found = inverse_dynamics(machine, type(m)(m.t, q[None], qd[None], qdd[None]), engine="numpy")[0]
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_joints_that_share_a_coordinate_mimic_the_first(tmp_path: Path) -> None:
    ten = [1.0, 0, 0, 1, 0, 1, 0.1, 0, 0, 1]
    bodies = [Body("a", coordinate="c"), Body("b", "a", placement=MDH(d=0.3), coordinate="c", ratio=-2.0)]
    machine = Machine.of_bodies(bodies, inertia={"a": ten, "b": ten}, elements=[damper("c", 0.4)])
    save_urdf(machine, tmp_path / "new.urdf")
    again = load_urdf(tmp_path / "new.urdf")
    assert again.coordinates == ("c",) and again.joints[1].ratio == -2.0
    turned = Machine.of_bodies([Body("a", coordinate="c", ratio=2.0)], inertia={"a": ten})
    with pytest.raises(ModelError, match="ratio of its own coordinate"):
        save_urdf(turned, tmp_path / "turned.urdf")


def test_loops_and_missing_values_are_refused(tmp_path: Path) -> None:
    linkage = load_model("veridyn:linkage.yaml")
    with pytest.raises(ModelError, match="closed loops"):
        save_urdf(linkage, tmp_path / "no.urdf")
    with pytest.raises(ModelError, match="no value"):
        save_urdf(random_open_machine(np.random.default_rng(1), 2, inertia=False), tmp_path / "no.urdf")
    assert not (tmp_path / "no.urdf").exists()


def test_what_a_urdf_has_no_place_for_is_named(tmp_path: Path) -> None:
    machine = random_open_machine(np.random.default_rng(1), 2, kinds=("turning",))
    with pytest.warns(DataWarning, match="no place for k_q1"):
        save_urdf(machine.with_elements([spring("q1", 2.0)]), tmp_path / "new.urdf")
