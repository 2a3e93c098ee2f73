"""A machine in a browser: the page is there, its scene has the bodies where kinematics puts them, and it goes away again."""

import socket
import sys
import threading
import urllib.request

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_oracle import PinModel
from studies.small_arm import small_arm
from veridyn.errors import DataError
from veridyn.files.access import shipped
from veridyn.files.machine.load import load_model
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.rotations import MDH
from veridyn.view.live import (
    BACKGROUND,
    ELLIPSOID,
    FORCE,
    GHOST,
    LINE,
    MESH,
    POINT,
    LiveRecording,
    LiveView,
    posable_mechanism,
    posable_tree,
)
from veridyn.view.meshes import BodyMesh, sphere

pytest.importorskip("viser", reason="viser (the extra 'view') serves live views")


@pytest.fixture
def view():
    machine = small_arm()
    box = BodyMesh("2", 0.3 * sphere()[0], sphere()[1])
    t = np.linspace(0.0, 2.0, 50)
    poses = np.column_stack([np.sin(t), 0.5 * t])
    forces = np.column_stack([np.cos(t), np.full(50, np.nan)])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made = LiveView(posable_tree(machine, meshes=[box]), port, recording=LiveRecording(t, poses, forces))
    yield made
    made.stop()


def test_everything_is_where_pinocchio_has_the_bodies(view):
    machine = view.machine.model
    view.at(1.3)
    k = int(np.searchsorted(view.recording.t, 1.3, side="right")) - 1
    oracle = PinModel(machine)
    pin.forwardKinematics(oracle.model, oracle.data, view.recording.poses[k])
    place = oracle.data.oMi[2]
    for node in ("/meshes/0", "/frames/2"):
        handle = view.server.scene.get_handle_by_name(node)
        assert np.array(handle.position) == pytest.approx(place.translation, abs=1e-9)
        w, x, y, z = handle.wxyz
        turned = pin.Quaternion(w, x, y, z).toRotationMatrix()
        assert turned == pytest.approx(place.rotation, abs=1e-9)
    arrow = np.array(view.server.scene.get_handle_by_name("/forces").points)
    axis = oracle.data.oMi[1].rotation[:, 2]
    along = (arrow[0, 1] - arrow[0, 0]) @ axis
    assert np.sign(along) == np.sign(np.cos(view.recording.t[k]))
    assert np.linalg.norm(arrow[0, 1] - arrow[0, 0]) == pytest.approx(abs(along), rel=1e-6)
    assert not (arrow[1, 1] - arrow[1, 0]).any()  # no force is known there


def luminance(colour: tuple[int, int, int]) -> float:
    """Relative luminance, WCAG 2.2."""
    share = np.array(colour) / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("colour", [MESH, ELLIPSOID, FORCE, LINE, POINT, GHOST])
def test_nothing_is_lost_before_the_background(colour):
    """WCAG 2.2, 1.4.11: 3 to 1 for what is needed to understand a picture."""
    assert (luminance(BACKGROUND) + 0.05) / (luminance(colour) + 0.05) > 3.0


def test_boxes_switch_what_is_shown(view):
    switches = view._dress.switches
    assert set(switches) == {"meshes", "inertia ellipsoids", "frames", "forces"}
    assert [switches[k].value for k in ("meshes", "inertia ellipsoids", "frames", "forces")] == [
        True,
        False,
        False,
        True,
    ]
    switches["frames"].value = True
    assert view.server.scene.get_handle_by_name("/frames/1").visible


def test_the_plot_runs_with_time(view):
    view.at(0.5)
    early = len(view._plot.data[0])
    view.at(1.8)
    assert len(view._plot.data[0]) > early and len(view._plot.data) == 3
    assert view._plot.data[1][-1] == pytest.approx(np.sin(view._plot.data[0][-1]), abs=1e-9)


def test_the_camera_sees_all_of_it(view):
    camera = view.server.initial_camera
    away = np.linalg.norm(np.array(camera.position) - np.array(camera.look_at))
    reached = view._reached(view.machine.layer(view.pose[None]).points[0])
    assert away > 0.9 * np.ptp(reached, axis=0).max()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def shown():
    """Views that are stopped at the end of the test, whatever happens."""
    pytest.importorskip("viser", reason="viser (the extra 'view') serves live views")
    views = []

    def show(machine, recording=None):
        views.append(LiveView(machine, free_port(), recording=recording))
        return views[-1]

    yield show
    for view in views:
        view.stop()


def place(view, name):
    return np.array(view.server.scene.get_handle_by_name(f"/machine/{name}").position)


def test_the_scene_has_the_bodies_and_the_sliders_move_them(shown):
    machine = small_arm()
    view = shown(posable_tree(machine, {"q1": (-1.0, 2.0)}))
    with urllib.request.urlopen(view.address, timeout=10) as page:
        assert page.status == 200
    assert view.address.startswith("http://127.0.0.1:")
    assert (view.sliders["q1"].min, view.sliders["q1"].max) == (-1.0, 2.0)
    for pose in ({"q1": 0.4}, {"q2": -0.9}):
        assert view.show(pose)
        for body in ("1", "2"):
            expected = body_pose(machine, view.pose[None], body)[1][0]
            assert place(view, body) == pytest.approx(expected, abs=1e-9)
    assert view.pose.tolist() == [0.4, -0.9]


def test_a_slide_that_is_drawn_in_has_its_line_when_it_is_drawn_out(shown):
    machine = Machine.of_bodies([Body("1", placement=MDH(r=0.3)), Body("2", "1", joint="sliding")])
    view = shown(posable_tree(machine))
    assert len(view._lines.points) == 2
    view.show({machine.coordinates[1]: 0.4})
    assert np.ptp(np.asarray(view._lines.points)[1], axis=0).max() == pytest.approx(0.4)


def test_a_machine_with_loops_follows_and_says_what_it_cannot_do(shown):
    machine = load_model(shipped("veridyn:linkage.yaml"))
    view = shown(posable_tree(machine))
    crank = view.machine.coordinates[0]
    before = {body: place(view, body) for body in machine.body_names}
    assert view.show({crank: view.pose[0] + 0.3})
    moved = [b for b, p in before.items() if np.abs(place(view, b) - p).max() > 1e-3]
    assert moved
    kept = view.pose.copy()
    mechanism = shown(posable_mechanism(load_model(shipped("veridyn:fourbar.yaml"))))
    names = mechanism.machine.coordinates
    assert mechanism.show({names[0]: mechanism.pose[0] + 0.1})
    assert not mechanism.show({names[0]: np.nan})
    assert "cannot be shown" in mechanism._said.content
    assert np.array_equal(view.pose, kept)


def test_a_recording_is_played(shown):
    t = np.linspace(0.0, 1.0, 11)
    poses = np.column_stack([np.sin(t), t])
    view = shown(posable_tree(small_arm()), LiveRecording(t, poses))
    assert np.array_equal(view.pose, poses[0])
    view.at(0.55)
    assert np.array_equal(view.pose, poses[5])
    view.run(threading.Event(), 0.1)
    assert view._time.value > 0.0
    stopped = threading.Event()
    stopped.set()
    view.run(stopped)  # returns at once


def test_stopping_frees_the_port(capsys):
    pytest.importorskip("viser", reason="viser (the extra 'view') serves live views")
    port = free_port()
    LiveView(posable_tree(small_arm()), port).stop()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
    assert capsys.readouterr().out == ""  # the command line alone prints


def test_without_its_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(DataError, match=r"needs viser, which is not installed.\npip install 'veridyn\[view\]'"):
        LiveView(posable_tree(small_arm()))
