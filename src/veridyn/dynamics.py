"""Laws of motion: inverse and forward dynamics, their derivatives, kinematics, closed loops, contact wrenches, integration and C code."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
