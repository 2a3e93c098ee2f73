"""Elements of a machine: springs, dampers, friction, motor inertias, drive gains and drag, and the kinds there are.

Examples
--------
>>> import veridyn as vd
>>> from veridyn.elements import *
>>> damper("hinge", 0.2).parameter_name
'h_hinge'
>>> KINDS["spring"].turning, isinstance(KINDS["spring"], ElementKind)
('N*m/rad', True)
>>> dry = coulomb("q1"), stribeck("q1", speed=0.05), tanh_friction("q1", speed=0.01), *asymmetric("q2")
>>> [e.parameter_name for e in dry]
['fs_q1', 'fst_q1', 'ft_q1', 'fsp_q2', 'fsn_q2', 'hp_q2', 'hn_q2']
>>> stops = spring({"z1": 1, "z2": -1}), cubic("z1", rest=0.1), bump_stop("z1", gap=0.08), dead_zone("q3", gap=0.01)
>>> [e.parameter_name for e in stops]
['k_z1_z2', 'k3_z1', 'kb_z1', 'kd_q3']
>>> motor = motor_inertia("q1", 0.01), drive_gain("q1", "current"), dc_motor("q1", "volts", 1.1, 2e-3, 0.05), offset("q1")
>>> along = coulomb_along("z1", middle=0.0, half=0.5), drag("chassis.fx"), relaxation("y", length=0.4, signal="speed")
>>> slow = lugre("q1", deflection=1e-4, time=0.02), maxwell("q1", time=0.5)
>>> [sorted(e.constants) for e in slow]
[['deflection', 'ratio', 'speed', 'time'], ['time']]
>>> coil = strut("spring", Marker("ground", (0, 0, 0.5)), Marker("arm", (0.3, 0, 0)), 9e3, rest=0.25)
>>> cable = law("q2", "c**3", name="cable", unit="N*m/rad^3"), table("q2", [-1, 0, 1], [0.4, 0, 0.9])
>>> isinstance(cable[1].table, LawTable), isinstance(coil, Element)
(True, True)
"""

from veridyn.model.elements.element import Element as Element
from veridyn.model.elements.element import asymmetric as asymmetric
from veridyn.model.elements.element import bump_stop as bump_stop
from veridyn.model.elements.element import coulomb as coulomb
from veridyn.model.elements.element import coulomb_along as coulomb_along
from veridyn.model.elements.element import cubic as cubic
from veridyn.model.elements.element import damper as damper
from veridyn.model.elements.element import dc_motor as dc_motor
from veridyn.model.elements.element import dead_zone as dead_zone
from veridyn.model.elements.element import drag as drag
from veridyn.model.elements.element import drive_gain as drive_gain
from veridyn.model.elements.element import law as law
from veridyn.model.elements.element import lugre as lugre
from veridyn.model.elements.element import maxwell as maxwell
from veridyn.model.elements.element import motor_inertia as motor_inertia
from veridyn.model.elements.element import offset as offset
from veridyn.model.elements.element import relaxation as relaxation
from veridyn.model.elements.element import spring as spring
from veridyn.model.elements.element import stribeck as stribeck
from veridyn.model.elements.element import strut as strut
from veridyn.model.elements.element import table as table
from veridyn.model.elements.element import tanh_friction as tanh_friction
from veridyn.model.elements.element import tyre as tyre
from veridyn.model.elements.kinds import KINDS as KINDS
from veridyn.model.elements.kinds import ElementKind as ElementKind
from veridyn.model.elements.table_law import LawTable as LawTable
from veridyn.model.place import Marker as Marker
