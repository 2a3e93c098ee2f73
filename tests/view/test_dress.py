"""Meshes, ellipsoids, frames and forces in a view: where Pinocchio has the bodies, and switched by boxes."""

import socket

import numpy as np
import pinocchio as pin
import pytest

from strangers.pinocchio_oracle import PinModel
from studies.small_arm import small_arm
from veridyn.view.live import LiveRecording, LiveView, posable_tree
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
