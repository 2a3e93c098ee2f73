"""Laws of motion: inverse and forward dynamics, their derivatives, kinematics, closed loops, contact wrenches, integration and C code."""

from veridyn.mechanics.codegen import c_source as c_source
from veridyn.mechanics.contact import plate_wrench as plate_wrench
from veridyn.mechanics.contact import pressure_wrench as pressure_wrench
from veridyn.mechanics.contact import sensor_wrench as sensor_wrench
from veridyn.mechanics.contact import with_contacts as with_contacts
from veridyn.mechanics.derivatives import forward_derivatives as forward_derivatives
from veridyn.mechanics.derivatives import inverse_derivatives as inverse_derivatives
from veridyn.mechanics.energy import energy as energy
from veridyn.mechanics.engine import Buffer as Buffer
from veridyn.mechanics.evaluator import Evaluator as Evaluator
from veridyn.mechanics.forward import forward_dynamics as forward_dynamics
from veridyn.mechanics.forward import mass_matrix as mass_matrix
from veridyn.mechanics.integrate import BaseState as BaseState
from veridyn.mechanics.integrate import Inputs as Inputs
from veridyn.mechanics.integrate import Method as Method
from veridyn.mechanics.integrate import integrate as integrate
from veridyn.mechanics.inverse import inverse_dynamics as inverse_dynamics
from veridyn.mechanics.kinematics import body_motion as body_motion
from veridyn.mechanics.kinematics import body_pose as body_pose
from veridyn.mechanics.kinematics import jacobian as jacobian
from veridyn.mechanics.loops.closure import close as close
from veridyn.mechanics.loops.closure import closed_home as closed_home
from veridyn.mechanics.loops.closure import closed_motion as closed_motion
from veridyn.mechanics.loops.projection import loop_jacobian as loop_jacobian
from veridyn.mechanics.regressor import regressor as regressor
from veridyn.mechanics.tree.virtual_base import actuators as actuators
