"""Estimators and what stands beside `identify`: base parameters, plans of experiments, diagnoses, payloads, fleets and results.

Examples
--------
>>> import veridyn as vd
>>> vd.estimators.Robust(loss="tukey").c, vd.estimators.OLS().title  # each is an argument of vd.identify
(4.685, 'ordinary least squares')

What can be identified, what a log shows, and what to record next:

>>> import numpy as np
>>> from veridyn.estimators import *
>>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))
>>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
>>> friction = [vd.elements.damper("hinge", 0.5), vd.elements.coulomb("hinge", 0.3)]
>>> pendulum = vd.Machine.build([rod], [hinge], dimension=2, elements=friction)
>>> base = vd.base_parameters(pendulum)
>>> isinstance(base, BaseParameters), explain(pendulum, "M_rod").verdict, isinstance(explain(pendulum, "M_rod"), Explanation)
(True, 'without effect', True)
>>> limits = vd.signals.JointLimits([-2.0], [2.0], [4.0], [20.0])
>>> path = vd.signals.FourierTrajectory.random(np.random.default_rng(1), limits, harmonics=5, frequency=0.2)
>>> t, rng = 0.01 * np.arange(1000), np.random.default_rng(0)
>>> motion = vd.Motion(t, *path.at(t), forces=np.full((1000, 1), np.nan))
>>> forces = vd.inverse_dynamics(pendulum, motion) + 0.05 * rng.normal(size=(1000, 1))
>>> made = vd.Motion(t, motion.q, motion.qd, motion.qdd, forces=forces)
>>> settings = vd.IdentifySettings(sampling=Sampling(dead_zone=0.05), covariance=Hac(), acceptance=Acceptance(percent=5.0))
>>> fit = vd.identify(pendulum, made, "wls", settings)
>>> isinstance(fit["h_hinge"], Estimate), bool(abs(fit["h_hinge"].value - 0.5) < 4 * fit["h_hinge"].sigma)
(True, True)
>>> isinstance(vd.validate(fit, made), Validation), Auto() == Auto()
(True, True)
>>> factors = observation(pendulum, made)  # small triangular factors, of however many samples
>>> split = slow_and_fast(made)
>>> sigma, other = {"hinge": 0.05}, vd.Motion(t, 0.1 * motion.q, 0.1 * motion.qd, 0.1 * motion.qdd)
>>> select_motions(pendulum, {"large": made, "small": other}, sigma, count=1).order
('large',)
>>> isinstance(remedies(pendulum, other, {"large": made}, sigma), tuple)
True

Friction by held-out data, a simulation of the log, and many machines of one model:

>>> bare = vd.Machine.build([rod], [hinge], dimension=2)
>>> ladder = friction_ladder(bare, made, terms=("viscous", "coulomb", "quadratic"))
>>> isinstance(ladder, FrictionLadder), [step.term for step in ladder.entered]
(True, ['viscous', 'coulomb'])
>>> models = {"viscous": bare.with_elements(friction[:1]), "both": bare.with_elements(friction)}
>>> choice = friction_rivals(models, made)
>>> isinstance(choice, FrictionChoice), choice.chosen
(True, 'both')
>>> curved, speeds = stribeck_speeds(bare, made, ["hinge"], [0.05, 0.1, 0.2])
>>> bool(replay(fit.machine(), made, horizon=0.5).std_error < 0.1)
True
>>> fleet = identify_fleet(pendulum, {f"unit {k}": MadeMotions([k], lambda k: made) for k in range(4)})
>>> isinstance(fleet, Fleet), sorted(fleet.fits)
(True, ['unit 0', 'unit 1', 'unit 2', 'unit 3'])
>>> scaled = trust_prior(pendulum, made, Prior(), scales=(0.1, 1.0))
>>> cut = propose_cutoff(pendulum, lambda f: [made], lambda f: Sampling(), [5.0, 10.0])
>>> isinstance(cut, Cutoff)
True

The way from logs to a judged fit, which every door walks; each stage of it can be taken out or replaced:

>>> units = {"q.hinge": "rad", "force.hinge": "N*m"}
>>> log = vd.Experiment.from_arrays(t, {"q.hinge": made.q[:, 0], "force.hinge": forces[:, 0]}, units)
>>> work = Pipeline(machine=pendulum, training=[Recording(log=log)], how=Preparation(lowpass=5.0)).run()
>>> isinstance(work.identified.verdict, Verdict), work.identified.verdict.at_least("fair")
(True, True)

A load whose parameters are known, and one to be weighed:

>>> loaded = carrying(pendulum, made, "rod", vd.spatial.from_centre(1.0, [1.0, 0.0, 0.0], np.zeros(6)))
>>> "M_payload" in with_payload(fit, "rod").parameters.names
True
>>> Limits(limits, collision=Collision((Capsule("rod", (0, 0, 0), (1, 0, 0), 0.05),), (), floor=-2.0)).collision.floor
-2.0
>>> Clearance("rod", "ground", 0.1).distance, Noise(np.eye(1), memory=0.5).memory, NoiseModel(np.eye(1), np.zeros((0, 1, 1))).order
(0.1, 0.5, 0)
>>> FlexibleSettings(lowpass=10.0).lowpass, ResonanceSettings(low=2.0, high=30.0).high, Innovations(tuned=("slip_error",)).tuned
(10.0, 30.0, ('slip_error',))
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
