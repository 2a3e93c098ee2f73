"""Rotations, transforms, spatial inertia and small linear algebra, over numbers or expressions.

Examples
--------
>>> import numpy as np
>>> import veridyn as vd
>>> vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # XX XY XZ YY YZ ZZ MX MY MZ M about the origin
array([0.01, 0.  , 0.  , 0.6 , 0.  , 0.6 , 1.  , 0.  , 0.  , 2.  ])
>>> from veridyn.spatial import MDH, Placement, rot_x, rot_y, rot_z, rotation_of, rotation_to_axis, rpy
>>> turn = rot_z(0.3) @ rot_y(0.2) @ rot_x(0.1)
>>> np.allclose(turn, rpy(0.1, 0.2, 0.3)), np.allclose(rotation_of(np.array([1.0, 0.0, 0.0, 0.0])), np.eye(3))
(True, True)
>>> Placement(rotation=rotation_to_axis([1, 0, 0]), position=(0, 0, 0.4)).rotation[:, 2]  # a joint along x
array([1., 0., 0.])
>>> MDH(alpha=np.pi / 2, d=0.3).alpha == np.pi / 2
True
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
