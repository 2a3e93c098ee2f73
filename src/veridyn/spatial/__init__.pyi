"""Rotations, transforms, spatial inertia and small linear algebra, over numbers or expressions."""

from veridyn.spatial.inertia import from_centre as from_centre
from veridyn.spatial.rotations import MDH as MDH
from veridyn.spatial.rotations import Placement as Placement
from veridyn.spatial.rotations import rot_x as rot_x
from veridyn.spatial.rotations import rot_y as rot_y
from veridyn.spatial.rotations import rot_z as rot_z
from veridyn.spatial.rotations import rotation_of as rotation_of
from veridyn.spatial.rotations import rotation_to_axis as rotation_to_axis
from veridyn.spatial.rotations import rpy as rpy
