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

from veridyn.spatial.inertia import from_centre as from_centre
from veridyn.spatial.rotations import MDH as MDH
from veridyn.spatial.rotations import Placement as Placement
from veridyn.spatial.rotations import rot_x as rot_x
from veridyn.spatial.rotations import rot_y as rot_y
from veridyn.spatial.rotations import rot_z as rot_z
from veridyn.spatial.rotations import rotation_of as rotation_of
from veridyn.spatial.rotations import rotation_to_axis as rotation_to_axis
from veridyn.spatial.rotations import rpy as rpy
