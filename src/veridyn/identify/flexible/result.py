"""How flexible joints are identified, and what is found: estimates beside their priors, what is not determined, and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, part_at
from veridyn.identify.flexible.hysteresis import inner_deflection, with_hysteresis
from veridyn.identify.flexible.joint_equations import deflection, torque_through
from veridyn.identify.flexible.play import with_backlash
from veridyn.identify.flexible.posterior import ColouredPosterior
from veridyn.identify.flexible.recording import JointRecording, JointSamples, joint_recording, samples_of
from veridyn.identify.flexible.ripple import Ripple
from veridyn.inference.agreement import FALSE_ALARM_RATE
from veridyn.inference.error_measures import Moments, RowReport
from veridyn.inference.finding import FoundCause
from veridyn.inference.log_inspection import findings_of, log_mistakes
from veridyn.inference.posterior import DETERMINED_INFORMATION, DETERMINED_SHARE
from veridyn.inference.verdict import Verdict
from veridyn.lazy import above as from_above
from veridyn.model.experiment import Experiment
from veridyn.model.flexible import motor_side
from veridyn.model.machine import Machine
from veridyn.settings import Settings, above, between

LIKE_DAMPING = (
    "A force of the motor that is late or early, hysteresis and friction of the link act like it: look at clocks first; do not trust the "
    "delay, and the stiffness only as far as its deviation, which allows for this."
)


@dataclass(frozen=True, repr=False, kw_only=True)
class FlexibleSettings(Settings):
    """How flexible joints are identified from two encoders, or from inertial sensors on the link.

    Parameters
    ----------
    band : float above 0, or None
        Low-pass of the equations, Hz; by default five times the frequency below which 99.9 % of the speed's power lies.
    lowpass : float above 0
        Low-pass of the deflections that are predicted and compared, Hz.
    spread : float above 0
        Prior standard deviation of the logarithm of a stiffness where the model has no sigma for it; 0.7 is a factor of two.
    delay : float above 0
        Prior standard deviation of the delay between the encoders, s.
    relaxation : float above 0
        Prior standard deviation of damping over stiffness, s.
    dead_zone : float between 0 and 1
        Share of the largest speed below which a joint counts as standing still: such samples are predicted, and not fitted.
    common_delay : bool
        Whether the encoders of all joints have one delay.
    gain : float above 0
        Prior standard deviation of the gains of inertial sensors on the link, and of what each axis reads of the others.
    place : float above 0
        Prior standard deviation of the places of accelerometers on the link, m.
    """

    band: Annotated[float, above(0.0)] | None = None
    lowpass: Annotated[float, above(0.0)] = 15.0
    spread: Annotated[float, above(0.0)] = 0.7
    delay: Annotated[float, above(0.0)] = 0.01
    relaxation: Annotated[float, above(0.0)] = 0.01
    dead_zone: Annotated[float, between(0.0, 1.0)] = 0.05
    common_delay: bool = True
    gain: Annotated[float, above(0.0)] = 0.01
    place: Annotated[float, above(0.0)] = 0.005


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
    """What two encoders, or a motor's encoder and sensors on the link, show of one joint.

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
            ("delay", "s", p[3], s[3], self.mean[3], self.settings.delay, 3),
            ("damping", f"{torque}*s/{angle}", K * p[4], K * s[4], prior * self.mean[4], prior * self.sigma[4], 4),
        )
        found = {}
        for name, unit, value, sigma, mean, wide, k in rows:
            ratio = s[k] / (self.settings.delay if name == "delay" else self.sigma[k])
            ratio = np.inf if k in self.estimate.beyond else ratio
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
    def compared(self) -> tuple[str, str]:
        """What predictions are compared with, and its unit."""
        return "deflection", "rad" if self.turning else "m"

    @property
    def remedies(self) -> tuple[str, ...]:
        """What of the sensors, were it known, would make an undetermined stiffness determined."""
        return ()

    @property
    def beyond(self) -> Mapping[str, tuple[float, float]]:
        """Friction and damping that the logs would make negative → what they would be, and its deviation."""
        K, names = float(np.exp(self.estimate.values[0])), [*self.quantities]
        return {
            names[k]: (x * (K if names[k] == "damping" else 1.0), s * (K if names[k] == "damping" else 1.0))
            for k, (x, s) in self.estimate.beyond.items()
        }

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

    @property
    def of_file(self) -> FlexibleJointFit:
        """The joint with stiffness, friction and damping as they were before, and the delay that the logs show."""
        values = self.estimate.values.copy()
        values[[0, 1, 2, 4]] = self.mean[[0, 1, 2, 4]]
        return replace(self, estimate=replace(self.estimate, values=values), gap=0.0, inner=None, ripple=None)

    def row(self, logs: Sequence[Experiment]) -> RowReport:
        """Error of the predicted deflection over these logs."""
        y, error = Moments(), Moments()
        for log in logs:
            samples, predicted = self.predict(log)
            y = y.merge(Moments.of(samples.deflection))
            error = error.merge(Moments.of(samples.deflection - predicted))
        return RowReport(
            row=self.joint,
            samples=y.samples,
            rms=error.rms,
            measured_rms=y.rms,
            measured_std=y.std,
            noise=y.noise,
            unit=self.compared[1],
        )

    def std_percent(self, log: Experiment | JointRecording, *, moving: bool = False) -> float:
        """Error of the predicted deflection over the standard deviation of the measured one, %; `moving`: without standstill."""
        samples, predicted = self.predict(log)
        own = np.abs(samples.speed) > (self.dead_zone if moving else -1.0)
        y, error = samples.deflection[own], (samples.deflection - predicted)[own]
        return 100.0 * float(np.std(error)) / float(np.std(y))


@dataclass(frozen=True, eq=False, kw_only=True)
class FlexibleFit:
    """What :func:`identify_flexible` finds: joints by name, and the delay of the link encoders (s) with its standard deviation.

    `delay_chance`: the probability that the joints' own delays are so far apart; below FALSE_ALARM_RATE they are kept. `logs`: those of
    the fit. `again`: the same fit of validation logs, on which the deflection is predicted; None where there are none.
    """

    described: Machine
    joints: Mapping[str, FlexibleJointFit]
    delay: float
    delay_sigma: float
    delay_chance: float = 1.0
    logs: tuple[Experiment, ...] = ()
    again: FlexibleFit | None = None

    @cached_property
    def rows(self) -> tuple[RowReport, ...]:
        """Errors of the deflections on the logs of the fit."""
        return tuple(joint.row(self.logs) for joint in self.joints.values()) if self.logs else ()

    @cached_property
    def held_out_rows(self) -> tuple[RowReport, ...]:
        """The same on validation logs; none where there are none."""
        return () if self.again is None else tuple(joint.row(self.again.logs) for joint in self.joints.values())

    @cached_property
    def held_out_rows_defaults(self) -> tuple[RowReport, ...]:
        """The same with stiffness, friction and damping as they were before."""
        return () if self.again is None else tuple(joint.of_file.row(self.again.logs) for joint in self.joints.values())

    @cached_property
    def std_percent(self) -> dict[str, float]:
        """Joint → error of its predicted deflection, % of the standard deviation, the worst of the validation logs."""
        logs = () if self.again is None else self.again.logs
        return {c: max(joint.std_percent(log) for log in logs) for c, joint in self.joints.items() if logs}

    @cached_property
    def agreement(self) -> dict[str, float]:
        """Joint → difference of its stiffness between both fits, in standard deviations of the difference."""
        other = {} if self.again is None else self.again.joints
        both = {c: (self.joints[c].stiffness, joint.stiffness) for c, joint in other.items()}
        return {c: abs(a.value - b.value) / float(np.hypot(a.sigma, b.sigma)) for c, (a, b) in both.items()}

    @cached_property
    def verdict(self) -> Verdict:
        """How good it is, why it is no better, and what it may be used for."""
        return from_above("veridyn.identify.flexible.flexible_verdict", "flexible_verdict")(self)

    @cached_property
    def inspected(self) -> tuple[FoundCause, ...]:
        """What inspection says against the channels of its logs."""
        motors = [motor_side(c) for c in self.joints]
        names = [f"{kind}.{name}" for name in (*self.joints, *motors) for kind in ("q", "qd", "force")]
        names += [name for s in self.described.sensors for name in s.channels(3)]
        return findings_of(log_mistakes(self.logs, {name: name for name in names}))

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

    @cached_property
    def findings(self) -> tuple[FoundCause, ...]:
        """What its logs show of their sensors, and numbers that the logs would have where no joint has them."""
        found = [*self.inspected, *(() if self.again is None else self.again.inspected)]
        for c, fit in self.joints.items():
            for name, (value, sigma) in fit.beyond.items():
                fault = Fault(
                    f"its {name} would be below zero, which no joint has: it stays there, and something that the model lacks acts like it.",
                    part_at("joint", c),
                    "zero or more",
                    f"{value:.3g} ± {sigma:.2g} without that bound",
                    LIKE_DAMPING,
                )
                found.append(
                    FoundCause(
                        cause="friction below zero",
                        place=c,
                        rank=len(found) + 1,
                        size=value,
                        sigma=sigma,
                        moves=name,
                        shift=-value / sigma,
                        recording="a measured delay of the encoders and of the motor's force, or slower and faster motion",
                        remedy=LIKE_DAMPING,
                        message=str(fault),
                    )
                )
        return tuple(replace(one, rank=rank) for rank, one in enumerate(found, 1))

    def notes(self) -> list[str]:
        """Sentences about what is not determined, and the motion that would determine it; findings first."""
        out = [str(one) for one in self.findings]
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
            if fit.remedies:
                out.append(
                    f"It would be, were the {' or the '.join(fit.remedies)} of the sensors on the link known exactly."
                )
            if unknown := [name for name in fit.undetermined if name.startswith("bias")]:
                out.append(f"Not determined either: {', '.join(unknown)}. Record other poses.")
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
        read = "encoders" if any(fit.compared[0] == "deflection" for fit in self.joints.values()) else "sensors"
        lines = [f"delay of the link {read}: {1e3 * self.delay:.3f} ± {1e3 * self.delay_sigma:.3f} ms"]
        if len(self.joints) > 1:
            each = [f"{c} {1e3 * f.own_delay[0]:.3f} ± {1e3 * f.own_delay[1]:.3f}" for c, f in self.joints.items()]
            lines.append(f"by themselves: {', '.join(each)}; so far apart by chance in {self.delay_chance:.2g} of logs")
        wide = max([12, *(1 + len(name) for fit in self.joints.values() for name in fit.quantities)])
        head = f"{'joint':<12}{'quantity':<{wide}}{'value':>12}{'± σ':>12}{'prior':>12}{'± σ':>12}  unit"
        lines.append(head)
        for c, fit in self.joints.items():
            for x in fit.quantities.values():
                value = f"{x.value:>12.5g}{x.sigma:>12.2g}" if x.determined else f"{'undetermined':>24}"
                lines.append(f"{c:<12}{x.name:<{wide}}{value}{x.prior:>12.4g}{x.prior_sigma:>12.2g}  {x.unit}")
            if fit.ripple is not None:
                lines.append(
                    f"{c:<12}ripple of {fit.ripple.amplitude:.2g}, which repeats every {2.0 * np.pi / fit.ripple.wave:.4g} of its way"
                )
        return "\n".join([*lines, *self.notes(), self.verdict.summary()])
