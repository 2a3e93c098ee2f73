"""A six-joint arm of the size of a Stäubli TX40: the machine of ``veridyn demo arm``.

Geometry as published, dynamics chosen (see arm.yaml). Everything here is simulated: a prior model that is up to 20 %
wrong drives the true arm along a reference, encoders and torque sensors record it, and what they record is all that
the identification is shown. Units: rad, N*m, s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from veridyn.identify.regression.sampling import Sampling, with_dead_zones
from veridyn.machines import described
from veridyn.mechanics.system.integrate import Method
from veridyn.mechanics.tree.dynamics.inverse import regressor
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent
from veridyn.signals.motion import Signals
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.simulate.imperfection import Imperfection, Imperfections
from veridyn.simulate.simulator import Tracking, simulate

FRICTION_SPEED = 0.02  # rad/s, below which the simulator's dry friction is rounded off
STANDSTILL = 25.0 * FRICTION_SPEED  # beyond it the friction is full to 1e-3


@dataclass(frozen=True, eq=False)
class ArmDemo:
    """One demonstration: the true machine, the prior model, and what was recorded.

    `truth` made the logs and is only for comparison. `model` is the same arm with priors that are not to be trusted, all
    parameters estimated; it drives the feed-forward of the controller and is what an identification starts from. `training`
    and `validation` are logs of two different motions, `signals` and `sampling` settings that suit both:
    ``identify(model, motion(model, training, signals), "wls", IdentifySettings(sampling=sampling), rows=rows)``.
    """

    truth: Machine
    model: Machine
    training: Experiment
    validation: Experiment
    signals: Signals
    sampling: Sampling
    rows: str
    quick: bool


def arm() -> Machine:
    """The arm of arm.yaml: what is true in the demonstration."""
    return described("arm.yaml")


def limits() -> JointLimits:
    """What the joints may do: within the ranges and speeds of the arm's data sheet, with a margin."""
    return JointLimits(
        low=np.array([-2.8, -1.9, -2.2, -3.5, -1.9, -3.5]),
        high=np.array([2.8, 1.9, 2.2, 3.5, 2.1, 3.5]),
        speed=np.array([4.0, 4.0, 5.0, 8.0, 8.0, 10.0]),
        acceleration=np.array([16.0, 14.0, 25.0, 60.0, 60.0, 90.0]),
    )


def exciting(rng: np.random.Generator, candidates: int = 20) -> FourierTrajectory:
    """A motion to identify from: of so many random ones, that whose regressor has the least condition number.

    Five harmonics of 0.2 Hz, so one period lasts 5 s. Columns are scaled by typical sizes, as ``fit.condition_scaled``.
    """
    machine = arm()
    drawn = [
        FourierTrajectory.random(rng, limits(), harmonics=5, frequency=0.2, start=1.0)
        for _ in range(max(candidates, 1))
    ]
    return min(drawn, key=lambda trajectory: _condition(machine, trajectory))


def other(rng: np.random.Generator) -> FourierTrajectory:
    """A motion to check with: other frequencies, other amplitudes, not chosen for anything."""
    return FourierTrajectory.random(rng, limits(), harmonics=4, frequency=0.17, start=1.0, fill=0.8)


def sensors() -> Imperfections:
    """Encoders and torque sensors, their figures chosen as those of good industrial ones.

    Encoders: 20 bits per turn and 5e-6 rad of noise. Torque sensors: white noise of about 0.5 % of what each joint needs
    at the most, N*m.
    """
    torque = (0.2, 0.3, 0.12, 0.05, 0.06, 0.05)
    by_name = {f"force.q{k}": Imperfection(noise=sigma) for k, sigma in enumerate(torque, 1)}
    return Imperfections({"q.*": Imperfection(noise=5e-6, quantum=2.0 * np.pi / 2**20), **by_name})


def perturb_inertias(truth: Machine, rng: np.random.Generator, share: float = 0.2) -> Machine:
    """The same machine with priors that are wrong by up to `share`: each body by a factor of its own, each element too.

    A body keeps an inertia that some body can have, since all ten of its parameters are scaled alike.
    """
    p = truth.parameters
    bodies = dict(zip(truth.described.links, 1.0 + share * rng.uniform(-1.0, 1.0, len(truth.links)), strict=True))
    elements = 1.0 + share * rng.uniform(-1.0, 1.0, len(truth.elements))
    factor = [bodies[body] if body else elements[k] for body, k in truth.columns]
    return truth.with_parameters(p.values * np.array(factor))


def tracking(reference: FourierTrajectory, model: Machine, duration: float) -> Tracking:
    """The arm under its controller: feed-forward by `model`, feedback with a bandwidth of 4 Hz, sampled at 250 Hz.

    Dry friction rounded off at standstill is stiff for the light joints of the wrist, hence the implicit method.
    """
    inertia = np.array([0.7, 1.4, 0.3, 0.04, 0.05, 0.0105])  # kg*m^2, about what each joint moves
    bandwidth = 25.0  # rad/s
    method = Method("LSODA", rtol=1e-6, atol=1e-7, friction_speed=FRICTION_SPEED)
    return Tracking(reference, duration, 250.0, bandwidth**2 * inertia, 2.0 * bandwidth * inertia, model, method)


def demonstration(
    rng: np.random.Generator, quick: bool = False, progress: Progress = silent, truth: Machine | None = None
) -> ArmDemo:
    """Simulate both logs. `quick` takes one period of the exciting motion instead of two, and a shorter check; `truth`: another arm."""
    truth = truth or arm()
    model = perturb_inertias(truth, rng)
    logs = []
    for name, reference, duration in (
        ("training", exciting(rng), 6.0 if quick else 11.0),
        ("validation", other(rng), 4.0 if quick else 7.0),
    ):
        log = simulate(truth, tracking(reference, model, duration), rng=rng, imperfections=sensors(), progress=progress)
        logs.append(replace(log, name=f"{name} of the arm (simulated)"))
    signals = Signals(lowpass=30.0, trim=0.2)
    return ArmDemo(truth, model, logs[0], logs[1], signals, sampling(model), "all", quick)


def sampling(model: Machine) -> Sampling:
    """Every sample at its own worth, but those within STANDSTILL of a reversal, where friction is not sign(q̇).

    No filter: the noise of the torque sensors is white as it comes, and a filter would spread the reversals over the
    samples beside them. Combinations of speeds that rub (motor 6: q̇5 + q̇6) have a dead zone of their own; without it
    their friction is wrong by dozens of deviations. Over 40 logs of one motion 94 to 96 % of the parameters then lie
    within two deviations of the truth, and what bias the low-pass leaves is 0.1 to 0.3 deviations.
    """
    return with_dead_zones(Sampling(dead_zone=STANDSTILL), model, ())


def _condition(machine: Machine, trajectory: FourierTrajectory) -> float:
    t = trajectory.start + np.linspace(0.0, trajectory.period, 80, endpoint=False)
    W = (
        regressor(machine, Motion(t, *trajectory.at(t))).reshape(-1, len(machine.parameters))
        * machine.parameters.typical
    )
    s = np.linalg.svd(W, compute_uv=False)
    kept = s[s > 1e-9 * s[0]]
    return float(kept[0] / kept[-1])
