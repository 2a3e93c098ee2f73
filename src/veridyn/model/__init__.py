"""What a machine is, and the data types that the other packages exchange: machines, parameters, motions, experiments.

Examples
--------
>>> import veridyn as vd
>>> spring = vd.model.Element(kind="spring", on={"hinge": 1.0}, value=30.0)
>>> rod, hinge = vd.model.Link(name="rod"), vd.model.Joint(name="hinge", a="ground", b="rod")
>>> vd.model.Machine.build([rod], [hinge], elements=[spring]).parameters["k_hinge"]
30.0

A linkage as a tree that is cut open, with what acts on it:

>>> import numpy as np
>>> from veridyn.model import *
>>> bodies = [Body("crank"), Body("rod", "crank", actuated=False), Body("rocker", actuated=False)]
>>> pin = Loop("pin", "turning", Attachment("rod", vd.spatial.MDH(d=1.0)), Attachment("rocker", vd.spatial.MDH(d=0.8)))
>>> loads = [Drive("motor", "crank", 2.0), Force("wind", Marker("rod", (0.5, 0, 0)), [3, 0, 0]), Torque("twist", "rod", [0, 0, 1])]
>>> linkage = Machine.of_bodies(bodies, loops=[pin], loads=loads, assembly=Assembly(guess={"rod": 1.0, "rocker": 2.0}))
>>> linkage.coordinates, isinstance(linkage.parameters, ParameterSet)
(('crank', 'rod', 'rocker'), True)
>>> tied = linkage.parameters.tied({"YY_rod": "ZZ_rod"})  # a round rod
>>> tied.ties["YY_rod"] == Tie("ZZ_rod", 1.0)
True
>>> Uncertainty(("M_rod",), np.eye(1)).names, Transmission(("m1",), ("crank",), np.array([[0.02]])).motors
(('M_rod',), ('m1',))

A base that moves, a joint that is locked, a servo, a flexible joint, a car:

>>> dog = Machine.of_bodies([Body("trunk"), Body("hip", "trunk"), Body("knee", "hip")], base="free")
>>> on_six_joints(dog).coordinates[:3], rebased(dog, "knee").coordinates, welded(dog, {"knee": 0.0}, unknown="keep").coordinates
(('base_x', 'base_y', 'base_z'), ('knee', 'hip'), ('hip',))
>>> servo = Controller(name="servo", kind="pd", on="hip", rate=500, constants={"kp": 60.0, "kd": 4.0})
>>> dog.with_controllers([servo]).controllers[0].name
'servo'
>>> Flexible(stiffness=500.0, inertia=0.2).damping
0.0
>>> saloon = car_machine("saloon", {"mass": 1400, "front": 1.2, "rear": 1.5, "front_stiffness": PriorValue(15.0, 5.0)})
>>> isinstance(saloon.car, CarDescription)
True
>>> still = Pose(np.zeros(1), np.eye(3)[None], np.zeros((1, 3)))
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
