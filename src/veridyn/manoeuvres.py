"""Motions, forces and commands of simulated machines, and the errors of real sensors.

Examples
--------
>>> import veridyn as vd
>>> released = vd.manoeuvres.Driven(duration=2.0, rate=100.0, q=[0.3], qd=[0.0])
>>> released.duration, released.rate
(2.0, 100.0)
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
