"""Beside `simulate`: manoeuvres, and what real sensors do to a signal."""

from veridyn.simulate.imperfection import Imperfection as Imperfection
from veridyn.simulate.imperfection import Imperfections as Imperfections
from veridyn.simulate.manoeuvre import Driven as Driven
from veridyn.simulate.manoeuvre import Prescribed as Prescribed
from veridyn.simulate.manoeuvre import Tracking as Tracking
