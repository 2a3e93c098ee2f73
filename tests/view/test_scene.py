import json

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_oracle import PinModel
from studies.arm_simulation import ARM
from veridyn.errors import DataError
from veridyn.files.access import shipped
from veridyn.files.machine.load import load_model
from veridyn.machines import linkage
from veridyn.mechanics.natural.equations.position import position
from veridyn.mechanics.natural.equations.system import natural_system
from veridyn.mechanics.tree.loops.closure import closed_positions
from veridyn.mechanics.tree.recursion.kinematics import Posture, body_pose
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.view.scene import FINE, Layer, mechanism_layer, rail_ends, scene, tree_layer, with_rails


def swinging(frames: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    t = np.linspace(0.0, 10.0, frames)
    points = np.zeros((frames, 2, 3))
    points[:, 1, 0], points[:, 1, 2] = np.sin(t), -np.cos(t)
    return t, points


def test_the_payload_gives_the_points_back_to_a_step_of_the_grid() -> None:
    t, points = swinging()
    made = scene(t, [Layer("rod", points, [(0, 1)], trails=[1])], "A pendulum", frames=50)
    data = json.loads(made.payload())
    assert len(data["t"]) == 50 and data["t"][0] == 0.0 and data["t"][-1] == 10.0
    back = np.array(data["layers"][0]["points"]).reshape(50, 2, 3) * data["step"] + data["low"]
    assert np.abs(back - made.layers[0].points).max() <= 0.5001 * data["step"]
    assert data["step"] == pytest.approx(np.ptp(made.layers[0].points, axis=(0, 1)).max() / FINE)


def test_a_machine_that_the_eye_follows_is_as_fine_as_one_that_stays() -> None:
    """A rod of two metres that travels a kilometre: its points come back to half of 2 m/FINE."""
    t = np.linspace(0.0, 10.0, 40)
    ends = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    points = ends + np.array([100.0, 3.0, 0.0]) * t[:, None, None]
    data = json.loads(scene(t, [Layer("rod", points, [(0, 1)])], "far", follow=True).payload())
    back = np.array(data["layers"][0]["points"]).reshape(len(t), 2, 3) * data["step"] + data["low"]
    assert data["step"] == pytest.approx(2.0 / FINE) and np.abs(back - points).max() <= 0.5001 * data["step"]


def test_frames_are_even_in_time_even_where_samples_are_not() -> None:
    t = np.concatenate([np.linspace(0, 1, 900), np.linspace(1.01, 10, 100)])
    made = scene(t, [Layer("rod", np.random.default_rng(1).normal(size=(1000, 1, 3)), [])], "x", frames=20)
    assert np.abs(np.diff(made.t) - 10 / 19).max() < 0.11


def test_a_label_cannot_end_the_script() -> None:
    t, points = swinging(5)
    assert "</script>" not in scene(t, [Layer("</script><b>", points, [])], "x").payload()


@pytest.mark.parametrize(
    ("points", "segments", "said"),
    [
        (np.zeros((4, 2, 3)), [], r"layer 'rod': .*wrong shape.*\n.*\(5, points, 3\), found \(4, 2, 3\)"),
        (np.full((5, 2, 3), np.nan), [], "not finite"),
        (np.zeros((5, 2, 3)), [(0, 2)], r"points that are not there.*\n.*\(0, 2\)"),
    ],
)
def test_points_that_cannot_be_shown_are_named(points: np.ndarray, segments: list, said: str) -> None:
    with pytest.raises(DataError, match=said):
        scene(np.arange(5.0), [Layer("rod", points, segments)], "x")


def test_the_points_are_those_of_pinocchio() -> None:
    machine = load_model(ARM)
    q = np.random.default_rng(0).standard_normal((4, 3))
    layer = tree_layer(machine, q, "arm")
    oracle = PinModel(machine)
    for k, x in enumerate(q):
        pin.forwardKinematics(oracle.model, oracle.data, x)
        for j in (1, 2, 3):
            assert layer.points[k, j] == pytest.approx(oracle.data.oMi[j].translation, abs=1e-12)
        tip = oracle.data.oMi[3].act(np.array([0.16, 0.0, 0.01]))
        assert layer.points[k, layer.trails[0]] == pytest.approx(tip, abs=1e-12)
    assert (0, 1) in layer.segments and (2, 3) in layer.segments
    assert (1, 2) not in layer.segments  # the two first joints meet in a point


def test_loops_are_closed_in_the_picture() -> None:
    machine = linkage()
    q = closed_positions(machine, 5, np.random.default_rng(1))
    layer = tree_layer(machine, q, "linkage")
    first, second = layer.points.shape[1] - 2, layer.points.shape[1] - 1
    assert layer.points[:, first] == pytest.approx(layer.points[:, second], abs=1e-9)
    assert not layer.trails


def test_a_free_base_goes_where_it_is_put() -> None:
    machine = Machine.of_bodies(
        [Body("hull", None, "fixed"), Body("mast", "hull", "turning")], base="free", name="ship"
    )
    p, R = np.array([[1.0, 2.0, 3.0]]), np.eye(3)[None]
    layer = tree_layer(machine, np.zeros((1, 1)), "ship", p, R)
    assert layer.points[0] == pytest.approx(np.tile(p, (3, 1))) and not layer.segments


def test_poses_of_all_bodies_are_those_of_each():
    machine = load_model(shipped("veridyn:car_38.yaml"))
    q = np.random.default_rng(3).uniform(-0.5, 0.5, (4, machine.n))
    for name, (R, p) in Posture(machine, q).frames().items():
        own = body_pose(machine, q, name)
        assert pytest.approx(own[0], abs=1e-12) == R and p == pytest.approx(own[1], abs=1e-12)


def test_a_crane_has_a_rail_a_trolley_and_a_load() -> None:
    """Volumes of trolley and load are as 80 kg to 250 kg; the rail lies at height 0 (crane.yaml), past trolleys at 0.2 and 1.5 m."""
    system = natural_system(load_model(shipped("veridyn:crane.yaml")))
    names = system.mechanism.coordinates
    at = [position(system, {"x": x, "swing": 0.1}) for x in (0.2, 1.5)]
    layer = mechanism_layer("crane", system, np.array(at))
    points = [p.name for p in system.mechanism.points]
    by_point = {points[s.point]: s for s in layer.solids}
    assert set(by_point) == {"T", "L"}
    volume = {name: np.ptp(s.vertices, axis=0).prod() for name, s in by_point.items()}
    assert volume["T"] / volume["L"] == pytest.approx(80 / 250)
    assert np.ptp(by_point["L"].vertices, axis=0).max() < 1.0  # m, of a rope of 6 m
    ends = rail_ends(system, np.array(at), 0.5)
    assert ends[0] == pytest.approx(np.array([[-0.3, 0.0, 0.0], [2.0, 0.0, 0.0]])) and len(ends) == 1
    drawn = with_rails(layer, ends)
    assert drawn.points[:, -2:] == pytest.approx(np.tile(ends[0], (2, 1, 1)))
    assert drawn.segments[-1] == (len(points), len(points) + 1)
    assert drawn.points[:, points.index("T"), 0] == pytest.approx([q[names.index("T.x")] for q in at])


def test_pins_on_bodies_are_joined_to_them() -> None:
    """The coupler has one point and, 0.5 m away, a pin (linkage.yaml), the rocker one at 0.4 m: both are lines, not cubes."""
    system = natural_system(linkage().with_formulation("natural"))
    layer = mechanism_layer("linkage", system, position(system)[None])
    lengths = sorted(float(np.linalg.norm(layer.points[0, a] - layer.points[0, b])) for a, b in layer.segments)
    assert {0.4, 0.5} <= {round(x, 9) for x in lengths} and not layer.solids
    assert not len(rail_ends(system, position(system)[None], 1.0))
