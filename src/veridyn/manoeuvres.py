"""Motions, forces and commands of simulated machines, and the errors of real sensors.

Examples
--------
>>> import numpy as np
>>> import veridyn as vd
>>> released = vd.manoeuvres.Driven(duration=2.0, rate=100.0, q=[0.3], qd=[0.0])
>>> released.duration, released.rate
(2.0, 100.0)
>>> from veridyn.manoeuvres import *
>>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))
>>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
>>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)
>>> path = vd.signals.SplineTrajectory(0.2 * np.sin(np.arange(8))[:, None], frequency=0.5)
>>> exactly: Manoeuvre = Prescribed(path, 1.0, 100.0)
>>> encoder: Imperfections = {"q.*": Imperfection(noise=1e-4, quantum=1e-5)}
>>> log = vd.simulate(pendulum, exactly, rng=np.random.default_rng(0), imperfections=encoder)
>>> log.names
('q.hinge',)
>>> followed = vd.simulate(pendulum, Tracking(path, 0.2, 100.0, kp=[80.0], kd=[8.0]), rng=np.random.default_rng(0))
>>> servo = vd.model.Controller(name="servo", kind="pd", on="hinge", rate=500, constants={"kp": 60.0, "kd": 4.0})
>>> steps = vd.Experiment.from_arrays([0.0, 0.1], {"command.hinge": [0.0, 0.3]}, {"command.hinge": "rad"})
>>> asked = CommandLog(steps, ("hinge",), "hold")
>>> commanded = Commanded(asked, 0.2, 100.0, q=[0.0], qd=[0.0])
>>> vd.simulate(pendulum.with_controllers([servo]), commanded, rng=np.random.default_rng(0)).names
('q.hinge', 'force.hinge', 'command.hinge')
>>> bends = Steered(5.0, 20.0, speed=20.0, steer=lambda t: 0.03 * np.sin(0.8 * t))
>>> wheel, turning = vd.signals.PulseWheel(holes=40), vd.model.Channel("wheel", 0.01 * np.arange(20), 0.1 * np.arange(20.0), "rad")
>>> edge_times(turning, wheel)[:2].round(4), edge_intervals(turning, wheel)[1][:2].round(4)
(array([0.0157, 0.0314]), array([0.0157, 0.0157]))
>>> wheel_count(turning, wheel, "count").values[:5]
array([0., 0., 1., 1., 2.])
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
