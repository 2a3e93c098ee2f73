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

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from veridyn.arguments import checked
from veridyn.errors import DataError, did_you_mean, part_at
from veridyn.identify.flexible.hysteresis import estimate_with_hysteresis
from veridyn.identify.flexible.joint_equations import (
    QUANTITIES,
    InnerFriction,
    at_least,
    joint_prior,
    most_likely_joint,
)
from veridyn.identify.flexible.link_fit import fit_link_sensors
from veridyn.identify.flexible.link_sensors import LinkSensor, link_sensors
from veridyn.identify.flexible.play import estimate_with_gap
from veridyn.identify.flexible.posterior import bounded, pooled, with_measurement
from veridyn.identify.flexible.recording import JointRecording, joint_recording, largest_speed, samples_of
from veridyn.identify.flexible.result import FlexibleFit, FlexibleJointFit, FlexibleSettings
from veridyn.identify.flexible.ripple import Ripple, find_ripple
from veridyn.inference.agreement import FALSE_ALARM_RATE
from veridyn.inference.posterior import DETERMINED_SHARE
from veridyn.model.experiment import Experiment
from veridyn.model.flexible import flexible_joints
from veridyn.model.machine import Machine


@checked
def identify_flexible(
    machine: Machine,
    logs: Experiment | Sequence[Experiment],
    *,
    joints: Sequence[str] = (),
    settings: FlexibleSettings | None = None,
    validation: Experiment | Sequence[Experiment] = (),
) -> FlexibleFit:
    """Stiffness of flexible joints from encoders at the motor and at the link, or inertial sensors there, with the delay between the two.

    Parameters
    ----------
    machine : Machine
        With flexible joints (``flexible: {stiffness, damping, inertia}``) whose rotor inertias are known. Priors: the stiffness, and
        what it knows of that (``parameters: {sigma: …}``); so of friction, by elements of kind coulomb and damper on ``NAME_motor``. A
        ``backlash`` that it states, the order of magnitude of the gap, is the prior deviation of one that is estimated; so is a
        ``hysteresis``, whose ``hysteresis_deflection`` is known as well as a stiffness of which nothing is stated (`spread`).
    logs : Experiment or sequence of Experiment
        Channels ``q.NAME`` (link), ``q.NAME_motor`` and ``force.NAME_motor`` (motor, in the units of the joint). Zeros of the encoders may
        differ from log to log. In place of ``q.NAME``: those of an accelerometer or a gyroscope that the machine has on that link, or
        ``qd.NAME``, the link's rate about the axis.
    joints : sequence of str
        Coordinates of their link sides; all flexible joints by default.
    settings : FlexibleSettings, optional
    validation : Experiment or sequence of Experiment
        Logs that the fit does not use, and is judged by; none by default, and the fit is "not validated".

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
    sensors = {c: _sensors(machine, c, data) for c in wanted or known}
    chosen = {c: [joint_recording(log, c) for log in data] for c, found in sensors.items() if not found}
    by_encoders = {c: _fitted(machine, c, recordings, own) for c, recordings in chosen.items()}
    by_sensors = {c: fit_link_sensors(machine, c, found, data, own) for c, found in sensors.items() if found}
    fits = dict(by_encoders or by_sensors)
    values, sigmas = np.array([fit.own_delay for fit in fits.values()]).T
    delay, delay_sigma, chance = pooled(values, sigmas)
    if own.common_delay and len(by_encoders) > 1 and chance >= FALSE_ALARM_RATE:
        for k, (c, fit) in enumerate(fits.items()):
            mean, sigma, _ = pooled(np.delete(values, k), np.delete(sigmas, k))
            measured = with_measurement(fit.estimate, 3, mean, sigma)
            low = at_least(len(measured.values))
            held = np.maximum(measured.values, low)
            resisting = held if measured.beyond else bounded(measured.values, measured.covariance, low)
            fits[c] = replace(fit, estimate=replace(measured, values=resisting))
    made = by_sensors | {c: replace(fits[c], ripple=_ripple(fits[c], r)) for c, r in chosen.items()}
    chance = chance if by_encoders else 1.0
    fit = FlexibleFit(
        described=machine,
        joints={c: made[c] for c in sensors},
        delay=delay,
        delay_sigma=delay_sigma,
        delay_chance=chance,
        logs=tuple(data),
    )
    return (
        replace(fit, again=identify_flexible(machine, validation, joints=joints, settings=own)) if validation else fit
    )


def _sensors(machine: Machine, joint: str, logs: Sequence[Experiment]) -> list[LinkSensor]:
    """The inertial sensors that take the place of the joint's link encoder; none where there is one, or ``qd.NAME`` alone."""
    if any(f"q.{joint}" in log.channels for log in logs):
        return []
    found = link_sensors(machine, joint, logs)
    return [] if all(one.sensor.kind == "rate" for one in found) else found


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
        inner = InnerFriction(
            samples=samples, force=flexible.hysteresis, way=flexible.hysteresis_deflection, spread=s.spread
        )
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
