"""A motion of a machine, sampled: coordinates and their rates, the base's motion, forces and wrenches.

A :class:`Pose` is where a body is in the world over time, as motion capture measures it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.argument_words import found_in
from veridyn.arguments import as_array, checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, Faults

ORTHOGONALITY_ERROR = 1e-6  # by how much RᵀR may differ from 1


@checked_record
@dataclass(frozen=True, eq=False)
class Pose:
    """N samples of a frame in the world: `t` (N,), `rotation` (N, 3, 3) from the frame to the world, `position` (N, 3) of its origin."""

    t: Array
    rotation: Array
    position: Array

    def __post_init__(self) -> None:
        for name in ("t", "rotation", "position"):
            object.__setattr__(
                self, name, as_array(getattr(self, name), f"pose.{name}", (None,) if name == "t" else None)
            )
        faults = Faults()
        N = len(self.t)
        for name, shape in (("t", (N,)), ("rotation", (N, 3, 3)), ("position", (N, 3))):
            value = getattr(self, name)
            if value.shape != shape:
                faults.add("wrong shape.", where=f"pose.{name}", expected=f"{shape}", found=f"{value.shape}")
            elif not np.isfinite(value).all():
                bad = int(np.argmin(np.isfinite(value).reshape(N, -1).all(axis=1)))
                faults.add("it holds NaN or infinite values.", where=f"pose.{name}", found=f"the first at sample {bad}")
        faults.raise_if_any(DataError)
        R = self.rotation
        off = np.abs(np.swapaxes(R, 1, 2) @ R - np.eye(3)).max(axis=(1, 2)) if N else np.zeros(0)
        if (off > ORTHOGONALITY_ERROR).any() or (np.linalg.det(R) < 0.0).any():
            first = int(np.argmax((off > ORTHOGONALITY_ERROR) | (np.linalg.det(R) < 0.0)))
            faults.add(
                "these matrices are no rotations.",
                where="pose.rotation",
                expected="RᵀR = 1 and det R = 1",
                found=f"|RᵀR − 1| = {off[first]:.2g}, det R = {np.linalg.det(R[first]):.6g} at sample {first}",
            )
        if N > 1 and not (np.diff(self.t) > 0.0).all():
            faults.add("the clock stands still or runs backwards.", where="pose.t")
        faults.raise_if_any(DataError)

    def __len__(self) -> int:
        return len(self.t)


Samples = slice | NDArray[np.intp] | NDArray[np.bool_]


@checked_record(arrays=False)
@dataclass(frozen=True, eq=False)
class BaseMotion:
    """How the base of a free tree moves: each (N, 3), in the base body's frame, at its origin.

    `acceleration` is the specific acceleration v̇ − g that an ideal accelerometer reads, so that no attitude is needed where none is
    measured. `velocity` is needed only where drag or tyres act; the pose in the ground's frame, `position` (N, 3) and `quaternion` (N, 4)
    as (w, x, y, z), only where tyres do.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> none = np.zeros((3, 3))
    >>> level = vd.BaseMotion(none, none, acceleration=none + [0.0, 0.0, 9.81])  # at rest an accelerometer reads −g
    >>> level.acceleration[0]
    array([0.  , 0.  , 9.81])
    """

    omega: Array
    omega_dot: Array
    acceleration: Array
    velocity: Array | None = None
    position: Array | None = field(default=None, kw_only=True)
    quaternion: Array | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None:
                object.__setattr__(self, f.name, as_array(value, f"base.{f.name}"))

    def __getitem__(self, samples: Samples) -> BaseMotion:
        parts = {f.name: getattr(self, f.name) for f in fields(self)}
        return BaseMotion(**{name: x[samples] for name, x in parts.items() if x is not None})


@dataclass(frozen=True, eq=False)
class NoiseBands:
    """The variance (n, bands) of noise in equal bands from 0 Hz to half of `rate` (Hz), at which the log was sampled."""

    variance: Array
    rate: float

    @property
    def ends(self) -> Array:
        """The upper ends (bands,) of the bands, Hz."""
        return band_ends(self.rate, self.variance.shape[-1])

    @property
    def deviation(self) -> Array:
        """The standard deviation (n,) of all of it."""
        return np.asarray(np.sqrt(self.variance.sum(axis=-1)), dtype=np.float64)


def band_ends(rate: float, count: int) -> Array:
    """The upper ends (count,) of equal bands from 0 Hz to half of a rate."""
    return np.linspace(0.0, rate / 2.0, count + 1)[1:]


@checked_record(arrays=False)
@dataclass(frozen=True, eq=False, repr=False)
class Motion:
    """N samples of a machine with n coordinates, in the tree's order of coordinates.

    `t` (N,), `q`, `qd`, `qdd` (N, n). `forces` (N, n): measured forces on the coordinates, NaN where there is no measurement.
    `wrenches`: name of a body → (N, 6), force then moment about that body's origin, in its frame, acting **on** the body.
    `signals`: other measured quantities by name, (N,), such as the currents that drive gains multiply.
    `notes`: what was found in its log and repaired; None where no log was inspected. `qdd_noise` (n,): standard deviation of the noise of
    `qdd` by the spectrum of the measured positions, where known; `noise_bands`: how it is spread over frequencies, from which it follows.
    `lowpass`: cut-off (Hz) and order of one pass of the zero-phase low-pass that its positions have passed; None where there was none.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)  # moves in the x-y plane, gravity along −y
    >>> t = 0.01 * np.arange(100)
    >>> q = np.sin(3.0 * t)[:, None]
    >>> swing = vd.Motion(t, q, 3.0 * np.cos(3.0 * t)[:, None], -9.0 * q)
    >>> torque = vd.inverse_dynamics(pendulum, swing)
    >>> bool(np.allclose(torque, 0.6 * swing.qdd + 9.81 * np.cos(swing.q)))
    True
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array
    base: BaseMotion | None = None
    forces: Array | None = None
    _: KW_ONLY
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    signals: Mapping[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] | None = None
    qdd_noise: Array | None = None
    noise_bands: NoiseBands | None = None
    lowpass: tuple[float, int] | None = None

    def __post_init__(self) -> None:
        if self.qdd_noise is None and self.noise_bands is not None:
            object.__setattr__(self, "qdd_noise", self.noise_bands.deviation)
        for name in ("t", "q", "qd", "qdd", "forces", "qdd_noise"):
            value = getattr(self, name)
            if value is not None or name in ("t", "q", "qd", "qdd"):
                object.__setattr__(self, name, as_array(value, f"motion.{name}"))
        for name in ("wrenches", "signals"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise DataError(
                    "it has no names.", where=f"motion.{name}", expected="a mapping of arrays", found=found_in(given)
                )
            values = {k: as_array(v, f"motion.{name}['{k}']") for k, v in given.items()}
            object.__setattr__(self, name, values)
        self._check()

    def _check(self) -> None:
        faults = Faults()
        if self.t.ndim != 1:
            faults.add("the clock is not a line of times.", where="motion.t", expected="(N,)", found=f"{self.t.shape}")
            faults.raise_if_any(DataError)
        N = len(self.t)
        n = self.q.shape[-1] if self.q.ndim == 2 else -1
        arrays: dict[str, tuple[Array | None, tuple[int, ...]]] = {
            name: (getattr(self, name), (N, n)) for name in ("q", "qd", "qdd", "forces")
        }
        if self.base is not None:
            for f in fields(BaseMotion):
                width = 4 if f.name == "quaternion" else 3
                arrays[f"base.{f.name}"] = (getattr(self.base, f.name), (N, width))
        arrays["qdd_noise"] = (self.qdd_noise, (n,))
        arrays |= {f"wrenches['{k}']": (v, (N, 6)) for k, v in self.wrenches.items()}
        arrays |= {f"signals['{k}']": (v, (N,)) for k, v in self.signals.items()}
        for name, (value, shape) in arrays.items():
            if value is None:
                continue
            if value.shape != shape:
                wanted = "(" + ", ".join("n" if s < 0 else str(s) for s in shape) + ")"
                faults.add("wrong shape.", where=f"motion.{name}", expected=wanted, found=f"{value.shape}")
            elif name != "forces" and not np.isfinite(value).all():
                first = int(np.argmin(np.isfinite(value).reshape(len(value), -1).all(axis=1)))
                faults.add(
                    "it holds NaN or infinite values.",
                    where=f"motion.{name}",
                    found=f"{int((~np.isfinite(value)).sum())} of {value.size}, the first at sample {first}",
                    hint="Cut these samples out, or fill them where the log is read.",
                )
        if not np.isfinite(self.t).all():
            faults.add("the clock holds NaN or infinite times.", where="motion.t")
        elif N > 1 and not (np.diff(self.t) > 0).all():
            first = int(np.argmax(np.diff(self.t) <= 0))
            faults.add(
                "the clock stands still or runs backwards.",
                where="motion.t",
                expected="increasing times",
                found=f"{self.t[first]:.6g} s then {self.t[first + 1]:.6g} s at sample {first + 1}",
            )
        faults.raise_if_any(DataError)

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        span = f"{self.t[0]:.6g} s to {self.t[-1]:.6g} s" if len(self) else "empty"
        more = ["a moving base"] if self.base is not None else []
        more += ["forces"] if self.forces is not None else []
        more += [f"wrenches on {', '.join(self.wrenches)}"] if self.wrenches else []
        more += [f"{len(self.signals)} signals"] if self.signals else []
        return f"Motion({len(self)} samples, {span}, {self.n} coordinates{''.join(f', {m}' for m in more)})"

    @property
    def n(self) -> int:
        """The number of coordinates."""
        return self.q.shape[1]

    def __getitem__(self, samples: Samples) -> Motion:
        """Some of the samples, as views where a slice allows."""
        parts: dict[str, Any] = {
            "t": self.t[samples],
            "q": self.q[samples],
            "qd": self.qd[samples],
            "qdd": self.qdd[samples],
            "base": None if self.base is None else self.base[samples],
            "forces": None if self.forces is None else self.forces[samples],
            "wrenches": {k: v[samples] for k, v in self.wrenches.items()},
            "signals": {k: v[samples] for k, v in self.signals.items()},
        }
        if not isinstance(samples, slice) or (samples.step or 1) < 0:
            return replace(self, **parts)
        made = object.__new__(type(self))  # a part of what has been checked, in its order, needs no second look
        for f in fields(self):
            object.__setattr__(made, f.name, parts.get(f.name, getattr(self, f.name)))
        return made


class Reference(Protocol):
    """A motion to follow: q, q̇ and q̈ at times of any shape (…,), each (…, n)."""

    def at(self, t: ArrayLike, /) -> tuple[Array, Array, Array]: ...


def joined(motions: Sequence[Motion]) -> Motion:
    """Motions of one machine one after the other, each beginning a median step after the end of the one before.

    What not all of them have (a base, forces, a wrench, a signal, notes) is left out. For looking at: a filter must not run over the seams.
    """
    if len(motions) == 1:
        return motions[0]
    t = joined_clock([m.t for m in motions])
    q, qd, qdd = (np.concatenate([getattr(m, name) for m in motions]) for name in ("q", "qd", "qdd"))
    forces = [m.forces for m in motions if m.forces is not None]
    shared = {name: set.intersection(*(set(getattr(m, name)) for m in motions)) for name in ("wrenches", "signals")}
    bases = [m.base for m in motions if m.base is not None]
    base = None
    if len(bases) == len(motions):
        parts = {f.name: [getattr(b, f.name) for b in bases] for f in fields(BaseMotion)}
        base = BaseMotion(**{k: np.concatenate(v) for k, v in parts.items() if all(x is not None for x in v)})
    notes = [m.notes for m in motions if m.notes is not None]
    noise = [m.qdd_noise for m in motions if m.qdd_noise is not None]
    passed = {m.lowpass for m in motions}
    return Motion(
        t,
        q,
        qd,
        qdd,
        base,
        np.concatenate(forces) if len(forces) == len(motions) else None,
        wrenches={k: np.concatenate([m.wrenches[k] for m in motions]) for k in sorted(shared["wrenches"])},
        signals={k: np.concatenate([m.signals[k] for m in motions]) for k in sorted(shared["signals"])},
        notes=tuple(dict.fromkeys(n for part in notes for n in part)) if len(notes) == len(motions) else None,
        qdd_noise=np.max(noise, axis=0) if len(noise) == len(motions) else None,
        lowpass=passed.pop() if len(passed) == 1 else None,
    )


def joined_clock(clocks: Sequence[Array]) -> Array:
    """Clocks one after the other, the first as it is."""
    out = [clocks[0]]
    for t in clocks[1:]:
        step = float(np.median(np.diff(t))) if len(t) > 1 else 1.0
        out.append(t - t[0] + out[-1][-1] + step)
    return np.concatenate(out)
