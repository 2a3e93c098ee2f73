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
