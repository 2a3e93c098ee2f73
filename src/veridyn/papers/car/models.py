"""The models that a study of the car compares, and the ways in which its signals become equations.

Three ways. `as_printed` is that of paper 000, VI.B: everything through 3.125 Hz except the clearances, central differences, signals as the
instruments give them. `one_filter` passes columns and measurements of all rows through the same 3.125 Hz, in parallel. `corrected` has
one filter for each row: 3.125 Hz for the chassis, which the driveline's modes at 3.9 to 5.5 Hz disturb, and 20 Hz for the suspensions,
which need the wheel's hop at 12.7 Hz; and it projects the suspensions' rows on the wheels' paths.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import DataWarning
from veridyn.identify.regression.sampling import Sampling
from veridyn.model.elements.element import drag, offset
from veridyn.model.machine import Machine
from veridyn.model.motion import BaseMotion, Motion
from veridyn.papers.car.drive import ENDS, Campaign
from veridyn.papers.car.knowledge import paths
from veridyn.papers.car.machine import TEN_ROWS, estimated_33
from veridyn.papers.car.simulator.description import WheelCarrier
from veridyn.signals.butterworth import Butterworth, zero_phase
from veridyn.signals.derivative import derivative
from veridyn.signals.motion import Signals
from veridyn.spatial.inertia import INERTIAL

Array = NDArray[np.float64]
ZERO = "zero_fx"
CHASSIS = TEN_ROWS[:6]
SLOW, FAST = (
    Butterworth(3.125),
    Butterworth(20.0),
)  # paper 000, VI.B; above the wheel's hop, V.A's band of the clearances
KEPT = 5  # of so many samples at 500 Hz, one
TRIM = 100  # samples at each end
CARRIER_SYMBOLS = tuple(s for s in INERTIAL if s != "M")
OTHER_AIR = {"Cy": "fy", "Cz": "fz", "Cl": "mx", "Cm": "my", "Cn": "mz"}


def thirty_three(machine: Machine) -> Machine:
    """The 33 of Table II, and the zero of the force along x: without it a zero of the instruments would be taken for drag."""
    return estimated_33(machine).with_elements([offset("chassis.fx", 0.0, ZERO)])


def asking(machine: Machine, names: Iterable[str]) -> Machine:
    """The same machine with these parameters estimated as well."""
    p = machine.parameters
    wanted = set(names)
    states = tuple("estimated" if n in wanted else s for n, s in zip(p.names, p.states, strict=True))
    return machine.with_parameters(replace(p, states=states))


def with_unsprung(machine: Machine) -> Machine:
    """The 33 and the nine other inertial parameters of each unsprung body."""
    return asking(thirty_three(machine), (f"{s}{i}" for s in INERTIAL for i in range(1, 5)))


def with_carriers(machine: Machine, carriers: tuple[WheelCarrier, WheelCarrier]) -> Machine:
    """The machine with the nine inertial parameters beside the mass of each unsprung body known from a drawing."""
    values = {
        f"{symbol}{i + 1}": x
        for i in range(4)
        for symbol, x in zip(INERTIAL, carriers[i // 2].ten(right=bool(i % 2)), strict=True)
        if symbol in CARRIER_SYMBOLS
    }
    return machine.with_parameters(machine.parameters.replacing(values))


def every_standard(machine: Machine) -> Machine:
    """All of VI: 50 inertial parameters, suspensions, bars, and six components of the air; and the zero along x."""
    six = [drag(f"chassis.{row}", 0.0, name) for name, row in OTHER_AIR.items()]
    return with_unsprung(machine).with_elements(replace(e, typical=0.1) for e in six)


def corrected(machine: Machine) -> Sampling:
    return Sampling(filter=FAST, filters=dict.fromkeys(CHASSIS, SLOW), along=paths(machine), decimate=KEPT, trim=TRIM)


def plain_rows(machine: Machine) -> Sampling:
    """The corrected filters with the rows of the clearances alone, as the paper has them."""
    return replace(corrected(machine), along={})


def one_filter(machine: Machine) -> Sampling:
    return Sampling(filter=SLOW, decimate=KEPT, trim=TRIM)


def as_printed(machine: Machine) -> Sampling:
    """No filter of the equations: the signals of :func:`printed_motion` have passed theirs."""
    return Sampling(decimate=KEPT, trim=TRIM)


def printed_motion(made: Campaign, machine: Machine, name: str) -> Motion:
    """A drive through the filters of VI.B: all but clearances at 3.125 Hz, and central differences, whose bias is part of the "
    "comparison."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        m = made.motion(machine, name, common=None, signals=Signals(lowpass=None, derivative="central", trim=ENDS))
    rate = 1.0 / float(np.median(np.diff(m.t)))

    def low(x: Array) -> Array:
        return zero_phase(x, rate, SLOW)

    assert m.base is not None and m.base.velocity is not None  # a car's
    omega = low(m.base.omega)
    turning = derivative(omega, rate, 1, "central")
    base = BaseMotion(omega, turning, low(m.base.acceleration), low(m.base.velocity))
    others = [k for k, c in enumerate(machine.coordinates) if not c.startswith("z") or c.startswith("zt")]
    q, qd, qdd = m.q.copy(), m.qd.copy(), m.qdd.copy()
    for x in (q, qd, qdd):
        x[:, others] = low(x[:, others])
    wrenches = {body: low(w) for body, w in m.wrenches.items()}
    return replace(m, q=q, qd=qd, qdd=qdd, base=base, wrenches=wrenches)


def held(m: Motion, machine: Machine, families: Iterable[str]) -> Motion:
    """The motion with some of a wheel's coordinates held at zero: "dl" stands for dl1 to dl4. Steering is left as it is."""
    wheels = ("3", "4") if "beta" in families else ("1", "2", "3", "4")
    still = [machine.coordinates.index(f"{f}{i}") for f in families for i in wheels]
    q, qd, qdd = m.q.copy(), m.qd.copy(), m.qdd.copy()
    for x in (q, qd, qdd):
        x[:, still] = 0.0
    return replace(m, q=q, qd=qd, qdd=qdd)
