"""What a machine is, and the data types that the other packages exchange: machines, parameters, motions, experiments.

Examples
--------
>>> import veridyn as vd
>>> spring = vd.model.Element(kind="spring", on={"hinge": 1.0}, value=30.0)
>>> rod, hinge = vd.model.Link(name="rod"), vd.model.Joint(name="hinge", a="ground", b="rod")
>>> vd.model.Machine.build([rod], [hinge], elements=[spring]).parameters["k_hinge"]
30.0
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
