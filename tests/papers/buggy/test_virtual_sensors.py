"""Tyre forces, slips and travels from an observer's state, with bands, beside the truth."""

from __future__ import annotations

import numpy as np
import pytest

from mechanics.ground.wheel_readings import wheel_readings
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps.model import tree_model
from veridyn.papers.buggy.chapter5 import errors, table_drive
from veridyn.papers.buggy.drive import BuggyDrive, drive, driven, settle
from veridyn.papers.buggy.machine import CORNERS, buggy
from veridyn.papers.buggy.tracking import BuggyTrack
from veridyn.papers.buggy.virtual_sensors import UNITS, VirtualSensors, quantities, virtual_figures, virtual_sensors
from veridyn.spatial.rotations import matrix_of


def test_a_buggy_that_stands_weighs_what_it_weighs() -> None:
    """1378.3 kg on four wheels, none of them slipping, and travels alike on both sides."""
    machine = buggy()
    truth = driven(machine, BuggyDrive(duration=0.004, torque=0.0), start=settle(machine))
    names = [f"tyre_{c}.{key}" for c in CORNERS for key in ("kappa", "tan_alpha")]
    found = quantities(tree_model(tree_of(machine)), truth.q, truth.qd, dict(zip(names, truth.tyres.T, strict=True)))
    assert found["load"].sum(axis=1) == pytest.approx(1378.3 * 9.81, rel=1e-3)
    assert np.abs(found["slip"]).max() < 1e-6 and np.abs(found["fy"]).max() < 1.0
    assert found["travel"][:, 0] == pytest.approx(found["travel"][:, 1], abs=1e-6)


@pytest.fixture(scope="module")
def seen() -> dict[str, VirtualSensors]:
    """Of two observers along the beginning of the circle."""
    made = table_drive("circular", 1.6)
    found = {}

    def keep(name: str, track: BuggyTrack) -> None:
        found[name] = virtual_sensors(track, made.truth)

    errors(made, 0, ("error_ekf", "ekf"), seen=keep)
    return found


def test_the_best_filter_knows_its_tyres(seen: dict[str, VirtualSensors]) -> None:
    """Loads within a percent of themselves; a share of .95 of 32 readings has a deviation of .04, and they are not independent."""
    best = seen["ekf"]
    assert best.rms("load") < 0.01 * best.truth["load"].max()
    assert min(best.inside(name) for name in UNITS) > 0.75


def test_suspensions_of_the_error_ekf_have_no_band(seen: dict[str, VirtualSensors]) -> None:
    assert seen["error_ekf"].sigma["travel"].max() < 1e-6 and seen["error_ekf"].inside("travel") < 0.5
    assert seen["ekf"].sigma["travel"].min() > 1e-5


def test_figures_are_named_by_quantity_and_observer(seen: dict[str, VirtualSensors]) -> None:
    figures = virtual_figures(seen["ekf"], "ekf")
    assert len(figures) == 3 * len(UNITS)
    assert figures["virtual_rms_load_ekf"] == seen["ekf"].rms("load")
    assert figures["virtual_changes_fy"] == seen["ekf"].changes("fy") > 0.0


def test_loads_are_those_of_the_wheels_of_another_path() -> None:
    """Those that tests read along a trajectory of the Runge–Kutta integrator."""
    machine = buggy()
    run = drive(machine, BuggyDrive(duration=0.4, rack=-0.01))
    motion = run.motion
    other = wheel_readings(machine, motion)
    b = motion.base
    assert b is not None and b.position is not None and b.quaternion is not None and b.velocity is not None
    v = np.einsum("nij,nj->ni", matrix_of(b.quaternion), b.velocity)
    q = np.column_stack([b.position, b.quaternion, motion.q])
    found = quantities(tree_model(tree_of(machine)), q, np.column_stack([v, b.omega, motion.qd]), motion.signals)
    for k, corner in enumerate(CORNERS):
        assert found["load"][:, k] == pytest.approx(other[f"tyre_{corner}"].load, rel=1e-9)
        assert found["fy"][:, k] == pytest.approx(other[f"tyre_{corner}"].fy, rel=1e-9, abs=1e-9)
