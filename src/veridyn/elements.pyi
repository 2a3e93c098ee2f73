"""Elements of a machine: springs, dampers, friction, motor inertias, drive gains and drag, and the kinds there are."""

from veridyn.model.element_kinds import KINDS as KINDS
from veridyn.model.element_kinds import ElementKind as ElementKind
from veridyn.model.element_laws import bump_stop as bump_stop
from veridyn.model.element_laws import cubic as cubic
from veridyn.model.element_laws import dead_zone as dead_zone
from veridyn.model.element_laws import law as law
from veridyn.model.element_laws import lugre as lugre
from veridyn.model.element_laws import maxwell as maxwell
from veridyn.model.element_laws import relaxation as relaxation
from veridyn.model.element_laws import table as table
from veridyn.model.element_laws import tanh_friction as tanh_friction
from veridyn.model.elements import Element as Element
from veridyn.model.elements import asymmetric as asymmetric
from veridyn.model.elements import coulomb as coulomb
from veridyn.model.elements import damper as damper
from veridyn.model.elements import drag as drag
from veridyn.model.elements import drive_gain as drive_gain
from veridyn.model.elements import motor_inertia as motor_inertia
from veridyn.model.elements import offset as offset
from veridyn.model.elements import spring as spring
from veridyn.model.elements import stribeck as stribeck
from veridyn.model.elements import strut as strut
from veridyn.model.elements import tyre as tyre
from veridyn.model.place import Marker as Marker
from veridyn.model.table_law import LawTable as LawTable
