"""Where everything of a simulated car stands in its state, its outputs and its inputs, and the settings as compiled code takes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veridyn.papers.car.simulator.contact import TyreNumbers
from veridyn.papers.car.simulator.forces import AeroNumbers, SuspensionNumbers
from veridyn.papers.car.simulator.tables import TableNumbers

Array = NDArray[np.float64]

# Places in the state.
POSITION, QUATERNION, VELOCITY, OMEGA, Z, ZD = 0, 3, 7, 10, 13, 17
ANGLE, SPIN, SLIP_X, SLIP_Y, RACK, BUSH, BUSHD = 21, 25, 29, 33, 37, 39, 59
TWIST, ENGINE, BLOCK, TURN, INTEGRAL, BRAKE, STATES = 79, 80, 81, 83, 85, 86, 87

# Places in the outputs of one instant: 3, 3, 4, 4, then per wheel 6 (wrench), 5 (tables), 5 rates, 5 accelerations, 7 (tyre); torques.
ACC, ALPHA, ZDD, SPIND, WRENCH, WHEEL, WHEELD, WHEELDD, TYRE = 0, 3, 6, 10, 14, 38, 58, 78, 98
DRIVE, BRAKING, AIR, RACKDD, OUTPUTS = 126, 130, 134, 140, 141

# Places in the inputs of one instant: steering wheel angle (rad), commanded speed (m/s) and its derivative, commanded braking (m/s²),
# whether the speed controller works (1) or not (0), and torque of the engine beside the controller's (N m at the wheels).
HAND, SPEED, PUSH, BRAKES, CONTROL, PEDAL, INPUTS = 0, 1, 2, 3, 4, 5, 6


class CarNumbers(NamedTuple):
    """All settings as arrays: ten of the chassis, ten of each carrier, mass, I_t and I_s of each wheel, and those of the parts."""

    chassis: Array
    carrier: Array
    wheel: Array
    place: Array
    steering: Array
    gravity: float
    push: float
    suspension: SuspensionNumbers
    tables: TableNumbers
    tyres: TyreNumbers
    driveline: Array
    brakes: Array
    air: AeroNumbers
    grip: float


class VehicleWork(NamedTuple):
    """Memory that is used again at every instant: the equations A, b; of each wheel its row along z, its tables, its moving vectors
    (:mod:`veridyn.papers.car.simulator.wheel`) and its tyre's wrench; state, rate, sum and outputs of a stage of a step."""

    A: Array
    b: Array
    column: Array
    rest: Array
    kin: Array
    keep: Array
    tyre: Array
    state: Array
    rate: Array
    total: Array
    out: Array


def workspace() -> VehicleWork:
    return VehicleWork(
        np.zeros((6, 6)),
        np.zeros(6),
        np.zeros((4, 6)),
        np.zeros((4, 2)),
        np.zeros((4, 5, 5)),
        np.zeros((4, 30)),
        np.zeros((4, 6)),
        np.zeros(STATES),
        np.zeros(STATES),
        np.zeros(STATES),
        np.zeros(OUTPUTS),
    )
