"""How a free base moves, from where motion capture sees it or from what an inertial unit on it reads; and its course over ground.

From a pose: ω of Rᵀ Ṙ, ω̇ its derivative, and the specific acceleration Rᵀ (p̈ − g). From an inertial unit that sits at (R_s, r) in the
base: ω = R_s ω_s and a = R_s a_s − ω̇ × r − ω × (ω × r), so no attitude is needed.

Markers on a body become its pose by a rigid fit, with lost markers counted and named. For each sample (R, p) minimise Σ ‖R aₖ + p − mₖ‖²
over the markers seen (Kabsch 1976; Arun, Huang and Blostein 1987), with aₖ where marker k sits on the body. Three that are not on a line
fix a pose. Spans with fewer are bridged by interpolation, so that filters can run, and are marked: what is bridged longer than `max_gap` is
not to be used, and a warning says so.

The course comes from two components of a velocity: where the machine goes, which is not where it points.

    χ = atan2(v_y, v_x),    σ_χ = σ_v/v,    available where v = √(v_x² + v_y²) ≥ v_min        (003 prints atan2 in place of the speed)

Yaw is course minus sideslip: taken as yaw, course biases it by the sideslip. At rest a course is the direction of noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

from veridyn.arguments import as_array, checked
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, warn
from veridyn.model.experiment import Channel
from veridyn.model.motion import BaseMotion, Pose
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.conditioning import Method, derivative
from veridyn.signals.resample import uniform_rate
from veridyn.spatial.rotations import MDH, Placement

PREFIX = "pose."
NAMES = tuple(f"{PREFIX}r{i}{k}" for i in range(3) for k in range(3)) + tuple(f"{PREFIX}{a}" for a in "xyz")
Mask = NDArray[np.bool_]
COLLINEAR_RATIO = 1e-3  # of its size: a cluster thinner than this in two directions is a line


def nearest_rotations(A: ArrayLike) -> Array:
    """The rotations (N, 3, 3) nearest to matrices (N, 3, 3) that are almost rotations."""
    U, _, Vt = np.linalg.svd(np.asarray(A, dtype=np.float64))
    U[..., -1] *= np.linalg.det(U @ Vt)[..., None]
    return U @ Vt


def pose_channels(pose: Pose) -> tuple[Channel, ...]:
    """The twelve numbers of a pose as channels, for a common clock with others."""
    table = np.concatenate([pose.rotation.reshape(-1, 9), pose.position], axis=1)
    return tuple(Channel(name, pose.t, table[:, k], "1" if k < 9 else "m") for k, name in enumerate(NAMES))


@checked
def smoothed_pose(pose: Pose, low: Butterworth | None) -> Pose:
    """A pose on a uniform clock through a zero-phase low-pass: entries of R and p, then the nearest rotation."""
    if low is None:
        return pose
    rate = uniform_rate(pose.t, where="pose.t")
    R = zero_phase(pose.rotation.reshape(-1, 9), rate, low, "pose.rotation").reshape(-1, 3, 3)
    return Pose(pose.t, nearest_rotations(R), zero_phase(pose.position, rate, low, "pose.position"))


@checked
def pose_at(pose: Pose, t: ArrayLike) -> Pose:
    """A pose at other times within its own, by cubic interpolation."""
    times = as_array(t, "pose_at, t", (None,))
    if np.array_equal(times, pose.t):
        return pose
    slack = 1e-9
    if (
        len(times) == 0
        or not np.isfinite(times).all()
        or times[0] < pose.t[0] - slack
        or times[-1] > pose.t[-1] + slack
    ):
        found = f"{times[0]:.6g} s to {times[-1]:.6g} s" if len(times) else "no times"
        expected = f"{pose.t[0]:.6g} s to {pose.t[-1]:.6g} s"
        raise DataError("the pose was not measured then.", where="pose", expected=expected, found=found)
    table = CubicSpline(pose.t, np.concatenate([pose.rotation.reshape(-1, 9), pose.position], axis=1))(times)
    return Pose(times, nearest_rotations(table[:, :9].reshape(-1, 3, 3)), table[:, 9:])


def base_from_pose(pose: Pose, gravity: ArrayLike, method: Method = "compensated") -> BaseMotion:
    """ω, ω̇, v̇ − g and v in the base's frame, from a pose at a uniform clock; low-pass it first where it is noisy."""
    rate = uniform_rate(pose.t, where="pose.t")
    back = np.swapaxes(pose.rotation, 1, 2)
    turn = back @ derivative(pose.rotation.reshape(-1, 9), rate, 1, method, "pose.rotation").reshape(-1, 3, 3)
    omega = 0.5 * np.stack(
        [turn[:, 2, 1] - turn[:, 1, 2], turn[:, 0, 2] - turn[:, 2, 0], turn[:, 1, 0] - turn[:, 0, 1]], axis=1
    )
    specific = derivative(pose.position, rate, 2, method, "pose.position") - np.asarray(gravity, dtype=np.float64)
    speed = derivative(pose.position, rate, 1, method, "pose.position")
    return BaseMotion(
        omega,
        derivative(omega, rate, 1, method, "pose.rotation"),
        np.einsum("nij,nj->ni", back, specific),
        np.einsum("nij,nj->ni", back, speed),
    )


@checked
def moved_to_base(read: BaseMotion, unit: Placement | MDH) -> BaseMotion:
    """The base's motion from what an inertial unit reads that sits at `unit` in the base's frame, in the unit's own axes."""
    R, r = unit.rotation, unit.position
    omega, omega_dot = read.omega @ R.T, read.omega_dot @ R.T
    lever = np.cross(omega_dot, r) + np.cross(omega, np.cross(omega, r))
    velocity = None if read.velocity is None else read.velocity @ R.T - np.cross(omega, r)
    return BaseMotion(omega, omega_dot, read.acceleration @ R.T - lever, velocity)


@dataclass(frozen=True, eq=False)
class MarkerFit:
    """The `pose` of a body at every sample, and how far to trust it.

    `valid` (N,): False where the pose is bridged over more than the gap allowed. `residual` (N,): rms distance of the markers seen
    from their places on the body, in m, NaN where none was fitted. `seen` (N,): markers used. `lost`: (first, last) times of the
    spans that are not valid.
    """

    pose: Pose
    valid: Mask
    residual: Array
    seen: NDArray[np.intp]
    lost: tuple[tuple[float, float], ...]

    def unusable(self, t: ArrayLike, margin: float = 0.0) -> Mask:
        """Which of the times `t` lie in a lost span or within `margin` s of one: a mask for ``Sampling(drop={row: mask})``."""
        times = np.asarray(t, dtype=np.float64)
        out = np.zeros(len(times), dtype=bool)
        for first, last in self.lost:
            out |= (times >= first - margin) & (times <= last + margin)
        return out

    def summary(self) -> str:
        rms = float(np.sqrt(np.nanmean(self.residual**2))) if np.isfinite(self.residual).any() else float("nan")
        lines = [f"{len(self.pose)} poses, markers {1e3 * rms:.2g} mm rms from their places on the body"]
        lines += [f"lost from {a:.3f} s to {b:.3f} s" for a, b in self.lost]
        return "\n".join(lines)


@checked
def fit_markers(
    t: ArrayLike,
    measured: ArrayLike,
    places: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    max_gap: float = 0.05,
    body: str = "base",
) -> MarkerFit:
    """The pose of a body from `measured` (N, M, 3) positions of its M markers in the world, NaN where one is not seen.

    `places` (M, 3): where the markers sit in the body's frame, or :func:`marker_cluster` of a sample. `max_gap` s: how long a pose
    may be bridged and still be used.
    """
    times, seen, at = as_array(t, "fit_markers, t", (None,)), as_array(measured, "measured"), as_array(places, "places")
    _check(times, seen, at, names, body)
    here = np.asarray(np.isfinite(seen).all(axis=2))
    R, p, residual = np.full((len(times), 3, 3), np.nan), np.full((len(times), 3), np.nan), np.full(len(times), np.nan)
    # Samples that see the same markers are fitted together.
    codes, which = np.unique(here, axis=0, return_inverse=True)
    for k, code in enumerate(codes):
        if fixes_a_pose(at[code]):
            samples = np.flatnonzero(which.ravel() == k)
            R[samples], p[samples], residual[samples] = _kabsch(at[code], seen[samples][:, code])
    known = np.isfinite(residual)
    if known.sum() < 4:
        expected = "three that are not on a line, in at least 4 samples"
        found = f"{int(known.sum())} such samples of {len(times)}"
        raise DataError(
            "its markers are hardly ever seen together.", where=f"markers of '{body}'", expected=expected, found=found
        )
    lost = _spans(times, known, max_gap)
    pose, valid = _bridged(times, R, p, known), np.ones(len(times), dtype=bool)
    for first, last in lost:
        valid &= ~((times >= first) & (times <= last))
    if lost:
        listed = "; ".join(f"{a:.3f} s to {b:.3f} s" for a, b in lost[:5]) + ("; …" if len(lost) > 5 else "")
        rarely = _rarely(here, known, names)
        what = f"fewer than three markers were seen for more than {max_gap:g} s, {len(lost)} time(s)."
        found = listed + (f"; not seen then: {rarely}" if rarely else "")
        hint = "The pose there is interpolated; leave these samples out with Sampling(drop=…) and MarkerFit.unusable."
        warn(DataWarning, Fault(what, f"markers of '{body}'", found=found, hint=hint))
    return MarkerFit(pose, valid, residual, here.sum(axis=1), tuple(lost))


@checked
def marker_cluster(measured: ArrayLike) -> Array:
    """Places (M, 3) of markers in a frame of their own, from positions (N, M, 3): the mean shape about its centroid.

    The frame is unturned at the first whole sample. Where nobody knows how markers sit on a body, the frame so made is as good as any
    other fixed to it.
    """
    seen = as_array(measured, "marker_cluster, measured", (None, None, 3))
    whole = np.flatnonzero(np.isfinite(seen).all(axis=(1, 2)))
    if not len(whole):
        raise DataError("there is no sample in which every marker is seen.", where="markers")
    shape = seen[whole[0]] - seen[whole[0]].mean(axis=0)
    for _ in range(5):  # each sample turned back onto the mean, and the mean again
        R, p, _ = _kabsch(shape, seen[whole])
        shape = np.einsum("nji,nmj->nmi", R, seen[whole] - p[:, None]).mean(axis=0)
        shape = shape - shape.mean(axis=0)
    return shape


def fixes_a_pose(places: Array) -> bool:
    """Whether markers at these places are three or more and not on a line."""
    if len(places) < 3:
        return False
    size = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)
    return bool(size[1] > COLLINEAR_RATIO * size[0])


def _kabsch(places: Array, measured: Array) -> tuple[Array, Array, Array]:
    """R (N, 3, 3), p (N, 3) and rms residual (N,) of one cluster in many samples."""
    a, m = places.mean(axis=0), measured.mean(axis=1)
    A, M = places - a, measured - m[:, None]
    R = nearest_rotations(np.einsum("nmi,mj->nij", M, A))
    off = M - np.einsum("nij,mj->nmi", R, A)
    return R, m - R @ a, np.sqrt((off**2).sum(axis=2).mean(axis=1))


def _bridged(t: Array, R: Array, p: Array, known: Mask) -> Pose:
    if not known.all():
        table = np.concatenate([R.reshape(-1, 9), p], axis=1)
        inside = np.clip(t, t[known][0], t[known][-1])  # at the ends the last pose seen stays
        filled = CubicSpline(t[known], table[known])(inside)
        table[~known] = filled[~known]
        R, p = nearest_rotations(table[:, :9].reshape(-1, 3, 3)), table[:, 9:]
    return Pose(t, R, p)


def _spans(t: Array, known: Mask, max_gap: float) -> list[tuple[float, float]]:
    """Times from the first to the last sample without a pose, where that is longer than the gap allowed, or at an end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], known, [True]]).astype(int)))
    out = []
    for first, after in zip(edges[::2], edges[1::2], strict=True):
        before, behind = max(first - 1, 0), min(after, len(t) - 1)
        if t[behind] - t[before] > max_gap or first == 0 or after == len(t):
            out.append((float(t[first]), float(t[after - 1])))
    return out


def _rarely(here: Mask, known: Mask, names: Sequence[str] | None) -> str:
    if names is None:
        return ""
    return ", ".join(n for n, gone in zip(names, (~here[~known]).mean(axis=0) > 0.5, strict=True) if gone)


def _check(t: Array, measured: Array, places: Array, names: Sequence[str] | None, body: str) -> None:
    faults, where = Faults(), f"markers of '{body}'"
    if places.ndim != 2 or places.shape[1] != 3:
        faults.add("their places are not points.", where=where, expected="(M, 3)", found=f"{places.shape}")
    elif measured.shape != (len(t), len(places), 3):
        what = "positions, clock and places do not belong together."
        faults.add(what, where=where, expected=f"({len(t)}, {len(places)}, 3)", found=f"{measured.shape}")
    elif not fixes_a_pose(places):
        faults.add("they do not fix a pose.", where=where, expected="three or more that are not on a line")
    elif not np.isfinite(places).all():
        faults.add("their places hold NaN or infinite values.", where=where)
    if names is not None and len(names) != len(places):
        faults.add("not every marker has a name.", where=where, expected=f"{len(places)}", found=f"{len(names)}")
    faults.raise_if_any(DataError)


@checked
def course_over_ground(
    x: Channel, y: Channel, name: str = "course", *, above: float, sigma: float | None = None
) -> tuple[Channel, ...]:
    """Channels `name` (rad, −π to π, from x towards y) and `name.available` (1 from the speed `above` on, 0 below).

    Parameters
    ----------
    x, y : components of the velocity in a plane (m/s), on one clock: east and north for a course from east.
    above : m/s; several times the noise of the velocity.
    sigma : noise of each component (m/s); with it there is also `name.sigma`, σ/v, at most π/√3, that of no direction at all.

    Returns
    -------
    channels : ``log.replacing(*channels)`` puts them into a log, where an observer takes availability and noise from them.

    Examples
    --------
    >>> import numpy as np
    >>> from veridyn.model import Channel
    >>> from veridyn.signals import course_over_ground
    >>> t = np.arange(3) * 0.02
    >>> east, north = Channel("v.x", t, np.array([0.01, 2.0, 0.0]), "m/s"), Channel("v.y", t, np.array([0.02, 2.0, -3.0]), "m/s")
    >>> course, available = course_over_ground(east, north, above=0.5)
    >>> np.round(course.values, 4).tolist(), available.values.tolist()
    ([1.1071, 0.7854, -1.5708], [0.0, 1.0, 1.0])
    """
    faults = Faults()
    for c in (x, y):
        if c.unit != "m/s":
            faults.add("it is no velocity.", where=f"channel '{c.name}'", expected="m/s", found=c.unit)
    if not np.array_equal(x.t, y.t):
        faults.add("it has another clock.", where=f"channel '{y.name}'", expected=f"the clock of '{x.name}'")
    if not above > 0.0:
        faults.add("there is no course at rest.", where="above", expected="a positive speed (m/s)", found=f"{above:g}")
    faults.raise_if_any(DataError)
    speed = np.hypot(x.values, y.values)
    available = np.where(speed >= above, 1.0, 0.0)  # not where it is not a number
    out = (Channel(name, x.t, np.arctan2(y.values, x.values), "rad"), Channel(f"{name}.available", x.t, available, "1"))
    if sigma is None:
        return out
    if not sigma > 0.0:
        raise DataError("it is no deviation.", where="sigma", expected="a positive number (m/s)", found=f"{sigma:g}")
    worst = np.pi / np.sqrt(3.0)
    with np.errstate(divide="ignore"):
        own = np.minimum(sigma / speed, worst)
    return (*out, Channel(f"{name}.sigma", x.t, np.where(np.isfinite(own), own, worst), "rad"))
