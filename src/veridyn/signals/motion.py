"""From a log to a motion: one clock, one low-pass, exact names and units, derivatives with a known gain.

Channels are found by name, for a tree with coordinate c, motor m and body b:

=========================== ================================================ ==================
channel                     meaning                                          unit
=========================== ================================================ ==================
q.c, or q_motor.m           position, or that of a motor (tree.transmission) rad | m
qd.c, qdd.c                 its rates, where measured                        rad/s … | m/s …
force.c, or force_motor.m   force on the coordinate, or of a motor           N*m | N
base.omega.x (y, z)         angular velocity of a free base, in its frame    rad/s
base.acceleration.x (y, z)  specific acceleration v̇ − g at its origin        m/s^2
base.omega_dot.x, .velocity where measured                                   rad/s^2, m/s
wrench.b.fx … mz            wrench acting on a body, all six components      N, N*m
signal.s                    anything else a gain multiplies                  any
=========================== ================================================ ==================

Sensors and drives of the machine's own record channels of their own names; :mod:`veridyn.signals.naming` says what they stand for.

Positions, rates and the base's motion pass the low-pass; forces, wrenches and signals do not: filtering both sides of the
equations alike is the business of the identification (parallel filtering).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from veridyn.arguments import checked_record
from veridyn.arrays import Array
from veridyn.errors import DataError, DataWarning, Fault, Faults, warn
from veridyn.model.check import MachineParts
from veridyn.model.elements.element import WRENCH_ROWS
from veridyn.model.experiment import Experiment
from veridyn.model.motion import BaseMotion, Motion, NoiseBands, Pose
from veridyn.signals.base_motion import NAMES, base_from_pose, nearest_rotations, pose_channels
from veridyn.signals.butterworth import Butterworth, as_rate, zero_phase
from veridyn.signals.conditioning import (
    DERIVATIVE_BANDS,
    HARMLESS_NOISE,
    Method,
    NoiseFloor,
    Trim,
    chosen_cutoff,
    derivative,
    noise_floor,
    trim_note,
    trimmed_ends,
    warn_if_biased,
)
from veridyn.signals.findings import Findings
from veridyn.signals.mend import REPAIRABLE, note, repaired
from veridyn.signals.mending import DEFAULT
from veridyn.signals.naming import AXES, Naming, with_sensor_channels
from veridyn.signals.resample import on_one_clock

SHOCKS = ("base.acceleration.", "wrench.", "signal.")  # quantities that impacts make spikes of


@checked_record
@dataclass(frozen=True, kw_only=True)
class Signals:
    """How a log becomes a motion.

    `rate` (Hz) of the common clock, by default that of the fastest uniform channel. `lowpass` (Hz) and `order` are those of one pass of
    the zero-phase Butterworth filter; "auto", the default, takes the cut-off from the spectrum of what is differentiated
    (:mod:`veridyn.signals.conditioning`) and filters only where noise would matter; None filters nothing. `derivative`: "compensated" or
    "central". `measured_rates` True takes q̇, q̈ and ω̇ as they are where they are measured; False, the default, differentiates positions.
    `trim` seconds are cut at both ends, after filtering; "auto", the default, cuts what the low-pass takes to settle off ends in motion,
    two periods of its cut-off at order 4, and nothing off ends at rest or without a low-pass (:mod:`veridyn.signals.conditioning`); 0 keeps
    every sample. `interpolation` brings
    channels to the common clock. `max_gap` (s) is the longest span without a sample that it may bridge, by default five steps of the
    channel. `inspection` "repair" reports what is found in the log and bridges spikes and short dropouts to zero from their neighbours,
    "report" bridges nothing, "off" is for logs that have been mended before. What is found and repaired is listed in the notes of the
    motion.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)
    >>> t = 0.01 * np.arange(500)
    >>> log = vd.Experiment.from_arrays(t, {"q.hinge": np.sin(t)}, {"q.hinge": "rad"})
    >>> how = vd.Signals(rate=50.0, lowpass=10.0, trim=1.0)
    >>> motion = vd.motion(pendulum, log, how)
    >>> float(motion.t[0].round(6)), float((motion.t[1] - motion.t[0]).round(6))
    (1.0, 0.02)
    """

    rate: float | None = None
    lowpass: float | Literal["auto"] | None = "auto"
    order: int = 4
    derivative: Method = "compensated"
    measured_rates: bool = False
    trim: Trim = "auto"
    interpolation: Literal["linear", "cubic", "pchip"] = "cubic"
    max_gap: float | None = None
    inspection: Literal["repair", "report", "off"] = "repair"

    def __post_init__(self) -> None:
        faults = Faults()
        if self.trim != "auto" and not (isinstance(self.trim, float | int | np.number) and 0.0 <= self.trim < np.inf):
            faults.add("it is no time.", where="trim", expected="seconds, 0 or more, or 'auto'", found=f"{self.trim!r}")
        if self.max_gap is not None and not self.max_gap > 0.0:
            faults.add("it is no time.", where="max_gap", expected="seconds above 0", found=f"{self.max_gap}")
        if self.inspection not in ("repair", "report", "off"):
            what = f"there is no inspection {self.inspection!r}."
            faults.add(what, where="inspection", expected="'repair', 'report' or 'off'")
        faults.raise_if_any(DataError, "signals")
        if isinstance(self.lowpass, str) and self.lowpass != "auto":
            what = f"there is no low-pass {self.lowpass!r}."
            raise DataError(what, where="signals.lowpass", expected="Hz, 'auto' or None", found=f"{self.lowpass!r}")
        if self.rate is not None:
            as_rate(self.rate, "signals.rate")
        _ = self.filter  # refuses a cutoff or an order that no filter has

    @property
    def filter(self) -> Butterworth | None:
        """The low-pass of the kinematic channels; None where there is none, or none is chosen yet."""
        return None if self.lowpass is None or self.lowpass == "auto" else Butterworth(self.lowpass, self.order)


def motion(
    tree: MachineParts,
    log: Experiment,
    signals: Signals | None = None,
    *,
    pose: Pose | None = None,
    positions: Collection[str] | None = None,
) -> Motion:
    """The motion of `tree` that `log` recorded. Names, units and clocks are checked first, and all faults come at once.

    q̇ is measured or the derivative of q; q̈ is measured, else the derivative of a measured q̇, else the second derivative of q. A
    coordinate without a force channel has NaN in its column of ``motion.forces``. With a `pose` of a free base, in a world whose
    gravity is the tree's, its motion comes from that and not from channels base.…: the pose passes the low-pass too. A DataWarning
    names what the inspection of the log found (:mod:`veridyn.signals.quality`), channels that look meant for this machine and are not
    used, and differences that bias the band kept; the notes of the motion list what was found and repaired. `positions`: the
    coordinates whose positions are measured, where not all are; the others have zeros, for whoever knows more
    (:func:`veridyn.identify.logged.motion` closes loops).
    """
    return prepare(tree, with_sensor_channels(tree, log), signals, pose=pose, positions=positions).motion()


def prepare(
    tree: MachineParts,
    log: Experiment,
    signals: Signals | None = None,
    *,
    pose: Pose | None = None,
    positions: Collection[str] | None = None,
) -> PreparedLog:
    """What does not depend on the cut-off, once: :meth:`PreparedLog.at` then makes the motion at any of them.

    Channels of the machine's own sensors are not looked for (:func:`~veridyn.signals.naming.with_sensor_channels`).
    """
    how = signals or Signals()
    if pose is not None and tree.base != "free":
        what = "a pose of the base says nothing about a machine whose base is fixed."
        raise DataError(what, where=f"pose of '{tree.name}'")
    naming = Naming(tree, log, how.measured_rates, pose is not None, positions)
    found = naming.check(gaps=how.max_gap is None, whole=how.inspection != "off")
    used, notes = naming.experiment, None
    if how.inspection != "off":
        drives = {f"signal.{e.signal}" for e in tree.elements if e.kind == "drive_gain"} & set(used.names)
        acts = any(used[name].values.any() for name in drives)  # else no drive does anything, as may be
        used, notes = _repaired(used, found, how, drives if acts else set())
    used = used if pose is None else used.replacing(*pose_channels(pose))
    on_clock, rate = on_one_clock(used, how.rate, how.interpolation, how.max_gap)
    return PreparedLog(tree=tree, how=how, naming=naming, log=on_clock, rate=rate, notes=notes)


def _repaired(
    log: Experiment, found: Findings, how: Signals, drives: AbstractSet[str]
) -> tuple[Experiment, tuple[str, ...]]:
    """The log with spikes and dropouts bridged, and what was found, in words; each finding that biases what follows is a DataWarning.

    `drives`: channels of currents that stand for forces.
    """
    notes, channels = [], []
    constant = {finding.channel for finding in found.of("constant")}
    for finding in found:
        # A joint may be at rest where its force is too; a force that never changes was not measured. A jittering clock is resampled.
        measured = finding.channel.startswith("force") or finding.channel in drives
        resting = finding.kind == "constant" and not measured
        force = finding.channel.replace("q", "force", 1) if finding.channel.startswith(("q.", "q_motor.")) else ""
        if resting and force in log and force not in constant:
            resting = False
        if finding.severity != "warning" or finding.kind in ("gap", "jitter") or resting:
            continue
        if finding.kind == "spike" and finding.channel.startswith(SHOCKS) and not measured:
            notes.append(f"found: {finding.count} spike(s) or impacts of channel '{finding.channel}', kept")
            continue
        fault = replace(finding.fault, where=f"{log.name}, {finding.fault.where}")
        if how.inspection == "repair" and finding.kind in REPAIRABLE:
            fault = replace(
                fault, hint="They are bridged from their neighbours; Signals(inspection='report') keeps them."
            )
            channels.append(finding.channel)
            notes.append(note(finding))
        else:
            notes.append(f"found: {finding.kind}, {finding.fault.where}: {finding.fault.what}")
        warn(DataWarning, fault)
    whole = [repaired(log.channels[name], DEFAULT.spike) for name in dict.fromkeys(channels)]
    return log.replacing(*whole) if whole else log, tuple(notes)


@dataclass(frozen=True, eq=False, kw_only=True)
class PreparedLog:
    """A log that is checked, repaired and on one uniform clock, and the motion that its channels are of."""

    tree: MachineParts
    how: Signals
    naming: Naming
    log: Experiment
    rate: float
    notes: tuple[str, ...] | None

    def at(self, lowpass: float | Literal["auto"] | None) -> PreparedLog:
        """The same with another cut-off (Hz); what was found of the channels is not looked for again."""
        other = replace(self, how=replace(self.how, lowpass=lowpass))
        vars(other).update({name: getattr(self, name) for name in ("q", "floors")})
        return other

    def motion(self, noise: bool = True) -> Motion:
        """The motion of all samples but those that are cut off the ends. `noise`: with that of accelerations, ``qdd_noise``, which takes
        spectra to know."""
        made = self._with_lowpass() if self.how.lowpass == "auto" else self
        made._warn()
        whole = made._whole(noise)
        low, high = trimmed_ends(whole, self.how.trim, made.how.filter, self.rate)
        if low + high >= len(whole):
            what = "nothing is left of it after trimming."
            expected = f"more than {(low + high) / self.rate:g} s"
            raise DataError(what, where=self.log.name, expected=expected, found=f"{len(whole) / self.rate:g} s")
        notes = self.notes
        if notes is not None and made.how.filter is not None:
            if self.how.lowpass == "auto":
                chosen = f"low-pass at {made.cutoff:g} Hz, chosen from the spectra of {', '.join(self.floors)}"
                notes = (*notes, chosen)
            if self.how.trim == "auto" and low + high:
                notes = (*notes, trim_note((low, high), made.how.filter, self.rate))
        passed = None if made.how.filter is None else (made.cutoff, made.how.order)
        return replace(whole[low : len(whole) - high], notes=notes, lowpass=passed)

    def _with_lowpass(self) -> PreparedLog:
        """With a cut-off in place of "auto": that of the spectra where noise would matter, None elsewhere."""
        lowpass = None
        if self._noisy():
            lowpass = chosen_cutoff([floor for _, floor in self.floors.values()], self.rate)
            if lowpass is None:
                fault = Fault(
                    "noise is a large share of the accelerations, and motion fills the same band, so that no low-pass is chosen.",
                    self.log.name,
                    hint="Give one, Signals(lowpass=…) in Hz, or identify by the method Instrumental(reference=…).",
                )
                warn(DataWarning, fault)
        return self.at(lowpass)

    @property
    def cutoff(self) -> float:
        """Hz; the rate where there is no low-pass."""
        return self.how.lowpass if isinstance(self.how.lowpass, float | int) else self.rate

    def _whole(self, noisy: bool) -> Motion:
        tree = self.tree
        t = next(iter(self.log.channels.values())).t
        forces = np.full((len(t), tree.n), np.nan)
        for k, c in enumerate(tree.coordinates):
            forces[:, k] = self._of(c, "force")
        q = self._smooth(self.q, "positions")
        wrenches = {b: self._stack(f"wrench.{b}.{r}" for r in WRENCH_ROWS) for b in self.naming.bodies}
        others = {n.removeprefix("signal."): self._values(n) for n in self.log if n.startswith("signal.")}
        measured = forces if np.isfinite(forces).any() else None
        return Motion(
            t,
            q,
            *self._rates(q),
            self._base(),
            measured,
            wrenches=wrenches,
            signals=others,
            noise_bands=self._noise_bands() if noisy and tree.n else None,
        )

    def _noise_bands(self) -> NoiseBands:
        """Of the noise of each coordinate's acceleration, zero where it is not known."""
        found = np.zeros((self.tree.n, DERIVATIVE_BANDS))
        for k, c in enumerate(self.tree.coordinates):
            for name in {f"q.{c}", f"qd.{c}"} & self.floors.keys():
                order, floor = self.floors[name]
                found[k] = floor.derivative_variances(order, self.how.derivative, self.how.filter)
        return NoiseBands(found, self.rate)

    @cached_property
    def floors(self) -> dict[str, tuple[int, NoiseFloor]]:
        """Quantity that is differentiated → how often to an acceleration, and its noise."""
        found: dict[str, tuple[int, NoiseFloor | None]] = {}
        for k, c in enumerate(self.tree.coordinates):
            if f"qdd.{c}" in self.log or not self._measured(c):
                continue
            if f"qd.{c}" in self.log:
                found[f"qd.{c}"] = 1, noise_floor(self._values(f"qd.{c}"), self.rate)
            else:
                found[f"q.{c}"] = 2, noise_floor(self.q[:, k], self.rate)
        if self.tree.base == "free":
            names = NAMES if self.naming.posed else [f"base.omega.{a}" for a in AXES]
            if self.naming.posed or "base.omega_dot.x" not in self.log:
                order = 2 if self.naming.posed else 1
                found |= {n: (order, noise_floor(self._values(n), self.rate)) for n in names}
        return {name: (order, floor) for name, (order, floor) in found.items() if floor is not None}

    def _noisy(self) -> bool:
        """Whether noise is more than `HARMLESS_NOISE` of a derivative, beside the largest of its kind."""
        kinds: dict[str, list[tuple[float, float]]] = {}
        own = dict(zip(self.tree.coordinates, self.tree.coordinate_kinds, strict=True))
        for name, (order, floor) in self.floors.items():
            prefix, _, c = name.partition(".")
            x = self.q[:, self.tree.coordinates.index(c)] if prefix == "q" else self._values(name)
            size = float(np.std(derivative(x, self.rate, order, self.how.derivative, name)))
            noise = floor.derivative_noise(order, self.how.derivative, None)
            kinds.setdefault(f"{prefix} {own.get(c, '')}", []).append((noise, size))
        return any(max(noise) > HARMLESS_NOISE * max(size) for noise, size in (zip(*group) for group in kinds.values()))

    @cached_property
    def q(self) -> Array:
        """(N, n) as measured, zero where nothing is."""
        q = np.zeros((len(next(iter(self.log.channels.values())).t), self.tree.n))
        for k, c in enumerate(self.tree.coordinates):
            if self._measured(c):
                q[:, k] = self._of(c, "q")
        return q

    def _warn(self) -> None:
        """Say so where differences bias the band that the low-pass leaves; without a low-pass all of it is left."""
        if self.how.derivative == "central" or self.how.lowpass is not None:
            band = min(self.cutoff, self.rate / 2.0)
            own = [c for c in self.tree.coordinates if self._measured(c)]
            twice = any(f"qd.{c}" not in self.log and f"qdd.{c}" not in self.log for c in own)
            warn_if_biased(band, self.rate, self.how.derivative, 2 if twice else 1, where=self.log.name)

    def _measured(self, c: str) -> bool:
        return self.naming.positions is None or c in self.naming.positions

    def _values(self, name: str) -> Array:
        return self.log.channels[name].values

    def _stack(self, names: Iterable[str]) -> Array:
        return np.column_stack([self._values(n) for n in names])

    def _smooth(self, x: Array, where: str) -> Array:
        low = self.how.filter
        return x if low is None or x.shape[1] == 0 else zero_phase(x, self.rate, low, where)

    def _of(self, c: str, quantity: str) -> Array | float:
        """A coordinate's own channel, or the one its motors make; NaN where there is neither."""
        if f"{quantity}.{c}" in self.log:
            return self._values(f"{quantity}.{c}")
        motors = self.naming.motors(c, quantity)
        if not motors or not all(name in self.log for name in motors):
            return np.nan
        return self._stack(motors) @ np.array(list(motors.values()))

    def _rates(self, q: Array) -> tuple[Array, Array]:
        if not self.tree.n:
            return q, q
        method = self.how.derivative
        qd, qdd = (derivative(q, self.rate, order, method, "positions") for order in (1, 2))
        for k, c in enumerate(self.tree.coordinates):
            speed, acceleration = f"qd.{c}", f"qdd.{c}"
            if speed in self.log:
                qd[:, k] = self._smooth(self._stack([speed]), speed)[:, 0]
                qdd[:, k] = derivative(qd[:, k], self.rate, 1, method, speed)
            if acceleration in self.log:
                qdd[:, k] = self._smooth(self._stack([acceleration]), acceleration)[:, 0]
        return qd, qdd

    def _base(self) -> BaseMotion | None:
        if self.tree.base != "free":
            return None
        if self.naming.posed:
            table = self._smooth(self._stack(NAMES), "pose")
            t = self.log.channels[NAMES[0]].t
            pose = Pose(t, nearest_rotations(table[:, :9].reshape(-1, 3, 3)), table[:, 9:])
            return base_from_pose(pose, self.tree.gravity, self.how.derivative)

        def three(name: str) -> Array | None:
            names = [f"base.{name}.{a}" for a in AXES]
            return self._smooth(self._stack(names), f"base.{name}") if all(n in self.log for n in names) else None

        omega, acceleration, turning = three("omega"), three("acceleration"), three("omega_dot")
        assert omega is not None and acceleration is not None  # missing ones have been refused
        if turning is None:
            turning = derivative(omega, self.rate, 1, self.how.derivative, "base.omega")
        return BaseMotion(omega, turning, acceleration, three("velocity"))
