"""Base motions from poses and inertial units against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from veridyn.errors import DataError, DataWarning
from veridyn.model.experiment import Channel, Experiment
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Pose
from veridyn.signals.base_motion import (
    base_from_pose,
    course_over_ground,
    fit_markers,
    marker_cluster,
    moved_to_base,
    nearest_rotations,
    pose_at,
    smoothed_pose,
)
from veridyn.signals.butterworth import Butterworth
from veridyn.signals.motion import Signals, motion
from veridyn.spatial.rotations import MDH, Placement

G = np.array([0.0, 0.0, -9.81])
TREE = Machine.of_bodies(
    [Body("torso", None, "fixed"), Body("leg", "torso", "turning", MDH(d=0.1), coordinate="hip")],
    base="free",
    gravity=G,
)


def coning(rate: float = 500.0, seconds: float = 2.0) -> tuple[Pose, BaseMotion]:
    """Turning at Ω about a body axis that itself is carried at ν about the vertical, on a circle: ω, ω̇ and v̇ in closed form."""
    t = np.arange(round(seconds * rate)) / rate
    nu, spin, r = 2.0, 3.0, 0.4
    carried = Rotation.from_rotvec(np.outer(nu * t, [0.0, 0.0, 1.0]))
    turned = Rotation.from_rotvec(np.outer(spin * t, [1.0, 0.0, 0.0]))
    R = (carried * turned).as_matrix()
    p = r * np.stack([np.cos(nu * t), np.sin(nu * t), 0.0 * t], axis=1)
    c, s, zero = np.cos(spin * t), np.sin(spin * t), 0.0 * t
    omega = np.stack([spin + zero, nu * s, nu * c], axis=1)
    omega_dot = np.stack([zero, nu * spin * c, -nu * spin * s], axis=1)
    back = np.swapaxes(R, 1, 2)
    specific = np.einsum("nij,nj->ni", back, -(nu**2) * p - G)
    velocity = np.einsum("nij,nj->ni", back, nu * np.stack([-p[:, 1], p[:, 0], zero], axis=1))
    return Pose(t, R, p), BaseMotion(omega, omega_dot, specific, velocity)


def test_the_motion_of_a_pose_is_that_of_the_closed_form() -> None:
    pose, exact = coning()
    found = base_from_pose(pose, G)
    inner = slice(10, -10)
    for name in ("omega", "omega_dot", "acceleration", "velocity"):
        assert getattr(found, name)[inner] == pytest.approx(getattr(exact, name)[inner], abs=1e-8), name


def test_a_motion_takes_its_base_from_a_pose() -> None:
    pose, exact = coning()
    log = Experiment.from_arrays(pose.t, {"q.hip": np.sin(pose.t)}, {"q.hip": "rad"})
    whole = motion(TREE, log, Signals(trim=0.1), pose=pose)
    assert whole.base is not None and len(whole) == len(pose) - 100
    assert whole.base.acceleration == pytest.approx(exact.acceleration[50:-50], abs=1e-8)
    low = motion(TREE, log, Signals(lowpass=20.0, trim=0.4), pose=pose)
    assert low.base is not None
    assert low.base.omega == pytest.approx(exact.omega[200:-200], abs=1e-3)


def test_a_pose_of_a_machine_on_the_ground_is_refused() -> None:
    pose, _ = coning(seconds=0.2)
    fixed = Machine.of_bodies([Body("arm", "ground", "turning", MDH(), coordinate="q")])
    log = Experiment.from_arrays(pose.t, {"q.q": pose.t}, {"q.q": "rad"})
    with pytest.raises(DataError, match="base is fixed"):
        motion(fixed, log, pose=pose)


def test_an_inertial_unit_elsewhere_on_the_body_tells_the_same() -> None:
    _, exact = coning()
    unit = Placement(Rotation.from_euler("xyz", [0.3, -1.0, 2.0]).as_matrix(), (0.05, -0.02, 0.11))
    R, r = unit.rotation, unit.position
    lever = np.cross(exact.omega_dot, r) + np.cross(exact.omega, np.cross(exact.omega, r))
    assert exact.velocity is not None
    read = BaseMotion(
        exact.omega @ R,
        exact.omega_dot @ R,
        (exact.acceleration + lever) @ R,
        (exact.velocity + np.cross(exact.omega, r)) @ R,
    )
    found = moved_to_base(read, unit)
    for name in ("omega", "omega_dot", "acceleration", "velocity"):
        assert getattr(found, name) == pytest.approx(getattr(exact, name), abs=1e-12), name
    assert moved_to_base(BaseMotion(read.omega, read.omega_dot, read.acceleration), unit).velocity is None


def test_poses_between_samples_and_behind_a_low_pass() -> None:
    pose, _ = coning(rate=100.0)
    between = pose_at(pose, pose.t[20:30] + 0.005)
    exact, _ = coning(rate=200.0)
    assert np.abs(between.rotation - exact.rotation[41:61:2]).max() < 1e-5
    assert pose_at(pose, pose.t) is pose and smoothed_pose(pose, None) is pose
    calm = smoothed_pose(pose, Butterworth(15.0))
    assert np.abs(calm.rotation - pose.rotation)[30:-30].max() < 1e-3
    with pytest.raises(DataError, match="was not measured then"):
        pose_at(pose, [5.0])


def test_the_nearest_rotation_is_one() -> None:
    rng = np.random.default_rng(0)
    A = np.eye(3) + 0.1 * rng.standard_normal((50, 3, 3))
    R = nearest_rotations(A)
    assert np.abs(R @ np.swapaxes(R, 1, 2) - np.eye(3)).max() < 1e-14 and np.linalg.det(R) == pytest.approx(np.ones(50))


PLACES = np.array([[0.06, 0.0, 0.12], [-0.06, 0.01, 0.1], [0.0, 0.07, 0.17], [0.01, -0.07, 0.17], [0.0, 0.0, 0.25]])
NAMES = ("chest", "back", "left", "right", "head")


def seen(N: int = 200, noise: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    t = np.arange(N) * 0.01
    angle = np.stack([0.3 * np.sin(t), 0.2 * np.cos(1.3 * t), t], axis=1)
    R = Rotation.from_rotvec(angle).as_matrix()
    p = np.stack([np.sin(t), 0.1 * t, 0.3 + 0.05 * np.cos(2 * t)], axis=1)
    markers = p[:, None] + np.einsum("nij,mj->nmi", R, PLACES)
    return t, R, p, markers + noise * rng.standard_normal(markers.shape)


def test_without_noise_the_pose_is_exact() -> None:
    t, R, p, m = seen()
    fit = fit_markers(t, m, PLACES, NAMES)
    assert np.abs(fit.pose.rotation - R).max() < 1e-13 and np.abs(fit.pose.position - p).max() < 1e-13
    assert fit.residual.max() < 1e-14 and fit.valid.all() and fit.lost == () and (fit.seen == 5).all()


def test_with_noise_it_is_the_least_squares_of_a_stranger() -> None:
    t, _, _, m = seen(20, noise=1e-3)
    fit = fit_markers(t, m, PLACES)
    for k in range(20):
        best = Rotation.align_vectors(m[k] - m[k].mean(axis=0), PLACES - PLACES.mean(axis=0))[0]
        assert fit.pose.rotation[k] == pytest.approx(best.as_matrix(), abs=1e-9)
    assert 3e-4 < fit.residual.mean() < 3e-3


def test_a_flat_cluster_is_not_turned_inside_out() -> None:
    t, R, _, _ = seen(30)
    flat = PLACES * np.array([1.0, 1.0, 0.0])
    fit = fit_markers(t, np.einsum("nij,mj->nmi", R, flat), flat)
    assert np.abs(fit.pose.rotation - R).max() < 1e-12


def test_three_of_five_are_enough_and_short_gaps_are_bridged() -> None:
    t, R, p, m = seen()
    m[50:60, 3:] = np.nan
    m[100:103] = np.nan
    fit = fit_markers(t, m, PLACES, max_gap=0.05)
    assert fit.valid.all() and (fit.seen[50:60] == 3).all() and np.isnan(fit.residual[100:103]).all()
    assert np.abs(fit.pose.rotation - R).max() < 1e-5 and np.abs(fit.pose.position - p).max() < 1e-5


def test_markers_lost_for_half_a_second_are_reported_by_time_and_name() -> None:
    t, _, _, m = seen()
    m[80:130, :4] = np.nan
    with pytest.warns(
        DataWarning,
        match=r"(?s)fewer than three markers .* 0.800 s to 1.290 s; not seen then: chest, back, left, right",
    ) as told:
        fit = fit_markers(t, m, PLACES, NAMES, body="torso")
    assert "markers of 'torso'" in str(told[0].message).replace("\n", " ")
    assert fit.lost == ((pytest.approx(0.80), pytest.approx(1.29)),)
    assert not fit.valid[80:130].any() and fit.valid[:80].all() and fit.valid[130:].all()
    assert fit.unusable(t, 0.1).sum() == 70
    assert "lost from 0.800 s to 1.290 s" in fit.summary()


def test_lost_at_the_ends_the_last_pose_stays_and_is_not_valid() -> None:
    t, R, _, m = seen()
    m[:3] = m[-2:] = np.nan
    with pytest.warns(DataWarning):
        fit = fit_markers(t, m, PLACES)
    assert not fit.valid[:3].any() and not fit.valid[-2:].any()
    assert np.abs(fit.pose.rotation[:3] - R[3]).max() < 1e-12


def test_a_cluster_of_unknown_shape_turns_as_the_body_does() -> None:
    t, R, _, m = seen(noise=2e-4)
    m[10:20, 0] = np.nan
    fit = fit_markers(t, m, marker_cluster(m))
    turned = np.einsum("nij,kj->nik", fit.pose.rotation, fit.pose.rotation[0])
    assert np.abs(turned - np.einsum("nij,kj->nik", R, R[0])).max() < 0.01


@pytest.mark.parametrize(
    ("places", "names", "text"),
    [
        (np.zeros((5, 2)), None, "not points"),
        (PLACES[:4], None, "do not belong together"),
        (np.outer(np.arange(5), [1.0, 2.0, 0.5]), None, "do not fix a pose"),
        (PLACES, ("a", "b"), "not every marker has a name"),
    ],
)
def test_what_cannot_be_fitted_is_refused(places: np.ndarray, names: tuple[str, ...] | None, text: str) -> None:
    t, _, _, m = seen(10)
    with pytest.raises(DataError, match=text):
        fit_markers(t, m, places, names)


def test_markers_that_are_never_seen_together_are_refused() -> None:
    t, _, _, m = seen(10)
    m[:, 2:] = np.nan
    with pytest.raises(DataError, match="hardly ever seen together"):
        fit_markers(t, m, PLACES)
    with pytest.raises(DataError, match="no sample in which every marker is seen"):
        marker_cluster(m)


def velocity(x, y, unit="m/s"):
    t = np.arange(len(x)) * 0.02
    return Channel("v.x", t, np.asarray(x, dtype=float), unit), Channel("v.y", t, np.asarray(y, dtype=float), unit)


def test_all_directions_and_the_threshold():
    angles = np.linspace(-3.1, 3.1, 63)
    speed = np.where(np.arange(63) % 2, 0.4, 0.6)
    course, available = course_over_ground(*velocity(speed * np.cos(angles), speed * np.sin(angles)), "c", above=0.5)
    assert (course.name, course.unit, available.name, available.unit) == ("c", "rad", "c.available", "1")
    assert course.values == pytest.approx(angles, abs=1e-12)
    assert np.array_equal(available.values, (speed > 0.5).astype(float))  # the speed, not the angle, decides


def test_noise_is_that_of_the_velocity_across():
    rng = np.random.default_rng(0)
    x, y = 3.0 + 0.1 * rng.standard_normal(4000), 2.0 + 0.1 * rng.standard_normal(4000)
    course, _, sigma = course_over_ground(*velocity(x, y), above=0.5, sigma=0.1)
    assert course.values.std() == pytest.approx(np.median(sigma.values), rel=0.05)
    assert np.median(sigma.values) == pytest.approx(0.1 / np.hypot(3.0, 2.0), rel=0.01)


def test_nothing_at_rest_and_nothing_from_nan():
    course, available, sigma = course_over_ground(*velocity([0.0, np.nan, 2.0], [0.0, 1.0, 0.0]), above=0.5, sigma=0.1)
    assert available.values.tolist() == [0.0, 0.0, 1.0] and np.isnan(course.values[1])
    assert sigma.values == pytest.approx([np.pi / np.sqrt(3.0)] * 2 + [0.05])


def test_what_is_no_velocity_is_refused():
    x, y = velocity([1.0], [1.0])
    with pytest.raises(DataError, match=r"(?s)'v.x': it is no velocity.*there is no course at rest"):
        course_over_ground(*velocity([1.0], [1.0], "km/h"), above=0.0)
    with pytest.raises(DataError, match=r"'v.y': it has another clock"):
        course_over_ground(x, Channel("v.y", y.t + 0.01, y.values, "m/s"), above=0.5)
    with pytest.raises(DataError, match="it is no deviation"):
        course_over_ground(x, y, above=0.5, sigma=0.0)
