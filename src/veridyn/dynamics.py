"""Laws of motion: inverse and forward dynamics, their derivatives, kinematics, closed loops, contact wrenches, integration and C code.

Examples
--------
>>> import numpy as np
>>> import veridyn as vd
>>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
>>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
>>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)
>>> vd.dynamics.mass_matrix(pendulum, [[0.0]]).round(3)
array([[[0.6]]])
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
