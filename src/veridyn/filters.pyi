"""Filters for a user's own equations: systems of plain or compiled functions, runs and streams of filters, tuning and fitting."""

from veridyn.model.parameter_fit import ParameterFit as ParameterFit
from veridyn.model.parameter_fit import ParameterGuess as ParameterGuess
from veridyn.observe.car.system import car_start as car_start
from veridyn.observe.car.system import car_system as car_system
from veridyn.observe.consistency.nis import innovation_whiteness as innovation_whiteness
from veridyn.observe.consistency.nis import nees as nees
from veridyn.observe.consistency.nis import nis as nis
from veridyn.observe.consistency.tuning import Tuning as Tuning
from veridyn.observe.consistency.tuning import tune as tune
from veridyn.observe.filters.ekf import EKF as EKF
from veridyn.observe.filters.run import run as run
from veridyn.observe.filters.smoother import smooth as smooth
from veridyn.observe.filters.ukf import UKF as UKF
from veridyn.observe.fitting import fit_parameters as fit_parameters
from veridyn.observe.history import closed_loop as closed_loop
from veridyn.observe.jacobian import check_jacobian as check_jacobian
from veridyn.observe.measurements import Measurements as Measurements
from veridyn.observe.measurements import Status as Status
from veridyn.observe.measurements import frozen as frozen
from veridyn.observe.result import Belief as Belief
from veridyn.observe.result import Estimates as Estimates
from veridyn.observe.streaming.stream import Stream as Stream
from veridyn.observe.system import Continuous as Continuous
from veridyn.observe.system import Discrete as Discrete
