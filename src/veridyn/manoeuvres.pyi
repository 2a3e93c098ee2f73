"""Motions, forces and commands of simulated machines, and the errors of real sensors.

Examples
--------
>>> import veridyn as vd
>>> released = vd.manoeuvres.Driven(duration=2.0, rate=100.0, q=[0.3], qd=[0.0])
>>> released.duration, released.rate
(2.0, 100.0)
"""

from veridyn.simulate.car import Steered as Steered
from veridyn.simulate.commanded import Commanded as Commanded
from veridyn.simulate.commanded import CommandLog as CommandLog
from veridyn.simulate.imperfection import Imperfection as Imperfection
from veridyn.simulate.imperfection import Imperfections as Imperfections
from veridyn.simulate.imperfection import edge_intervals as edge_intervals
from veridyn.simulate.imperfection import edge_times as edge_times
from veridyn.simulate.imperfection import wheel_count as wheel_count
from veridyn.simulate.simulator import Driven as Driven
from veridyn.simulate.simulator import Manoeuvre as Manoeuvre
from veridyn.simulate.simulator import Prescribed as Prescribed
from veridyn.simulate.simulator import Tracking as Tracking
