"""Virtual sensors on trees: reactions, springs, accelerations and forces with bands; what does not exist is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from observe.test_machine_trees import arm, tumbling
from veridyn.errors import DataError, ModelWarning
from veridyn.machines import linkage
from veridyn.model.machine import Machine
from veridyn.model.place import Marker
from veridyn.model.sensor import Sensor
from veridyn.observe.machine import MachineSystem
from veridyn.observe.observation import Virtual, quantity_of
from veridyn.observe.observer_setup import machine_system
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings
from veridyn.observe.system import numeric_jacobian


def closed() -> Machine:
    tree = linkage()
    return replace(tree, sensors=(Sensor("q", "coordinate", tree.coordinates[0], 1e-3),))


def made(tree: Machine, **more: object) -> tuple[MachineSystem, np.ndarray]:
    system, q, qd = machine_system(
        tree, ObserveSettings(model_error="off", process_noise=ProcessNoise(force=1.0), **more)
    )  # pyright: ignore[reportArgumentType]
    rng, n, f = np.random.default_rng(0), len(system.states), system.f
    d = np.concatenate(
        [0.05 * rng.standard_normal(f), 0.4 * rng.standard_normal(f), 0.3 * rng.standard_normal(n - 2 * f)]
    )
    return system, system.add(system.belief(q, qd).x, d)


WANTED = [
    (arm, "reaction", "lower", {"parameters": ("M_lower", "fv2")}),
    (arm, "spring", "fv1", {"parameters": ("fv1",)}),
    (arm, "force", "upper", {}),
    (arm, "acceleration", Marker("lower", (0.6, 0.0, 0.0)), {}),
    (tumbling, "reaction", "arm", {}),
    (tumbling, "acceleration", "hull", {}),
    (closed, "reaction", "pin", {}),
]


@pytest.mark.filterwarnings("ignore:.*which no motion determines")
@pytest.mark.parametrize(("machine", "kind", "on", "more"), WANTED)
def test_derivatives_with_respect_to_the_whole_state(machine, kind: str, on: str | Marker, more: dict) -> None:
    system, x = made(machine(), **more)
    quantity, u = quantity_of(system, Virtual("y", kind, on)), np.zeros(0)
    y, G = quantity.at(x, system.instant(x, u), u)
    assert len(y) == len(quantity.components) == len(quantity.units)
    numeric, accuracy = numeric_jacobian(
        lambda a: quantity.at(a, system.instant(a, u), u)[0], x, np.full(len(system.states), 0.01), system.add
    )
    scale = np.abs(numeric).max() + np.abs(y).max()
    assert (np.abs(G - numeric) <= 1e-6 * scale + 3.0 * accuracy).all()


def test_a_joint_is_found_by_its_body_and_by_its_coordinate() -> None:
    system, x = made(closed())
    u = np.zeros(0)
    with pytest.warns(ModelWarning, match=r"redundant joints share 'r\.y'.*which no motion determines"):
        one = quantity_of(system, Virtual("r", "reaction", system.model.tree.bodies[1].name))
    with pytest.warns(ModelWarning):
        two = quantity_of(system, Virtual("r", "reaction", system.model.tree.coordinates[1]))
    at = system.instant(x, u)
    np.testing.assert_array_equal(one.at(x, at, u)[0], two.at(x, at, u)[0])
    assert one.components == ("r.x", "r.z", "r.moment.y") and one.units == ("N", "N", "N*m")


@pytest.mark.parametrize(
    ("machine", "kind", "on", "message"),
    [
        (arm, "reaction", "elbow", "there is no joint 'elbow'"),
        (arm, "reaction", ("lower", "point"), "a place of a tree is on a body"),
        (arm, "spring", "k", "there is no element 'k'"),
        (arm, "force", "elbow", "there is no coordinate 'elbow'"),
        (arm, "acceleration", "elbow", "there is no body 'elbow'"),
        (arm, "acceleration", Marker("lower", (0, 0, 0), (1, 0, 0)), "given in the ground's axes"),
        (arm, "tension", "lower", "no virtual sensor of kind 'tension'"),
        (arm, "reaction", Marker("lower", (0, 0, 0)), "this is no place"),
        (tumbling, "reaction", "hull", "no joint carries a free base"),
    ],
)
def test_what_does_not_exist_is_named(machine, kind: str, on: object, message: str) -> None:
    system, _ = made(machine())
    with pytest.raises(DataError, match=message):
        quantity_of(system, Virtual("v", kind, on))  # pyright: ignore[reportArgumentType]
