"""Elements of a machine: springs, dampers, friction, motor inertias, drive gains and drag, and the kinds there are.

Examples
--------
>>> import veridyn as vd
>>> vd.elements.damper("hinge", 0.2).parameter_name
'h_hinge'
>>> vd.elements.KINDS["spring"].turning
'N*m/rad'
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
