"""Stiffness of flexible joints from motor and link encoders, with the delay between them.

The motor's equation gives the torque through the joint, and both encoders its deflection:

    Γ − J θ̈ − f_c z − f_v θ̇ = K (θ − q) + D (θ̇ − q̇)
    θ(t) − q(t − d) = (θ − q)(t − d) + d θ̇ − d²/2 θ̈ + d³/6 θ⃛ + zero        what the encoders show; the link's is late by d

Most of what looks like deflection may be d θ̇, which viscous friction, f_v θ̇/K, resembles: priors on friction separate them. The encoders of
all joints are read by one device as a rule, so that each joint's delay helps the others'. Dry friction builds up over a distance δ,
dz/dθ = (1 − sign(θ̇) z)/δ (Dahl), and keeps its value at standstill; that with which a log begins is unknown, as is the zero of
its encoders. Where friction holds within less than an encoder resolves, it is anything between ±f_c: samples slower than a share of the
largest speed are predicted, and not fitted. A stiffness is positive, and its prior is one of its logarithm. Where the model states a
backlash or a hysteresis, that is estimated beside it, or found to be none (:mod:`~veridyn.identify.flexible.play`, `.hysteresis`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean, part_at
from veridyn.identify.flexible.hysteresis import estimate_with_hysteresis, inner_deflection, with_hysteresis
from veridyn.identify.flexible.joint_equations import (
    QUANTITIES,
    InnerFriction,
    deflection,
    joint_prior,
    most_likely_joint,
    torque_through,
)
from veridyn.identify.flexible.play import estimate_with_gap, with_backlash
from veridyn.identify.flexible.posterior import ColouredPosterior, pooled, with_measurement
from veridyn.identify.flexible.recording import (
    JointRecording,
    JointSamples,
    joint_recording,
    largest_speed,
    samples_of,
)
from veridyn.identify.flexible.ripple import Ripple, find_ripple
from veridyn.identify.statistics.agreement import DETERMINED_INFORMATION, DETERMINED_SHARE, FALSE_ALARM_RATE
from veridyn.model.experiment import Experiment
from veridyn.model.flexible import flexible_joints
from veridyn.model.machine import Machine
from veridyn.settings import Settings, above


@dataclass(frozen=True, repr=False, kw_only=True)
class FlexibleSettings(Settings):
    """How flexible joints are identified from two encoders.

    Parameters
    ----------
    band : Hz, the low-pass of the equations; by default five times the frequency below which 99.9 % of the speed's power lies.
    lowpass : Hz, that of deflections which are predicted and compared.
    spread : prior standard deviation of log K where the machine gives none; 0.7 is a factor of two.
    delay : s, prior standard deviation of the delay between the encoders.
    relaxation : s, prior standard deviation of D/K.
    dead_zone : share of the largest speed below which a joint counts as standing still; such samples are predicted and not fitted.
    common_delay : whether the encoders of all joints have one delay.
    """

    band: Annotated[float, above(0.0)] | None = None
    lowpass: Annotated[float, above(0.0)] = 15.0
    spread: Annotated[float, above(0.0)] = 0.7
    delay: Annotated[float, above(0.0)] = 0.01
    relaxation: Annotated[float, above(0.0)] = 0.01
    dead_zone: Annotated[float, above(0.0)] = 0.05
    common_delay: bool = True


@dataclass(frozen=True, kw_only=True)
class JointQuantity:
    """One estimate of a joint beside its prior; `determined` where its deviation is at most half the prior's."""

    name: str
    unit: str
    value: float
    sigma: float
    prior: float
    prior_sigma: float
    determined: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class FlexibleJointFit:
    """What two encoders show of one joint.

    `estimate` is of log K, f_c, f_v, d, D/K and of each log the zero and the start of z; `own_delay` and its deviation are
    without the other joints. `dead_zone`: rad/s or m/s. `presliding`: the most
    likely δ, rad or m. `gap`: the prior deviation of a backlash, which is the last of the estimate; 0 where there is none. `odds`: the
    logarithm of how many times likelier the logs are with a backlash than without, NaN where the model states none. `ripple`: the wave
    along the way that the encoders show beside the equations, None where there is none. `inner`: the prior of a hysteresis, the
    deviation of its force and the distance over which it builds up; its force and the logarithm of that distance are then in the
    estimate at `inner_at`. `inner_odds`: as `odds`, for the hysteresis.
    """

    joint: str
    turning: bool
    inertia: float
    mean: Array
    sigma: Array
    estimate: ColouredPosterior
    settings: FlexibleSettings
    dead_zone: float
    presliding: float
    own_delay: tuple[float, float]
    gap: float = 0.0
    odds: float = np.nan
    ripple: Ripple | None = None
    inner: tuple[float, float] | None = None
    inner_at: int = 0
    inner_odds: float = np.nan

    @cached_property
    def quantities(self) -> Mapping[str, JointQuantity]:
        """Stiffness, dry and viscous friction, delay and damping by name."""
        p, s = self.estimate.values, self.estimate.sigma
        K, prior = float(np.exp(p[0])), float(np.exp(self.mean[0]))
        torque, angle = ("N*m", "rad") if self.turning else ("N", "m")
        rows = (
            ("stiffness", f"{torque}/{angle}", K, K * s[0], prior, prior * self.sigma[0], 0),
            ("coulomb", torque, p[1], s[1], self.mean[1], self.sigma[1], 1),
            ("viscous", f"{torque}*s/{angle}", p[2], s[2], self.mean[2], self.sigma[2], 2),
            ("delay", "s", p[3], s[3], 0.0, self.settings.delay, 3),
            ("damping", f"{torque}*s/{angle}", K * p[4], K * s[4], prior * self.mean[4], prior * self.sigma[4], 4),
        )
        found = {}
        for name, unit, value, sigma, mean, wide, k in rows:
            ratio = s[k] / (self.settings.delay if name == "delay" else self.sigma[k])
            found[name] = JointQuantity(
                name=name,
                unit=unit,
                value=float(value),
                sigma=float(sigma),
                prior=float(mean),
                prior_sigma=float(wide),
                determined=bool(ratio <= DETERMINED_SHARE),
            )
        others = [("backlash", angle, float(p[-1]), float(s[-1]), 0.0, self.gap)] if self.gap > 0.0 else []
        if self.inner is not None:
            (force, way), at = self.inner, self.inner_at
            over, wide = float(np.exp(p[at + 1])), way * self.settings.spread
            others.append(("hysteresis", torque, float(p[at]), float(s[at]), 0.0, force))
            others.append(("hysteresis_deflection", angle, over, over * float(s[at + 1]), way, wide))
        for name, unit, value, sigma, prior, wide in others:
            ratio = sigma / (value * self.settings.spread if name == "hysteresis_deflection" else wide)
            found[name] = JointQuantity(
                name=name,
                unit=unit,
                value=value,
                sigma=sigma,
                prior=prior,
                prior_sigma=wide,
                determined=bool(ratio <= DETERMINED_SHARE),
            )
        return found

    @property
    def stiffness(self) -> JointQuantity:
        return self.quantities["stiffness"]

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of what the logs do not determine."""
        return tuple(name for name, x in self.quantities.items() if not x.determined)

    @property
    def torque_factor(self) -> float:
        """How many times larger the torque through the joint must vary, at the same speeds, for its stiffness to be determined."""
        wide, s = self.sigma[0], self.estimate.sigma[0]
        data = 1.0 / np.sqrt(max(1.0 / s**2 - 1.0 / wide**2, 1e-12 / wide**2))
        return float(max(1.0, data * np.sqrt(DETERMINED_INFORMATION) / wide))

    def predict(self, log: Experiment | JointRecording) -> tuple[JointSamples, Array]:
        """Samples of another log, low-passed to ``settings.lowpass``, and their predicted deflection.

        The zero of the log's encoders, the share of dry friction with which it begins and the phase of a ripple are unknown, and those
        that fit it best.
        """
        r = log if isinstance(log, JointRecording) else joint_recording(log, self.joint)
        samples = samples_of(r, self.inertia, min(self.settings.lowpass, 0.4 * r.rate), step=1)
        rubs, p = samples.dry_friction(self.presliding), self.estimate.values
        base = deflection(p, samples, rubs)
        if self.gap > 0.0:
            base = base + 0.5 * p[-1] * np.sign(torque_through(p, samples, rubs))
        if self.inner is not None:
            base = base + self._given(samples, rubs)
        start = deflection(p, samples, rubs, 1.0) - deflection(p, samples, rubs)
        y, centred = samples.deflection - base, start - np.mean(start)
        power = float(centred @ centred)

        def begun(y: Array) -> Array:
            share = float(np.clip(centred @ y / power, -1.0, 1.0)) if power > 0.0 else 0.0
            return share * centred + np.mean(y)

        if self.ripple is None:
            return samples, base + begun(y)
        wave = self.ripple.fitted(samples, y - begun(y), self.settings.band or r.band)
        return samples, base + wave + begun(y - wave)

    def _given(self, samples: JointSamples, rubs: Array) -> Array:
        """What a hysteresis changes in the deflection of consecutive samples, late by the delay."""
        p, at = self.estimate.values, self.inner_at
        elastic = torque_through(p, samples, rubs) * float(np.exp(-p[0]))
        change = inner_deflection(elastic, float(p[at] * np.exp(-p[0])), float(np.exp(p[at + 1]))) - elastic
        t = samples.t
        return np.interp(t - float(p[3]), t, change)

    def std_percent(self, log: Experiment | JointRecording, *, moving: bool = False) -> float:
        """Error of the predicted deflection over the standard deviation of the measured one, %; `moving`: without standstill."""
        samples, predicted = self.predict(log)
        own = np.abs(samples.speed) > (self.dead_zone if moving else -1.0)
        y, error = samples.deflection[own], (samples.deflection - predicted)[own]
        return 100.0 * float(np.std(error)) / float(np.std(y))


@dataclass(frozen=True, eq=False)
class FlexibleFit:
    """What :func:`identify_flexible` finds: joints by name, and the delay of the link encoders (s) with its standard deviation.

    `delay_chance`: the probability that the joints' own delays are so far apart; below FALSE_ALARM_RATE they are kept.
    """

    described: Machine
    joints: Mapping[str, FlexibleJointFit]
    delay: float
    delay_sigma: float
    delay_chance: float = 1.0

    def machine(self) -> Machine:
        """The machine with the stiffness and damping of these joints where they are determined, and a damping that is not negative."""
        new, machine = {}, self.described
        for c, fit in self.joints.items():
            gap = fit.quantities.get("backlash")
            if not np.isnan(fit.odds) and (gap is None or gap.determined):
                machine = with_backlash(machine, c, 0.0 if gap is None else gap.value)
            if not np.isnan(fit.inner_odds) and not {"hysteresis", "hysteresis_deflection"} & {*fit.undetermined}:
                inner = (
                    [fit.quantities[n].value for n in ("hysteresis", "hysteresis_deflection")]
                    if fit.inner
                    else [0.0, 0.0]
                )
                machine = with_hysteresis(machine, c, *inner)
            for name in ("stiffness", "damping"):
                x = fit.quantities[name]
                new |= {f"{name}_{c}": x.value} if x.determined and x.value >= 0.0 else {}
        return machine.with_parameters(new) if new else machine

    def notes(self) -> list[str]:
        """Sentences about what is not determined, and the motion that would determine it."""
        out = []
        if self.delay_chance < FALSE_ALARM_RATE:
            out.append(
                f"The delays of the joints' encoders, so far apart by chance in {self.delay_chance:.1g} of logs, are kept apart. Viscous "
                "friction f looks like a delay of −f/K: state it on the motor side, or look for encoders on other clocks."
            )
        for c, fit in self.joints.items():
            x = fit.stiffness
            if not x.determined:
                out.append(
                    f"The stiffness of {c} is not determined: its deviation is {100.0 * fit.estimate.sigma[0] / fit.sigma[0]:.0f} % "
                    f"of the prior's. Let the torque through the joint vary {fit.torque_factor:.2g} times as much at the same speeds: "
                    "accelerate harder, carry a load farther out, or press against a stop with the motor while the link stands."
                )
            if "backlash" in fit.undetermined:
                out.append(f"The backlash of {c} is not determined. Load the joint both ways.")
            if fit.gap == 0.0 and not np.isnan(fit.odds):
                out.append(f"{c} shows no backlash: the logs are {np.exp(-fit.odds):.2g} times as likely without.")
            if {"hysteresis", "hysteresis_deflection"} & {*fit.undetermined}:
                out.append(
                    f"The hysteresis of {c} is not determined. Load the joint to and fro, far beyond where its loop is full."
                )
            if fit.inner is None and not np.isnan(fit.inner_odds):
                out.append(
                    f"{c} shows no hysteresis: the logs are {np.exp(-fit.inner_odds):.2g} times as likely without."
                )
        return out

    def summary(self) -> str:
        """The estimates in a table, and what is not determined."""
        lines = [f"delay of the link encoders: {1e3 * self.delay:.3f} ± {1e3 * self.delay_sigma:.3f} ms"]
        if len(self.joints) > 1:
            each = [f"{c} {1e3 * f.own_delay[0]:.3f} ± {1e3 * f.own_delay[1]:.3f}" for c, f in self.joints.items()]
            lines.append(f"by themselves: {', '.join(each)}; so far apart by chance in {self.delay_chance:.2g} of logs")
        head = f"{'joint':<12}{'quantity':<12}{'value':>12}{'± σ':>12}{'prior':>12}{'± σ':>12}  unit"
        lines.append(head)
        for c, fit in self.joints.items():
            for x in fit.quantities.values():
                value = f"{x.value:>12.5g}{x.sigma:>12.2g}" if x.determined else f"{'undetermined':>24}"
                lines.append(f"{c:<12}{x.name:<12}{value}{x.prior:>12.4g}{x.prior_sigma:>12.2g}  {x.unit}")
            if fit.ripple is not None:
                lines.append(
                    f"{c:<12}ripple of {fit.ripple.amplitude:.2g}, which repeats every {2.0 * np.pi / fit.ripple.wave:.4g} of its way"
                )
        return "\n".join([*lines, *self.notes()])


@checked
def identify_flexible(
    machine: Machine,
    logs: Experiment | Sequence[Experiment],
    *,
    joints: Sequence[str] = (),
    settings: FlexibleSettings | None = None,
) -> FlexibleFit:
    """Stiffness of flexible joints from encoders at the motor and at the link, with the delay between the two.

    Parameters
    ----------
    machine : Machine
        With flexible joints (``flexible: {stiffness, damping, inertia}``) whose rotor inertias are known. Priors: the stiffness, and
        what it knows of that (``parameters: {sigma: …}``); so of friction, by elements of kind coulomb and damper on ``NAME_motor``. A
        ``backlash`` that it states, the order of magnitude of the gap, is the prior deviation of one that is estimated; so is a
        ``hysteresis``, whose ``hysteresis_deflection`` is known as well as a stiffness of which nothing is stated (`spread`).
    logs : Experiment or sequence of Experiment
        Channels ``q.NAME`` (link), ``q.NAME_motor`` and ``force.NAME_motor`` (motor, in the units of the joint). Zeros of the encoders may
        differ from log to log.
    joints : sequence of str
        Coordinates of their link sides; all flexible joints by default.
    settings : FlexibleSettings, optional

    Returns
    -------
    FlexibleFit
        Estimates with standard deviations under autocorrelated residuals, and which of them the logs determine.

    Examples
    --------
    >>> import numpy as np, veridyn as vd
    >>> bar = vd.Link(name="bar", inertia=[0.01, 0, 0, 0.3, 0, 0.3, 0.6, 0, 0, 2.0])
    >>> arm = vd.Machine.build([bar], [vd.Joint(name="hip", a="ground", b="bar", actuated=True)])
    >>> arm = vd.model.with_flexible_joints(arm, {"hip": vd.model.Flexible(stiffness=600.0, inertia=0.2)})
    >>> t = np.arange(0, 8, 0.002)
    >>> q = 0.4 * np.sin(3 * t) + 0.1 * np.sin(11 * t)                 # m = 0.3 kg m² without gravity, K = 500 N m/rad
    >>> qdd = -9 * 0.4 * np.sin(3 * t) - 121 * 0.1 * np.sin(11 * t)
    >>> theta, thetadd = q + 0.3 * qdd / 500, qdd + 0.3 / 500 * (81 * 0.4 * np.sin(3 * t) + 14641 * 0.1 * np.sin(11 * t))
    >>> values = {"q.hip": q, "q.hip_motor": theta, "force.hip_motor": 0.2 * thetadd + 0.3 * qdd}
    >>> log = vd.Experiment.from_arrays(t, values, {"q.hip": "rad", "q.hip_motor": "rad", "force.hip_motor": "N*m"})
    >>> fit = vd.estimators.identify_flexible(arm, log)
    >>> bool(abs(fit.joints["hip"].stiffness.value - 500) < 5)
    True
    """
    own = settings or FlexibleSettings()
    known, wanted = flexible_joints(machine), list(joints)
    for c in wanted:
        if c not in known:
            hint = did_you_mean(c, [*known])
            raise DataError("it is no flexible joint of this machine.", where=part_at("joint", c), hint=hint)
    if not known:
        hint = "Add flexible: {stiffness: …, inertia: …} to its joints."
        raise DataError("it has no flexible joint.", where=machine.name, hint=hint)
    for c in wanted or known:
        if known[c].backlash != 0.0 and known[c].hysteresis != 0.0:
            what = "its backlash and its hysteresis are not identified together."
            raise DataError(
                what,
                where=part_at("joint", c),
                hint="State the one that is larger: what the other does is then part of it.",
            )
    data = [logs] if isinstance(logs, Experiment) else list(logs)
    chosen = {c: [joint_recording(log, c) for log in data] for c in wanted or known}
    fits = {c: _fitted(machine, c, recordings, own) for c, recordings in chosen.items()}
    values, sigmas = np.array([fit.own_delay for fit in fits.values()]).T
    delay, delay_sigma, chance = pooled(values, sigmas)
    if own.common_delay and len(fits) > 1 and chance >= FALSE_ALARM_RATE:
        for k, (c, fit) in enumerate(fits.items()):
            mean, sigma, _ = pooled(np.delete(values, k), np.delete(sigmas, k))
            fits[c] = replace(fit, estimate=with_measurement(fit.estimate, 3, mean, sigma))
    fits = {c: replace(fit, ripple=_ripple(fit, chosen[c])) for c, fit in fits.items()}
    return FlexibleFit(machine, fits, delay, delay_sigma, chance)


def _ripple(fit: FlexibleJointFit, recordings: Sequence[JointRecording]) -> Ripple | None:
    """What of a wave along the way is in the errors of the predicted deflections of a fit."""
    s, made = fit.settings, [fit.predict(r) for r in recordings]
    left = [samples.deflection - predicted for samples, predicted in made]
    band = max(s.band or r.band for r in recordings)
    lowpass = min(s.lowpass, *(0.4 * r.rate for r in recordings))
    return find_ripple([samples for samples, _ in made], left, band, lowpass, fit.dead_zone)


def _fitted(
    machine: Machine, joint: str, recordings: Sequence[JointRecording], s: FlexibleSettings
) -> FlexibleJointFit:
    """One joint by itself."""
    flexible = flexible_joints(machine)[joint]
    if not np.isfinite(flexible.inertia):
        hint = f"Give flexible: {{inertia: …}}, the rotor's times the gear ratio squared, at '{joint}'."
        raise DataError("the inertia of its rotor is unknown.", where=part_at("joint", joint), hint=hint)
    turning = machine.kinds[joint] == "turning"
    zone = s.dead_zone * largest_speed(recordings)
    samples = [
        samples_of(r, flexible.inertia, s.band or r.band, dead_zone=zone, ahead=round(r.delay * r.rate))
        for r in recordings
    ]
    for r, one in zip(recordings, samples, strict=True):
        if len(one) < 2 * len(QUANTITIES):
            what = f"only {len(one)} independent samples are left in which it moves."
            raise DataError(
                what, where=part_at("joint", joint), hint="Record longer, or a faster motion.", source=r.log
            )
    mean, sigma = joint_prior(machine, joint, samples, s.spread, s.delay, s.relaxation)
    way = max(float(np.ptp(r.motor)) for r in recordings)
    found, distance = most_likely_joint(samples, mean, sigma, way)
    gap, odds = 0.0, np.nan
    if flexible.backlash > 0.0:
        bands = [s.band or r.band for r in recordings]
        wide, odds = estimate_with_gap(samples, found, distance, bands, mean, sigma, way, flexible.backlash)
        if np.isneginf(odds):
            what = "the torque through it hardly leaves zero, so that no backlash can be seen."
            hint = "Load the joint both ways, or leave the backlash out."
            raise DataError(what, where=part_at("joint", joint), hint=hint, source=recordings[0].log)
        seen = float(wide[0].sigma[-1]) <= DETERMINED_SHARE * flexible.backlash
        if not seen or (odds > 0.0 and wide[0].values[-1] > 0.0):
            (found, distance), gap = wide, flexible.backlash
    inner, inner_odds = None, np.nan
    if flexible.hysteresis > 0.0:
        inner = InnerFriction(samples, flexible.hysteresis, flexible.hysteresis_deflection, s.spread)
        bent, inner_odds = estimate_with_hysteresis(samples, found, distance, mean, sigma, way, inner)
        force = float(bent[0].values[len(QUANTITIES) + 2 * len(samples)])
        seen = float(bent[0].sigma[len(QUANTITIES) + 2 * len(samples)]) <= DETERMINED_SHARE * flexible.hysteresis
        if not seen or (inner_odds > 0.0 and force > 0.0):
            found, distance = bent
        else:
            inner = None
    own = (float(found.values[3]), float(found.sigma[3]))
    return FlexibleJointFit(
        joint=joint,
        turning=turning,
        inertia=flexible.inertia,
        mean=mean,
        sigma=sigma,
        estimate=found,
        settings=s,
        dead_zone=zone,
        presliding=distance,
        own_delay=own,
        gap=gap,
        odds=odds,
        inner=None if inner is None else (inner.force, inner.way),
        inner_at=len(QUANTITIES) + 2 * len(samples),
        inner_odds=inner_odds,
    )
