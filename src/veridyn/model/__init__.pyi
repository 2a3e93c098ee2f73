"""What a machine is, and the data types that the other packages exchange: machines, parameters, motions, experiments.

Examples
--------
>>> import veridyn as vd
>>> spring = vd.model.Element(kind="spring", on={"hinge": 1.0}, value=30.0)
>>> rod, hinge = vd.model.Link(name="rod"), vd.model.Joint(name="hinge", a="ground", b="rod")
>>> vd.model.Machine.build([rod], [hinge], elements=[spring]).parameters["k_hinge"]
30.0
"""

from veridyn.mechanics.natural.description.to_machine import machine_of_points as machine_of_points
from veridyn.mechanics.tree.elsewhere import on_six_joints as on_six_joints
from veridyn.mechanics.tree.elsewhere import rebased as rebased
from veridyn.mechanics.tree.weld import welded as welded
from veridyn.model.car import CarDescription as CarDescription
from veridyn.model.controller import Controller as Controller
from veridyn.model.elements.element import Element as Element
from veridyn.model.experiment import Channel as Channel
from veridyn.model.experiment import Experiment as Experiment
from veridyn.model.flexible import Flexible as Flexible
from veridyn.model.flexible import with_flexible_joints as with_flexible_joints
from veridyn.model.graph import Body as Body
from veridyn.model.graph import Loop as Loop
from veridyn.model.link import Joint as Joint
from veridyn.model.link import Link as Link
from veridyn.model.load import Drive as Drive
from veridyn.model.load import Force as Force
from veridyn.model.load import Torque as Torque
from veridyn.model.load import Transmission as Transmission
from veridyn.model.machine import Machine as Machine
from veridyn.model.motion import BaseMotion as BaseMotion
from veridyn.model.motion import Motion as Motion
from veridyn.model.motion import Pose as Pose
from veridyn.model.parameters import ParameterSet as ParameterSet
from veridyn.model.parameters import Tie as Tie
from veridyn.model.parameters import Uncertainty as Uncertainty
from veridyn.model.place import Assembly as Assembly
from veridyn.model.place import Attachment as Attachment
from veridyn.model.place import Marker as Marker
from veridyn.model.sensor import Sensor as Sensor
from veridyn.model.single_track import PriorValue as PriorValue
from veridyn.model.single_track import car_machine as car_machine
