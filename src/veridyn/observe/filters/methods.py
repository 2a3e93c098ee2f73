"""The filters of machines by the words that stand for them.

========================= ====================== ============================================================== ==============
word                      object                 what carries the covariance                                    forces
========================= ====================== ============================================================== ==============
linear                    LinearKF               the machine's tangent where it starts, at rest                 estimated
error_ekf                 ErrorEKF               an integrator (paper 003, equation 54): the thesis' errorEKF   taken as known
error_ekf_force           ForceErrorEKF          the accelerations' exact derivatives, in first order           estimated
ekf                       EKF                    the exact derivative of the machine's step                     estimated
ukf                       UKF                    2n + 1 machines side by side                                   estimated
smoother                  Smoother               that of the ekf, then backwards (Rauch, Tung and Striebel)     estimated
========================= ====================== ============================================================== ==============
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from veridyn.errors import ModelError
from veridyn.observe.filters.ekf import EKF
from veridyn.observe.filters.filter import ErrorModel, Filter
from veridyn.observe.filters.ukf import UKF
from veridyn.settings import method_of


@dataclass(frozen=True, repr=False)
class LinearKF(EKF):
    """The linear Kalman filter on the machine's tangent at rest, in the pose it starts from."""

    word: ClassVar[str] = "linear"


@dataclass(frozen=True, repr=False)
class ErrorEKF(EKF):
    """The error-state filter of paper 003 (equations 54 to 57): errors of acceleration do not depend on the pose, forces are known.

    `accelerometer`: "full" makes rows of H of accelerometers the whole derivative of the reading, accelerations of the machine included;
    "attitude" keeps ∂h/∂q at constant q̇ and q̈, as equation 116 is printed: such a sensor then corrects the attitude alone.
    `position`: "place" leaves the turns of a free base out of the rows of position sensors, lever arm and all, as equation 89 is printed;
    such a sensor then corrects the place alone.
    `correction`: "closed" solves positions, then velocities after each correction; "velocity" moves dependent coordinates by the velocity
    problem alone, as equation 58 is printed, which leaves constraints open until the next step. Natural coordinates alone have it.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> encoder = vd.Sensor("encoder", "coordinate", "hinge", 1e-3)
    >>> pendulum = vd.Machine.build([rod], [hinge], sensors=[encoder], dimension=2)
    >>> log = vd.simulate(pendulum, vd.manoeuvres.Driven(1.0, 100.0, [0.3], [0.0]), rng=np.random.default_rng(0))
    >>> settings = vd.ObserveSettings(process_noise=vd.ProcessNoise(acceleration=1e-4), start={"hinge": 0.0})
    >>> vd.observe(pendulum, log, vd.ErrorEKF(), settings).states  # forces are taken as known
    ('hinge', 'hinge_dot')
    """

    word: ClassVar[str] = "error_ekf"
    error_model: ClassVar[ErrorModel] = "integrator"
    estimates_forces: ClassVar[bool] = False

    accelerometer: Literal["full", "attitude"] = "full"
    position: Literal["full", "place"] = "full"
    correction: Literal["closed", "velocity"] = "closed"


@dataclass(frozen=True, repr=False)
class ForceErrorEKF(EKF):
    """The error-state filter with estimated forces and the exact derivatives of the accelerations, in first order over a step."""

    word: ClassVar[str] = "error_ekf_force"
    error_model: ClassVar[ErrorModel] = "forward"


@dataclass(frozen=True, repr=False)
class Smoother(EKF):
    """The extended Kalman filter over a whole log, then back along it: every state in the light of all readings."""

    word: ClassVar[str] = "smoother"


FILTERS: dict[str, type[Filter]] = {kind.word: kind for kind in (LinearKF, ErrorEKF, ForceErrorEKF, EKF, UKF, Smoother)}


def filter_of(given: Filter | str, verb: str) -> Filter:
    """The filter that the third argument of `verb` means: an object, or a word for one with default settings."""
    return method_of(given, Filter, FILTERS, verb)


def refuse_smoother(method: Filter) -> None:
    """A filter beside a running program has no later readings to go back from."""
    if isinstance(method, Smoother):
        raise ModelError("a smoother needs the whole log.", where="Observer", expected="another filter")


def extended(method: Filter) -> Filter:
    """The filter that stands in where one is run many times: the extended one for an unscented one, whose steps cost many times as much."""
    return EKF(gate=method.gate, late=method.late, horizon=method.horizon) if isinstance(method, UKF) else method
