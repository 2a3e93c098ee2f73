"""Stiffness of a flexible joint from its motor encoder alone, by resonance and antiresonance.

A small motion about a pose excites motor and link. The inertia that the motor feels, Z = Γ/θ̈, is that of two masses on a spring:

    Z(ω) = J + M (K + jωD) / (K + jωD − M ω²)

    antiresonance (the motor stands, the link swings): ω_a² = K/M        resonance: ω_r² = K (1/J + 1/M)

With the rotor inertia J known, both give the stiffness K and the inertia M of the link in that pose. Z is estimated from averaged spectra
and fitted by its logarithm, weighted by the coherence of torque and acceleration. Gravity on the link adds to K at the antiresonance: m g r
beside K, which is small for stiff joints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.signal import csd, welch

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, part_at
from veridyn.identify.flexible.recording import refuse_play
from veridyn.inference.residual_problem import ResidualProblem
from veridyn.inference.search import Damping, StopRules, search_from_each
from veridyn.model.experiment import Experiment
from veridyn.model.flexible import flexible_joints, motor_side
from veridyn.model.machine import Machine
from veridyn.settings import Settings, above, at_least
from veridyn.signals.resample import resample, uniform_rate

LEAST_COHERENCE = 0.5  # of torque and acceleration: frequencies below it carry more noise than motion
WINDOW_BINS = 1.5  # independent frequencies are so many bins of a Hann window apart
FEWEST_FREQUENCIES = 12
START_FACTORS = (
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
)  # of the prior stiffness and of the rotor's inertia, from which the fit starts
REACH = np.log(1e6)  # of unknowns, whose logarithms are sought: a factor either way
ITERATIONS = 200  # of each start, of which some lead nowhere
TOLERANCE_SIGMAS = 1e-4  # of all unknowns together


@dataclass(frozen=True, repr=False, kw_only=True)
class ResonanceSettings(Settings):
    """How a resonance is found.

    Parameters
    ----------
    low, high : Hz, the band that was excited; by default a hundredth and a fifth of the rate.
    segments : number of stretches, half overlapping, over which spectra are averaged. More are less noisy, and less sharp.
    """

    low: Annotated[float, above(0.0)] | None = None
    high: Annotated[float, above(0.0)] | None = None
    segments: Annotated[int, at_least(3)] = 7


@dataclass(frozen=True, eq=False, kw_only=True)
class ResonanceFit:
    """Stiffness (N*m/rad or N/m), damping, inertia of the link in this pose, resonance and antiresonance (Hz), with deviations.

    `frequency`, `measured` and `predicted`: the inertia that the motor feels, complex, over Hz.
    """

    joint: str
    stiffness: float
    stiffness_sigma: float
    damping: float
    damping_sigma: float
    link_inertia: float
    link_inertia_sigma: float
    resonance: float
    resonance_sigma: float
    antiresonance: float
    antiresonance_sigma: float
    frequency: Array
    measured: NDArray[np.complex128]
    predicted: NDArray[np.complex128]

    def summary(self) -> str:
        """The estimates in lines."""
        rows = (
            ("stiffness", self.stiffness, self.stiffness_sigma),
            ("damping", self.damping, self.damping_sigma),
            ("link inertia", self.link_inertia, self.link_inertia_sigma),
            ("resonance, Hz", self.resonance, self.resonance_sigma),
            ("antiresonance, Hz", self.antiresonance, self.antiresonance_sigma),
        )
        return "\n".join([f"joint {self.joint}", *(f"{n:<20}{x:>12.5g} ± {s:.2g}" for n, x, s in rows)])


@checked
def identify_resonance(
    machine: Machine, log: Experiment, joint: str, *, settings: ResonanceSettings | None = None
) -> ResonanceFit:
    """Stiffness of a flexible joint from its motor encoder and torque alone, by the resonance that a broad-band excitation shows.

    Parameters
    ----------
    machine : Machine
        With the flexible joint; its rotor inertia is known, its stiffness is where the search begins.
    log : Experiment
        Channels ``q.NAME_motor`` and ``force.NAME_motor``, in the units of the joint, of a small broad-band motion (a chirp, many sines)
        about one pose; the other joints stand.
    joint : str
        Coordinate of its link side.
    settings : ResonanceSettings, optional

    Returns
    -------
    ResonanceFit
    """
    own = settings or ResonanceSettings()
    known = flexible_joints(machine)
    if joint not in known:
        found = ", ".join(known) or "none"
        raise DataError("it is no flexible joint of this machine.", where=part_at("joint", joint), found=found)
    refuse_play(joint, known[joint])
    J = known[joint].inertia
    if not (np.isfinite(J) and np.isfinite(known[joint].stiffness)):
        hint = f"Give flexible: {{stiffness: …, inertia: …}} at '{joint}'."
        raise DataError(
            "the inertia of its rotor, or a first stiffness, is unknown.", where=part_at("joint", joint), hint=hint
        )
    frequency, Z, variance = _felt_inertia(log, joint, own)
    return _fitted(joint, J, known[joint].stiffness, frequency, Z, variance)


def _felt_inertia(log: Experiment, joint: str, s: ResonanceSettings) -> tuple[Array, NDArray[np.complex128], Array]:
    """Frequencies (Hz), Γ/θ̈ there, and the variance of the real and the imaginary part of its logarithm."""
    names = (f"q.{motor_side(joint)}", f"force.{motor_side(joint)}")
    missing = [n for n in names if n not in log.channels]
    if missing:
        raise DataError("it is needed, and missing.", where=part_at("channel", missing[0]), source=log.name)
    clock = log.channels[names[0]].t
    rate = uniform_rate(clock, where=names[0])
    one = resample(Experiment({n: log.channels[n] for n in names}, log.name), clock)
    theta, torque = (one.channels[n].values for n in names)
    length = int(2 * len(theta) / (s.segments + 1))
    how = {"fs": rate, "nperseg": length, "detrend": "linear"}
    f, cross = csd(theta, torque, **how)
    _, power = welch(theta, **how)
    _, force = welch(torque, **how)
    low, high = s.low or 0.01 * rate, s.high or 0.2 * rate
    coherence = np.abs(cross) ** 2 / np.maximum(power * force, 1e-300)
    kept = (f >= low) & (f <= high) & (coherence > LEAST_COHERENCE)
    if kept.sum() < FEWEST_FREQUENCIES:
        what = f"torque and motor angle are coherent at {kept.sum()} frequencies from {low:g} to {high:g} Hz."
        hint = "Excite the joint by a chirp or many sines over the band in which the resonance lies, for longer."
        raise DataError(what, where=part_at("joint", joint), expected=f"{FEWEST_FREQUENCIES} at least", hint=hint)
    Z = np.asarray(cross[kept] / power[kept] / -((2.0 * np.pi * f[kept]) ** 2), dtype=np.complex128)
    c = np.minimum(coherence[kept], 1.0 - 1e-9)
    return f[kept], Z, (1.0 - c) / (2.0 * s.segments * c)


def _model(p: Array, J: float, w: Array) -> NDArray[np.complex128]:
    K, M, D = np.exp(p)
    shaft = K + 1j * w * D
    return J + M * shaft / (shaft - M * w**2)


def _fitted(
    joint: str, J: float, stiffness: float, frequency: Array, Z: NDArray[np.complex128], variance: Array
) -> ResonanceFit:
    w, weight = 2.0 * np.pi * frequency, 1.0 / np.sqrt(variance)

    def residuals(p: Array) -> Array:
        off: NDArray[np.complex128] = np.asarray(np.log(Z / _model(p, J, w)), dtype=np.complex128)
        return np.concatenate([np.real(off) * weight, np.imag(off) * weight])

    size = np.log([stiffness, J, 1e-3 * np.sqrt(stiffness * J)])
    problem = ResidualProblem(residuals=residuals, loss="soft_l1", low=size - REACH, high=size + REACH)
    starts = (problem.at(size + np.log([a, b, np.sqrt(a)])) for a in START_FACTORS for b in START_FACTORS)
    best = search_from_each(
        [one for one in starts if one is not None],
        StopRules(iterations=ITERATIONS, tolerance=TOLERANCE_SIGMAS),
        Damping(),
        where=part_at("joint", joint),
        hint="Give a first stiffness that is nearer, or excite the joint by a chirp or many sines for longer.",
    ).point
    K, M, D = (float(x) for x in np.exp(best.x))
    r = best.residuals
    scale = max(1.0, float(r @ r) / (len(r) - 3)) * WINDOW_BINS  # what the model leaves counts as noise
    covariance = np.linalg.pinv(best.information) * scale
    sigma = np.sqrt(np.diag(covariance))
    antiresonance, resonance = np.sqrt(K / M) / (2 * np.pi), np.sqrt(K * (1 / J + 1 / M)) / (2 * np.pi)
    low, high = float(frequency[0]), float(frequency[-1])
    if not (low < antiresonance < high and low < resonance < high):
        what = f"no resonance lies in the excited band of {low:.3g} to {high:.3g} Hz."
        found = f"a best fit with an antiresonance at {antiresonance:.3g} and a resonance at {resonance:.3g} Hz"
        raise DataError(what, where=part_at("joint", joint), found=found, hint="Excite higher or lower frequencies.")
    share = M / (J + M)
    of_a = np.array([0.5, -0.5, 0.0])
    of_r = np.array([0.5, -0.5 * (1.0 - share), 0.0])
    return ResonanceFit(
        joint=joint,
        stiffness=K,
        stiffness_sigma=K * float(sigma[0]),
        damping=D,
        damping_sigma=D * float(sigma[2]),
        link_inertia=M,
        link_inertia_sigma=M * float(sigma[1]),
        resonance=float(resonance),
        resonance_sigma=float(resonance * np.sqrt(of_r @ covariance @ of_r)),
        antiresonance=float(antiresonance),
        antiresonance_sigma=float(antiresonance * np.sqrt(of_a @ covariance @ of_a)),
        frequency=frequency,
        measured=Z,
        predicted=_model(best.x, J, w),
    )
