"""Beside `observe`: observers that run in a program, virtual sensors and results."""

from veridyn.mechanics.single_track.noise import CarNoise as CarNoise
from veridyn.observe.car.observation import CarObservation as CarObservation
from veridyn.observe.ekf import EKF as EKF
from veridyn.observe.methods import ErrorEKF as ErrorEKF
from veridyn.observe.methods import ForceErrorEKF as ForceErrorEKF
from veridyn.observe.methods import LinearKF as LinearKF
from veridyn.observe.methods import Smoother as Smoother
from veridyn.observe.observation import Observation as Observation
from veridyn.observe.observer import Observer as Observer
from veridyn.observe.process_noise import ProcessNoise as ProcessNoise
from veridyn.observe.ukf import UKF as UKF
from veridyn.observe.virtual import Virtual as Virtual
