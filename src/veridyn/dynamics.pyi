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

from veridyn.mechanics.ground.contact import plate_wrench as plate_wrench
from veridyn.mechanics.ground.contact import pressure_wrench as pressure_wrench
from veridyn.mechanics.ground.contact import sensor_wrench as sensor_wrench
from veridyn.mechanics.ground.contact import with_contacts as with_contacts
from veridyn.mechanics.system.batch import ManyRuns as ManyRuns
from veridyn.mechanics.system.batch import integrate_many as integrate_many
from veridyn.mechanics.system.integrate import BaseState as BaseState
from veridyn.mechanics.system.integrate import Inputs as Inputs
from veridyn.mechanics.system.integrate import Method as Method
from veridyn.mechanics.system.integrate import integrate as integrate
from veridyn.mechanics.tree.dynamics.codegen import c_source as c_source
from veridyn.mechanics.tree.dynamics.derivatives import forward_derivatives as forward_derivatives
from veridyn.mechanics.tree.dynamics.derivatives import inverse_derivatives as inverse_derivatives
from veridyn.mechanics.tree.dynamics.engine import Buffer as Buffer
from veridyn.mechanics.tree.dynamics.evaluator import Evaluator as Evaluator
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics as forward_dynamics
from veridyn.mechanics.tree.dynamics.forward import mass_matrix as mass_matrix
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics as inverse_dynamics
from veridyn.mechanics.tree.dynamics.inverse import regressor as regressor
from veridyn.mechanics.tree.elsewhere import actuators as actuators
from veridyn.mechanics.tree.loops.closure import close as close
from veridyn.mechanics.tree.loops.closure import closed_home as closed_home
from veridyn.mechanics.tree.loops.closure import closed_motion as closed_motion
from veridyn.mechanics.tree.loops.dynamics import loop_jacobian as loop_jacobian
from veridyn.mechanics.tree.recursion.kinematics import body_motion as body_motion
from veridyn.mechanics.tree.recursion.kinematics import body_pose as body_pose
from veridyn.mechanics.tree.recursion.kinematics import energy as energy
from veridyn.mechanics.tree.recursion.kinematics import jacobian as jacobian
