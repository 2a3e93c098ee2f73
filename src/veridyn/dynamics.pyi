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
>>> from veridyn.dynamics import *
>>> motion = vd.Motion(t=[0.0], q=[[0.0]], qd=[[0.0]], qdd=[[0.0]], forces=[[0.0]])
>>> forward_dynamics(pendulum, motion).qdd.round(2)  # it falls: -g MX/ZZ
array([[-16.35]])
>>> inverse_derivatives(pendulum, motion).by_drive.round(3), forward_derivatives(pendulum, motion).by_drive.round(3)
(array([[[0.6]]]), array([[[1.667]]]))
>>> fall = integrate(pendulum, np.linspace(0, 1, 11), [0.0], [0.0], Inputs(), method=Method("RK4", 1e-3)).motion
>>> bool(np.ptp(energy(pendulum, fall).total) < 1e-6)  # nothing brakes it
True
>>> many = integrate_many(pendulum, fall.t, [0.0], [0.0], parameters=np.tile(pendulum.parameters.values, (2, 1)))
>>> isinstance(many, ManyRuns), bool(np.allclose(many.q[0, :, 0], fall.q[:, 0], atol=1e-6))
(True, True)
>>> body_pose(pendulum, [[0.3]], "rod")[1], jacobian(pendulum, [[0.3]], "rod").shape, body_motion(pendulum, fall, "rod").omega.shape
(array([[0., 0., 0.]]), (1, 6, 1), (11, 3))
>>> kept = Buffer()  # memory that is used again: good until the next call with it
>>> vd.regressor(pendulum, fall, out=kept).shape, "#include <math.h>" in c_source(pendulum).code
((11, 1, 10), True)

A machine with loops, and wrenches from force plates and sensors:

>>> linkage = vd.load_model("veridyn:linkage.yaml")
>>> home = closed_home(linkage)  # all joints, loops closed
>>> driven = [linkage.coordinates.index(c) for c in actuators(linkage).coordinates]
>>> bool(np.allclose(close(linkage, home[None, driven]).q, home)), loop_jacobian(linkage, home[None]).shape
(True, (1, 3, 1))
>>> rest = np.zeros((2, len(driven)))
>>> closed_motion(linkage, [0.0, 0.1], home[driven] + rest, rest, rest).q.shape
(2, 3)
>>> up = np.array([[0.0, 0.0, 20.0]])  # N, on a plate at x = 0.4 m, and by its centre of pressure
>>> plate_wrench(up, 0.0 * up, vd.spatial.Placement(position=(0.4, 0.0, 0.0))), pressure_wrench(up, [[0.4, 0.0, 0.0]])
(array([[ 0.,  0., 20.,  0., -8.,  0.]]), array([[ 0.,  0., 20.,  0., -8.,  0.]]))
>>> sensor_wrench([[0, 0, 20.0, 0, 0, 0]], vd.spatial.Placement(position=(0.1, 0, 0)))  # at the link's origin
array([[ 0.,  0., 20.,  0., -2.,  0.]])
>>> trunk = vd.Machine.of_bodies([vd.model.Body("trunk")], base="free")
>>> BaseState(velocity=(1.0, 0.0, 0.0)).velocity
(1.0, 0.0, 0.0)
>>> level = vd.BaseMotion(np.zeros((1, 3)), np.zeros((1, 3)), np.array([[0.0, 0.0, 9.81]]))
>>> standing = vd.Motion(t=[0.0], q=np.zeros((1, 0)), qd=np.zeros((1, 0)), qdd=np.zeros((1, 0)), base=level)
>>> pose = vd.model.Pose(np.zeros(1), np.eye(3)[None], np.zeros((1, 3)))
>>> with_contacts(trunk, standing, pose, {"trunk": pressure_wrench(up, [[0.0, 0.0, 0.0]])}).wrenches["trunk"]
array([[ 0.,  0., 20.,  0.,  0.,  0.]])
"""

from veridyn.mechanics.ground.contact import plate_wrench as plate_wrench
from veridyn.mechanics.ground.contact import pressure_wrench as pressure_wrench
from veridyn.mechanics.ground.contact import sensor_wrench as sensor_wrench
from veridyn.mechanics.ground.contact import with_contacts as with_contacts
from veridyn.mechanics.system.batch import ManyRuns as ManyRuns
from veridyn.mechanics.system.batch import integrate_many as integrate_many
from veridyn.mechanics.system.gradient import RunGradient as RunGradient
from veridyn.mechanics.system.gradient import integrate_gradient as integrate_gradient
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
from veridyn.mechanics.tree.loops.closure import loop_jacobian as loop_jacobian
from veridyn.mechanics.tree.recursion.kinematics import body_motion as body_motion
from veridyn.mechanics.tree.recursion.kinematics import body_pose as body_pose
from veridyn.mechanics.tree.recursion.kinematics import energy as energy
from veridyn.mechanics.tree.recursion.kinematics import jacobian as jacobian
