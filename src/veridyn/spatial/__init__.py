"""Rotations, transforms, spatial inertia and small linear algebra, over numbers or expressions.

Examples
--------
>>> import numpy as np
>>> import veridyn as vd
>>> vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # XX XY XZ YY YZ ZZ MX MY MZ M about the origin
array([0.01, 0.  , 0.  , 0.6 , 0.  , 0.6 , 1.  , 0.  , 0.  , 2.  ])
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
