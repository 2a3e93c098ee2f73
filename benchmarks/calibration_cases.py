"""Cases of the calibration: estimators under their assumptions. A case is a function of a generator that draws machine, motion and noise.

The machine is a three-joint arm, or two links that hang for the estimator that simulates. Its drawing is fixed; every run draws the true
inertias, masses and friction from the drawing's standard deviations (10 % of each parameter's size, physically consistent), a Fourier
motion within the same limits, and the noise. Estimators are given the drawing, never the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from veridyn.identify.estimate import identify
from veridyn.identify.estimator import OLS, WLS, Estimator
from veridyn.identify.estimators.feasible import Consistent
from veridyn.identify.estimators.gauss_markov import GaussMarkov
from veridyn.identify.estimators.instrumental import Instrumental
from veridyn.identify.estimators.likelihood import Likelihood
from veridyn.identify.estimators.prior import Prior, prior_moments
from veridyn.identify.estimators.robust import Robust
from veridyn.identify.output_error.output_error import OutputError
from veridyn.identify.payload import with_payload
from veridyn.identify.result import Fit
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.system.integrate import Method, integrate
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.model.elements.element import coulomb, damper, drive_gain
from veridyn.model.graph import Body
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.parameters import Uncertainty
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.spatial.inertia import INERTIAL, broken_law, from_centre
from veridyn.spatial.rotations import MDH

Array = NDArray[np.float64]
RIGHT = np.pi / 2
SPREAD = 0.1  # of each parameter's size: how far machines are from their drawing
STEP = 0.01  # s
NOISE = np.array([0.4, 0.3, 0.06])  # N*m
GAINS = np.array([30.0, 20.0, 8.0])  # N*m/A
GAIN_SPREAD = 0.02
MEMORY = 0.9
ENCODER = 2e-3  # rad, of the links that hang
SOFT = 0.1  # rad/s, below which the simulated dry friction is rounded off


@dataclass(frozen=True, eq=False)
class Outcome:
    """Errors of the base parameters of one run, and their stated standard deviations (NaN where none is stated).

    `names`: where runs may excite different parameters. `joint`: eᵀ C⁻¹ e per parameter, where the whole covariance C is tested too.
    """

    errors: Array
    sigma: Array
    names: tuple[str, ...] = ()
    joint: float = float("nan")


@cache
def drawing() -> Machine:
    """Links of 6, 4 and 1.5 kg about axes that cross."""
    bodies = [Body("1"), Body("2", "1", placement=MDH(alpha=RIGHT)), Body("3", "2", placement=MDH(d=0.4))]
    shapes = {
        "1": (6.0, (0.02, 0.05, -0.1), (0.05, 0.06, 0.04)),
        "2": (4.0, (0.2, 0.02, 0.05), (0.03, 0.08, 0.07)),
        "3": (1.5, (0.1, -0.12, 0.03), (0.014, 0.009, 0.013)),
    }
    inertia = {name: from_centre(m, c, np.diag(J)) for name, (m, c, J) in shapes.items()}
    elements = [coulomb(f"q{k}", f) for k, f in enumerate((1.0, 1.2, 0.4), 1)]
    elements += [damper(f"q{k}", f) for k, f in enumerate((1.5, 1.0, 0.4), 1)]
    return Machine.of_bodies(bodies, name="calibration arm", inertia=inertia, elements=elements)


@cache
def hanging() -> Machine:
    """Two links on parallel horizontal axes."""
    bodies = [Body("1", placement=MDH(alpha=RIGHT)), Body("2", "1", placement=MDH(d=0.3))]
    inertia = {
        "1": from_centre(0.6, (0.25, 0.01, 0.0), np.diag([0.002, 0.01, 0.011])),
        "2": from_centre(0.5, (0.16, -0.02, 0.0), np.diag([0.002, 0.006, 0.007])),
    }
    elements = [damper("q1", 0.05), coulomb("q1", 0.06), damper("q2", 0.02), coulomb("q2", 0.03)]
    return Machine.of_bodies(bodies, name="hanging links", inertia=inertia, elements=elements)


def drawn_from(machine: Machine, rng: np.random.Generator) -> Machine:
    """A machine from the standard deviations of its drawing; drawn again where no body has such an inertia."""
    mean, sigma = prior_moments(machine, Prior(relative=SPREAD))
    while True:
        phi = mean + sigma * rng.normal(size=len(mean))
        bodies = [phi[k : k + 10] for k, (body, number) in enumerate(machine.columns) if body and number == 0]
        if all(broken_law(x) is None for x in bodies):
            return machine.with_parameters(phi)


def path(rng: np.random.Generator, frequency: float = 0.1) -> FourierTrajectory:
    limits = JointLimits(np.full(3, -2.5), np.full(3, 2.5), np.full(3, 4.0), np.full(3, 15.0))
    return FourierTrajectory.random(rng, limits, harmonics=5, frequency=frequency, fill=0.9)


def moved(truth: Machine, along: FourierTrajectory, samples: int) -> Motion:
    """The motion along a path with the forces it takes, exact."""
    t = np.asarray(STEP * np.arange(samples), dtype=np.float64)
    motion = Motion(t, *along.at(t))
    return replace(motion, forces=inverse_dynamics(truth, motion, engine="compiled"))


def noisy(rng: np.random.Generator, motion: Motion, size: Array, memory: float = 0.0) -> Motion:
    """With normal noise on the forces; `memory` ρ makes it first-order autoregressive with the same deviation."""
    assert motion.forces is not None
    noise = rng.normal(size=(len(motion) + 300, motion.forces.shape[1]))
    noise = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], noise, axis=0)[300:]
    return replace(motion, forces=motion.forces + size * noise)


def outcome(fit: Fit, truth: Array) -> Outcome:
    return Outcome(fit.values - fit.base.reduce(truth), fit.sigma)


def by(
    method: Estimator,
    rng: np.random.Generator,
    *,
    covariance: str = "white",
    samples: int = 800,
    size: Sequence[float] | Array = NOISE,
    memory: float = 0.0,
    gross: float = 0.0,
) -> Outcome:
    """An estimator on the arm with noise on the forces; `gross`: the share of samples with errors of 30 deviations."""
    truth = drawn_from(drawing(), rng)
    log = noisy(rng, moved(truth, path(rng), samples), np.asarray(size), memory)
    if gross > 0.0:
        assert log.forces is not None
        hit = rng.random(log.forces.shape) < gross
        log = replace(
            log, forces=log.forces + np.where(hit, 30.0 * np.asarray(size) * rng.choice([-1.0, 1.0], hit.shape), 0.0)
        )
    fit = identify(drawing(), log, method, settings=IdentifySettings(covariance=covariance, engine="compiled"))  # pyright: ignore[reportArgumentType]
    return outcome(fit, truth.parameters.values)


def instruments(rng: np.random.Generator) -> Outcome:
    """Noise of .5 rad/s² on the accelerations as well, as differences of positions leave it; the path as reference."""
    truth, along = drawn_from(drawing(), rng), path(rng)
    log = noisy(rng, moved(truth, along, 800), NOISE)
    log = replace(log, qdd=log.qdd + 0.5 * rng.normal(size=log.qdd.shape))
    return outcome(
        identify(drawing(), log, Instrumental(reference=along), settings=IdentifySettings(engine="compiled")),
        truth.parameters.values,
    )


def periods(rng: np.random.Generator) -> Outcome:
    """Four periods of 4 s with noise on forces and positions, by maximum likelihood."""
    truth = drawn_from(drawing(), rng)
    log = noisy(rng, moved(truth, path(rng, 0.25), 1600), 0.3 * NOISE)
    log = replace(log, q=log.q + 1e-5 * rng.normal(size=log.q.shape))
    return outcome(identify(drawing(), log, Likelihood(frequency=0.25, highest=8)), truth.parameters.values)


def simulated(rng: np.random.Generator) -> Outcome:
    """Links that swing under known forces, positions with noise, by output error; integrated with the truth's own dynamics."""
    truth, samples = drawn_from(hanging(), rng), 300
    t = STEP * np.arange(samples)
    waves = np.sin(2.0 * np.pi * rng.uniform(0.2, 1.8, (3, 2)) * t[:, None, None] + rng.uniform(0.0, 6.0, (3, 2)))
    forces = (waves * np.array([0.7, 0.25])).sum(axis=1)
    start = np.array([-RIGHT + 0.3 * rng.normal(), 0.3 * rng.normal()])

    def between(time: float, q: Array, qd: Array) -> Array:
        k = min(int(time / STEP + 1e-9), samples - 2)
        share = time / STEP - k
        return (1.0 - share) * forces[k] + share * forces[k + 1]

    method = Method("RK4", step=STEP, friction_speed=SOFT)
    found = integrate(truth, t, start, np.zeros(2), between, method=method).motion
    log = replace(found, forces=forces, q=found.q + ENCODER * rng.normal(size=found.q.shape))
    estimator = OutputError(horizon=0.5, friction_speed=SOFT, start="tree")
    return outcome(
        identify(hanging(), log, estimator, settings=IdentifySettings(engine="compiled")), truth.parameters.values
    )


def known_values(rng: np.random.Generator) -> Outcome:
    """Mass and first moments of the last link stated to 10 % of their size, and off by as much; the rest by weighted least squares."""
    names = ("M3", "MX3", "MY3")
    machine = drawing()
    truth = drawn_from(machine, rng)
    at = [machine.parameters.index(n) for n in names]
    sigma = prior_moments(machine, Prior(relative=SPREAD))[1][at]
    assumed = truth.parameters.values[at] + sigma * rng.normal(size=3)
    stated = machine.with_parameters(machine.parameters.known(dict(zip(names, assumed.tolist(), strict=True))))
    stated = replace(stated, uncertainty=Uncertainty(names, np.diag(sigma**2)))
    log = noisy(rng, moved(truth, path(rng), 800), NOISE)
    settings = IdentifySettings(
        covariance="white", engine="compiled"
    )  # errors of known values are in the residuals as well
    # Known values that are 10 % off look like a body in another place to the diagnosis, which deviations do not rest on.
    return outcome(identify(stated, log, settings=settings, diagnose="off"), truth.parameters.values)


def payload(rng: np.random.Generator) -> Outcome:
    """A load weighed with gains known to 2 % and an empty machine identified with them: currents of two runs, no force measured."""
    truth, assumed = drawn_from(drawing(), rng), GAINS * (1.0 + GAIN_SPREAD * rng.normal(size=3))
    load = from_centre(float(rng.uniform(0.5, 2.0)), rng.normal(size=3) * 0.05, np.diag(rng.uniform(0.003, 0.006, 3)))
    fixed = Joint(name="load", kind="fixed", a="3", b="load")
    loaded = truth.with_body(Link(name="load", inertia=load), fixed)

    def currents(machine: Machine) -> Motion:
        log = noisy(rng, moved(machine, path(rng), 800), NOISE)
        assert log.forces is not None
        return replace(log, forces=None, signals={f"i{k}": log.forces[:, k] / GAINS[k] for k in range(3)})

    names = tuple(f"K{k}" for k in range(3))
    gains = [drive_gain(f"q{k + 1}", f"i{k}", float(assumed[k]), names[k]) for k in range(3)]
    free = [replace(e, value=float("nan")) for e in drawing().elements]
    machine = Machine.of_bodies(tree_of(drawing()).bodies, name="arm", elements=[*free, *gains])
    machine = machine.with_parameters(machine.parameters.known(names))
    machine = machine.with_uncertainty(Uncertainty(names, np.diag((GAIN_SPREAD * assumed) ** 2)))
    empty = identify(machine, currents(truth), settings=IdentifySettings(engine="compiled"))
    fit = identify(with_payload(empty, "3"), currents(loaded), settings=IdentifySettings(engine="compiled"))
    whole = fit.described.parameters.replacing(
        dict(zip([f"{s}_payload" for s in INERTIAL], load.tolist(), strict=True))
    )
    return outcome(fit, whole.values)


Case = Callable[[np.random.Generator], Outcome]
LONG = {"covariance": "hac", "samples": 3000, "memory": MEMORY}
CASES: dict[str, Case] = {
    "ols, equal noise": partial(by, OLS(), size=(0.2, 0.2, 0.2)),
    "wls": partial(by, WLS()),
    "wls, hac, first-order noise": partial(by, WLS(), **LONG),
    "robust, 5 % gross errors": partial(by, Robust("tukey"), gross=0.05),
    "robust, hac, first-order noise": partial(by, Robust(), **LONG),
    "map": partial(by, Prior(relative=SPREAD)),
    "map, hac, first-order noise": partial(by, Prior(relative=SPREAD), **LONG),
    "consistent": partial(by, Consistent()),
    "consistent with prior": partial(by, Consistent(Prior(relative=SPREAD))),
    "consistent with prior, hac, first-order noise": partial(by, Consistent(Prior(relative=SPREAD)), **LONG),
    "gauss_markov, first-order noise": partial(by, GaussMarkov(order=2), samples=3000, memory=MEMORY),
    "iv, noisy accelerations": instruments,
    "oe, noisy positions": simulated,
    "likelihood, whole periods": periods,
    "known values to 10 %": known_values,
    "payload, gains to 2 %": payload,
}
