"""Filters: settings, results and virtual sensors of observed machines, and systems, runs, streams and tuning for a user's own equations.

Examples
--------
>>> import numpy as np
>>> import veridyn as vd
>>> stay, read = (lambda x, u, t, dt: x), (lambda x, u, t: x)
>>> walk = vd.filters.Discrete(("x",), ("y",), stay, read, [1e-4], [0.01])  # a number that walks, and one sensor
>>> log = vd.filters.Measurements(0.1 * np.arange(50), np.full(50, 2.0), ("y",))
>>> found = vd.filters.run(vd.filters.UKF(), walk, log, vd.filters.Belief(np.zeros(1), np.ones(1)))
>>> bool(abs(found.x[-1, 0] - 2.0) < 0.01)
True

The same with derivatives, sample by sample, tuned, smoothed and checked against the truth:

>>> from veridyn.filters import *
>>> one = lambda *_: np.eye(1)
>>> bool(check_jacobian(lambda x: x**2, lambda x: np.diag(2 * x), np.ones(2)).error < 1e-6)
True
>>> rng, start = np.random.default_rng(0), Belief(np.zeros(1), np.ones(1))
>>> truth = np.cumsum(0.02 * rng.normal(size=(400, 1)), axis=0)
>>> log = Measurements(0.1 * np.arange(400), truth + 0.1 * rng.normal(size=(400, 1)), ("y",))
>>> def built(values):
...     return Discrete(("x",), ("y",), stay, read, [values["q"]], [0.01], F=one, H=one)
>>> tuned = tune(EKF(), built, {"q": 1e-2}, [(log, start)])
>>> isinstance(tuned, Tuning), bool(1e-4 < tuned.values["q"] < 2e-3)  # 4e-4 is true
(True, True)
>>> found = run(EKF(gate=None), built({"q": 4e-4}), log, start)
>>> isinstance(found, Estimates), nis(found).consistent, nees(found, truth).consistent
(True, True, True)
>>> innovation_whiteness(found)["y"].is_white, closed_loop(found).rates.shape
(True, (1,))
>>> bool(np.mean((smooth(found).x - truth) ** 2) < np.mean((found.x - truth) ** 2))
True
>>> stream = Stream(EKF(), built({"q": 4e-4}), start)
>>> stream.step(0.0, [0.1]).status["y"] is Status.USED
True
>>> frozen([0.1, 0.2, 0.2, 0.2], repeats=2).tolist()
[False, False, False, True]

Filters and virtual sensors of machines, and a car:

>>> rod = vd.Link(name="rod", inertia=vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1])))
>>> hinge = vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
>>> sensor = vd.Sensor("encoder", "coordinate", "hinge", 1e-3)
>>> pendulum = vd.Machine.build([rod], [hinge], sensors=[sensor], gravity=(0, -9.81, 0))
>>> released = vd.manoeuvres.Driven(2.0, 100.0, q=[-1.2], qd=[0.0])
>>> log = vd.simulate(pendulum, released, rng=np.random.default_rng(0))
>>> settings = vd.ObserveSettings(start="readings", unknown=())
>>> others = LinearKF(), ForceErrorEKF(gate=0.999)  # they go in the place of the smoother
>>> states = vd.observe(pendulum, log, Smoother(), settings)
>>> isinstance(states, Observation), states.virtual(Virtual("tip", "velocity", vd.Marker("rod", (1, 0, 0))))["tip"].values.shape
(True, (201, 3))
>>> [f.sensor for f in sensor_findings(states, log)]
[]
>>> saloon = vd.model.car_machine("saloon", {"mass": 1400, "front": 1.2, "rear": 1.5})
>>> car_start(saloon, CarNoise(), yaw_rate=0.0).x, car_system(saloon, CarNoise()).states
(array([0., 0., 0., 0., 0.]), ('lateral_speed', 'yaw_rate', 'front_slip_error', 'rear_slip_error', 'bank'))
"""

from veridyn.model.parameters import ParameterFit as ParameterFit
from veridyn.model.parameters import ParameterGuess as ParameterGuess
from veridyn.model.single_track import CarNoise as CarNoise
from veridyn.observe.car.observation import CarObservation as CarObservation
from veridyn.observe.car.system import car_start as car_start
from veridyn.observe.car.system import car_system as car_system
from veridyn.observe.consistency.findings import sensor_findings as sensor_findings
from veridyn.observe.consistency.nis import innovation_whiteness as innovation_whiteness
from veridyn.observe.consistency.nis import nees as nees
from veridyn.observe.consistency.nis import nis as nis
from veridyn.observe.consistency.observability import closed_loop as closed_loop
from veridyn.observe.filters.methods import EKF as EKF
from veridyn.observe.filters.methods import UKF as UKF
from veridyn.observe.filters.methods import ErrorEKF as ErrorEKF
from veridyn.observe.filters.methods import ForceErrorEKF as ForceErrorEKF
from veridyn.observe.filters.methods import LinearKF as LinearKF
from veridyn.observe.filters.methods import Smoother as Smoother
from veridyn.observe.filters.run import run as run
from veridyn.observe.filters.run import smooth as smooth
from veridyn.observe.fitting import Tuning as Tuning
from veridyn.observe.fitting import fit_parameters as fit_parameters
from veridyn.observe.fitting import tune as tune
from veridyn.observe.measurements import Measurements as Measurements
from veridyn.observe.measurements import Status as Status
from veridyn.observe.measurements import frozen as frozen
from veridyn.observe.observation import Observation as Observation
from veridyn.observe.observation import Virtual as Virtual
from veridyn.observe.process_noise import ProcessNoise as ProcessNoise
from veridyn.observe.result import Belief as Belief
from veridyn.observe.result import Estimates as Estimates
from veridyn.observe.settings import ObserveSettings as ObserveSettings
from veridyn.observe.streaming.observer import Observer as Observer
from veridyn.observe.streaming.stream import Stream as Stream
from veridyn.observe.system import Continuous as Continuous
from veridyn.observe.system import Discrete as Discrete
from veridyn.observe.system import check_jacobian as check_jacobian
