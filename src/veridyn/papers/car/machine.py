"""The cars of papers 000 and 001: three machines, each in mixed and in Lagrange form, and what the papers say of their parameters.

``car_38.yaml`` and ``car_20.yaml`` are the full and the reduced car of 2006, ``car_2002.yaml`` the one of 2002; the files say where each
number comes from. In mixed form the chassis is free and its motion is what an inertial unit measures; in Lagrange form it sits on six
virtual joints. Both are the same equations: joint rows are equal, and L₁..₆ = J_cᵀ [f; m] (paper 000, III.B). Units: SI, rad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import null_space

from veridyn.machines import described
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.elsewhere import on_six_joints
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.elements.element import Element
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.model.place import GROUND
from veridyn.spatial.inertia import INERTIAL

Form = Literal["mixed", "lagrange"]

TEN_ROWS = ("fx", "fy", "fz", "mx", "my", "mz", "z1", "z2", "z3", "z4")  # paper 000, VI.B
WHEELS_2002 = ("9", "12", "16", "20")
CHASSIS_2002 = "6"

NONE = float("nan")


class Printed(NamedTuple):
    """One line of Table II or IV: a priori value (NaN where the paper has none), estimate, its deviation, and that in percent."""

    a_priori: float
    estimate: float
    sigma: float
    percent: float


# Paper 000, identification with 38 degrees of freedom.
TABLE_II: Mapping[str, Printed] = MappingProxyType(
    {
        "M_c": Printed(1508.5, 1496.6, 2.2, 0.1),
        "MX_c": Printed(2421.1, 2403.0, 4.6, 0.1),
        "MY_c": Printed(0.0, 8.7, 1.6, 19.1),
        "MZ_c": Printed(-15.01, -12.2, 3.7, 30.5),
        "XX_c": Printed(622.15, 513.8, 10.3, 2.0),
        "YY_c": Printed(5898.0, 4856.7, 132.3, 2.7),
        "ZZ_c": Printed(6199.0, 6581.0, 52.5, 0.7),
        "XZ_c": Printed(44.12, 137.0, 11.8, 8.6),
        "XY_c": Printed(76.0, -11.2, 21.7, 193.8),
        "YZ_c": Printed(-13.0, -95.3, 27.7, 29.0),
        "M1": Printed(24.0, 41.2, 1.4, 3.4),
        "M2": Printed(24.0, 17.4, 0.9, 5.6),
        "M3": Printed(24.0, 25.6, 1.0, 4.1),
        "M4": Printed(24.0, 25.6, 0.8, 3.3),
        "k_arr": Printed(19938.0, 23639.0, 450.5, 1.9),
        "k_arf": Printed(19033.0, 21820.5, 344.1, 1.5),
        "k_1": Printed(20600.0, 26608.9, 748.1, 2.8),
        "fs_1": Printed(NONE, 9.1, 3.3, 36.4),
        "h_1": Printed(3200.0, 3528.4, 96.7, 2.7),
        "off_1": Printed(NONE, 12383.2, 226.5, 1.8),
        "k_2": Printed(20600.0, 26254.9, 644.7, 2.4),
        "fs_2": Printed(NONE, 35.8, 2.2, 6.3),
        "h_2": Printed(3200.0, 2981.1, 70.2, 2.3),
        "off_2": Printed(NONE, 12266.8, 194.9, 1.5),
        "k_3": Printed(22000.0, 26856.4, 876.9, 3.2),
        "fs_3": Printed(NONE, 2.1, 3.0, 144.2),
        "h_3": Printed(3800.0, 3832.5, 106.2, 2.7),
        "off_3": Printed(NONE, 10603.7, 252.2, 2.3),
        "k_4": Printed(22000.0, 31663.3, 911.0, 2.8),
        "fs_4": Printed(NONE, 5.0, 3.2, 64.1),
        "h_4": Printed(3800.0, 2599.8, 107.0, 4.1),
        "off_4": Printed(NONE, 12303.8, 262.4, 2.1),
        "Cx": Printed(NONE, 1.17158, 0.00311, 0.2),
    }
)

# Paper 000, with 20 degrees of freedom: estimate, deviation, percent. The a priori values are those of Table II.
_TABLE_IV: Mapping[str, tuple[float, float, float]] = {
    "M_c": (1497.1, 2.2, 0.1),
    "MX_c": (2401.6, 4.6, 0.1),
    "MY_c": (8.2, 1.6, 20.0),
    "MZ_c": (-17.3, 3.7, 21.5),
    "XX_c": (518.7, 10.2, 1.9),
    "YY_c": (4858.9, 132.4, 2.7),
    "ZZ_c": (6636.7, 61.8, 0.9),
    "XZ_c": (145.7, 11.8, 8.1),
    "XY_c": (-12.6, 21.7, 171.4),
    "YZ_c": (-95.9, 27.7, 28.9),
    "M1": (41.0, 1.3, 3.3),
    "M2": (17.3, 0.9, 5.6),
    "M3": (25.0, 1.0, 4.1),
    "M4": (25.8, 0.8, 3.2),
    "k_arr": (23660.5, 444.8, 1.8),
    "k_arf": (21800.0, 339.6, 1.5),
    "k_1": (26608.6, 738.4, 2.7),
    "fs_1": (9.1, 3.2, 35.9),
    "h_1": (3526.8, 95.5, 2.7),
    "off_1": (12384.3, 223.6, 1.8),
    "k_2": (26280.3, 636.4, 2.4),
    "fs_2": (35.9, 2.2, 6.2),
    "h_2": (2980.7, 69.3, 2.3),
    "off_2": (12274.2, 192.4, 1.5),
    "k_3": (26815.8, 865.7, 3.2),
    "fs_3": (2.1, 3.0, 141.5),
    "h_3": (3832.4, 104.8, 2.7),
    "off_3": (10597.8, 249.0, 2.3),
    "k_4": (31628.4, 899.5, 2.8),
    "fs_4": (5.0, 3.2, 63.3),
    "h_4": (2597.5, 105.7, 4.0),
    "off_4": (12291.8, 259.0, 2.1),
    "Cx": (1.1, 0.00363, 0.31192),
}
TABLE_IV: Mapping[str, Printed] = MappingProxyType(
    {name: Printed(TABLE_II[name].a_priori, *line) for name, line in _TABLE_IV.items()}
)


def car_38(form: Form = "mixed", wheels: bool = False) -> Machine:
    """Paper 000's car of 38 degrees of freedom: a free chassis and 32 coordinates, or 38 coordinates in Lagrange form.

    Chassis and unsprung masses have inertia, as in the paper (V.D); with `wheels` the wheels have too.
    """
    return _of_2006("car_38.yaml", form, wheels)


def car_20(form: Form = "mixed", wheels: bool = False) -> Machine:
    """Paper 000's car of 20 degrees of freedom: a free chassis and 14 coordinates, or 20 coordinates in Lagrange form.

    Chassis and unsprung masses have inertia, as in the paper (V.D); with `wheels` the wheels have too.
    """
    return _of_2006("car_20.yaml", form, wheels)


def car_2002(shared_steering: bool = False, form: Form = "lagrange") -> Machine:
    """Paper 001's car: 20 bodies on 16 coordinates, the first six those of the chassis, or ten and a free chassis in mixed form.

    The paper counts its steering angle twice. With `shared_steering` it is one coordinate, beta, and one row less.
    """
    machine = described("car_2002.yaml")
    if shared_steering:
        steered = ("14", "18")
        joints = [replace(j, coordinates=("beta",)) if j.name in steered else j for j in machine.joints]
        machine = _rebuilt(machine, joints=joints)
    return machine if form == "lagrange" else _freed(machine, CHASSIS_2002)


def _of_2006(name: str, form: Form, wheels: bool) -> Machine:
    machine = described(name)
    if not wheels:
        links = [replace(k, inertia=None, real=False) if k.name.startswith("wheel") else k for k in machine.links]
        machine = _rebuilt(machine, links)
    return machine if form == "mixed" else on_six_joints(machine)


def _rebuilt(
    machine: Machine,
    links: Sequence[Link] | None = None,
    joints: Sequence[Joint] | None = None,
    elements: Sequence[Element] | None = None,
) -> Machine:
    """The same machine of other bodies, joints or elements, all its parameters estimated."""
    return Machine.build(
        machine.links if links is None else links,
        machine.joints if joints is None else joints,
        name=machine.name,
        gravity=machine.gravity,
        elements=machine.elements if elements is None else elements,
    )


def _freed(machine: Machine, chassis: str) -> Machine:
    """A machine on virtual joints with its chassis cut free; gravity is turned into the chassis' axes at q = 0."""
    names = machine.body_names[machine.body_names.index(chassis) :]
    free = Joint(name=chassis, kind="floating", a=GROUND, b=chassis, cut="no")
    joints = [free, *(machine.described.spanning.carriers[name].joint for name in names[1:])]
    R, _ = body_pose(machine, np.zeros((1, machine.n)), chassis)
    return _rebuilt(
        replace(machine, gravity=R[0].T @ machine.gravity), [machine.by_name[name] for name in names], joints
    )


def without_elements(machine: Machine) -> Machine:
    """The bodies alone, so that base parameters follow from the closed rules and other programs can be compared."""
    return _rebuilt(machine, elements=())


def estimated_33(machine: Machine) -> Machine:
    """The identification model of paper 000 (VI.B, Table II) for either car of 2006: 10 + 4 M + 2 k_ar + 4 (k, fs, h, off) + Cx.

    The other inertial parameters are known to be zero, those of the wheels too, at whose centres the dynamometers measure (V.D).
    """
    inertial = (k.parameter(symbol) for k in machine.links if k.real for symbol in INERTIAL)
    return machine.with_parameters(machine.parameters.known({name: 0.0 for name in inertial if name not in TABLE_II}))


def estimated(machine: Machine, table: Mapping[str, Printed] = TABLE_II) -> Machine:
    """A car of 2006 with the estimates of Table II, or IV, in place of the a priori values.

    No body has the chassis inertia of either table: about its centre, roll and pitch together are 1500 kg*m^2 and yaw is 2700.
    """
    return machine.with_parameters({name: line.estimate for name, line in table.items()})


def symmetric_wheels(machine: Machine) -> Machine:
    """Table 2 of paper 001: of each wheel only XX = YY, ZZ and M; the elements stay estimated."""
    zero = {f"{s}{j}": 0.0 for j in WHEELS_2002 for s in ("XY", "XZ", "YZ", "MX", "MY", "MZ")}
    ties = {f"YY{j}": f"XX{j}" for j in WHEELS_2002}
    return machine.with_parameters(machine.parameters.known(zero).tied(ties))


@dataclass(frozen=True)
class StaticLoads:
    """A car at rest on a level road: by suspension coordinate, the wheel's load in N and the clearance in m."""

    loads: Mapping[str, float]
    clearances: Mapping[str, float]

    @property
    def total(self) -> float:
        """N, all wheels together."""
        return sum(self.loads.values())


def static_loads(machine: Machine) -> StaticLoads:
    """What the wheels carry at rest, and where the suspensions stand: springs, offsets and bars against weight, tyres rigid and equal.

    Four loads on three balances: the fourth condition is that the wheel centres lie in a plane, zᵢ = a + b xᵢ + c yᵢ. Tilts of the chassis
    are taken as small. What is weighed is what has inertia: without wheels, the load is what a dynamometer at the hub reads.
    """
    standing = on_six_joints(machine) if machine.base == "free" else machine
    carried = [(name, standing.described.spanning.carriers[name].joint) for name in standing.described.links]
    sliding = [(name, j.coordinate_names[0]) for name, j in carried if j.kind == "sliding" and not any(j.motors)][-4:]
    bodies, names = [name for name, _ in sliding], [coordinate for _, coordinate in sliding]
    q = np.zeros((9, standing.n))
    push = {body: np.zeros((9, 6)) for body in bodies}
    for k, (body, coordinate) in enumerate(sliding):
        q[1 + k, standing.coordinates.index(coordinate)] = 1.0
        push[body][5 + k, 2] = 1.0
    rest = np.zeros_like(q)
    rows = [*standing.coordinates[:6], *names]
    force = inverse_dynamics(standing, Motion(np.arange(9.0), q, rest, rest, wrenches=push), rows)
    # At rest the rows are affine in clearances and loads: force = f0 + Z z + N n.
    f0, Z, N = force[0], (force[1:5] - force[0]).T, (force[5:] - force[0]).T
    places = np.array([body_pose(standing, q[:1], body)[1][0] for body in bodies])
    plane = np.column_stack([np.ones(4), places @ null_space(standing.gravity[None])])  # 1, and two level axes
    A = np.hstack([Z @ plane, N])
    sizes = np.linalg.norm(A, axis=0)  # N/m beside 1: scaled, so that no digits are lost
    found = np.linalg.lstsq(A / sizes, -f0, rcond=None)[0] / sizes
    return StaticLoads(
        dict(zip(names, found[3:].tolist(), strict=True)), dict(zip(names, (plane @ found[:3]).tolist(), strict=True))
    )


# Paper 001, section 6.2: the wheel loads of the car at rest, in N: rear left, rear right, front left, front right.
LOADS_2002 = (3100.0, 3190.0, 4720.0, 4710.0)
# Four wheels, two rear and two front halves of the axles, in kg.
UNSPRUNG_2002 = 4 * 18.8 + 2 * 16.0 + 2 * 12.8


@dataclass(frozen=True)
class WeightCheck:
    """The mass by wheel loads, `total` and `sprung`, against the mass `identified`, in kg."""

    total: float
    sprung: float
    identified: float

    @property
    def difference(self) -> float:
        """As a fraction of `sprung`."""
        return (self.identified - self.sprung) / self.sprung


def weight_check(
    identified: float, loads: Sequence[float] = LOADS_2002, unsprung: float = UNSPRUNG_2002, gravity: float = 9.8
) -> WeightCheck:
    """Section 6.2 of paper 001: ΣF_z = M_tot g at rest, less the unsprung mass, against the chassis mass that was identified (kg).

    The paper's numbers, 1604 kg, 1471 kg and 6.47 %, are rounded on the way; unrounded the difference is 6.45 %.
    """
    total = sum(loads) / gravity
    return WeightCheck(total, total - unsprung, identified)
