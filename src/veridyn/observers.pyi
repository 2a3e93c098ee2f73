"""Beside `observe`: observers that run in a program, virtual sensors and results."""

from veridyn.mechanics.single_track.noise import CarNoise as CarNoise
from veridyn.observe.car.observation import CarObservation as CarObservation
from veridyn.observe.filters.ekf import EKF as EKF
from veridyn.observe.filters.methods import ErrorEKF as ErrorEKF
from veridyn.observe.filters.methods import ForceErrorEKF as ForceErrorEKF
from veridyn.observe.filters.methods import LinearKF as LinearKF
from veridyn.observe.filters.methods import Smoother as Smoother
from veridyn.observe.filters.ukf import UKF as UKF
from veridyn.observe.observation import Observation as Observation
from veridyn.observe.process_noise import ProcessNoise as ProcessNoise
from veridyn.observe.streaming.observer import Observer as Observer
from veridyn.observe.virtual import Virtual as Virtual
