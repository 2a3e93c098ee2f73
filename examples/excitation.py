"""A seven-joint arm: design an excitation, run it on a simulated arm, average the periods, and identify.

The geometry and the limits are those published for the Franka Panda; masses and friction are chosen. The arm is simulated as a log of
ten periods with encoder noise, and torque noise that is correlated between joints and remembers from sample to sample.

    python examples/excitation.py
"""

from __future__ import annotations

import numpy as np

import veridyn as vd

RIGHT = np.pi / 2
TABLE = (  # alpha, d, r of modified Denavit-Hartenberg (Gaz et al., RA-L 2019)
    (0, 0, 0.333),
    (-RIGHT, 0, 0),
    (RIGHT, 0, 0.316),
    (RIGHT, 0.0825, 0),
    (-RIGHT, -0.0825, 0.384),
    (RIGHT, 0, 0),
    (RIGHT, 0.088, 0),
)
MASSES = (3.0, 3.2, 3.0, 2.8, 3.2, 1.5, 0.9)  # kg, chosen
CENTRES = (  # m, chosen
    (0.01, -0.03, -0.06),
    (-0.01, -0.07, 0.03),
    (0.03, 0.04, -0.06),
    (-0.05, 0.10, 0.03),
    (-0.01, 0.04, -0.12),
    (0.06, -0.01, -0.02),
    (0.01, 0.005, 0.06),
)
TORQUE_NOISE = np.array([0.2, 0.3, 0.15, 0.15, 0.05, 0.05, 0.03])  # N*m, chosen


def arm() -> vd.Machine:
    """The true arm."""
    bodies = [
        vd.model.Body(
            f"link{k}",
            "ground" if k == 1 else f"link{k - 1}",
            "turning",
            vd.spatial.MDH(alpha=a, d=d, r=r),
            coordinate=f"q{k}",
        )
        for k, (a, d, r) in enumerate(TABLE, 1)
    ]
    inertia = {
        f"link{k}": vd.spatial.from_centre(m, c, np.diag([0.01, 0.012, 0.008]) * m / 3.0)
        for k, (m, c) in enumerate(zip(MASSES, CENTRES), 1)
    }
    friction = [
        make(f"q{k}", value)
        for k in range(1, 8)
        for make, value in ((vd.elements.coulomb, 0.4), (vd.elements.damper, 0.3))
    ]
    return vd.Machine.of_bodies(bodies, name="seven-joint arm", inertia=inertia, elements=friction)


LIMITS = vd.signals.JointLimits(
    low=np.array([-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973]),
    high=np.array([2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973]),
    speed=np.array([2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61]),
    acceleration=np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0]),
)


def main() -> float:
    """Design, record, identify, compare; the share of parameters within two deviations of the truth."""
    from veridyn.identify.excitation.interior import Barrier

    machine, rng = arm(), np.random.default_rng(0)
    correlated = (0.7 * np.eye(7) + 0.3) * np.outer(TORQUE_NOISE, TORQUE_NOISE)
    plan = vd.design_excitation(
        machine,
        LIMITS,
        noise=vd.estimators.Noise(correlated, memory=0.4),
        periods=10,
        starts=2,
        barrier=Barrier(iterations=80),
        rng=rng,
    )
    print(plan.summary())

    t, q, qd, qdd = plan.samples()  # what the controller runs: from rest, then ten periods
    motion = vd.Motion(t, q, qd, qdd)
    noise = vd.estimators.NoiseModel((1.0 - 0.4**2) * correlated, 0.4 * np.eye(7)[None])
    torques = vd.inverse_dynamics(machine, motion) + noise.drawn(len(t), rng)[0]
    log = vd.Motion(t, q + 1e-5 * rng.normal(size=q.shape), qd, qdd, forces=torques)

    method = vd.estimators.Likelihood(plan.frequency, highest=8, order=3, skip=plan.skipped)
    every = vd.IdentifySettings(sampling=vd.estimators.Sampling())  # reversals too, as the plan counts them
    fit = vd.identify(machine, log, method, every)
    print(fit.notes)
    predicted = dict(zip(plan.names, plan.sigma))
    error = (fit.values - fit.base.reduce(machine.parameters.values)) / fit.sigma
    print(f"\n{'parameter':<12}{'value':>12}{'sigma':>11}{'predicted':>11}{'error/sigma':>13}")
    for name, value, sigma, off in zip(fit.names, fit.values, fit.sigma, error):
        print(f"{name:<12}{value:12.5f}{sigma:11.2g}{predicted[name]:11.2g}{off:13.2f}")
    inside = float(np.mean(np.abs(error) < 2.0))
    print(f"\n{100 * inside:.0f} % of {len(error)} parameters within two deviations of the truth")
    return inside


if __name__ == "__main__":
    main()
