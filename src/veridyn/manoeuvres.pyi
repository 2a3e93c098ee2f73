"""Motions, forces and commands of simulated machines, and the errors of real sensors."""

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
from veridyn.simulate.simulator import Steered as Steered
from veridyn.simulate.simulator import Tracking as Tracking
