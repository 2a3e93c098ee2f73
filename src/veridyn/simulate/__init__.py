"""Everything known: a machine, a manoeuvre and sensors make the same log type that a real machine makes."""

from veridyn.verbs import speak

speak(__name__, "veridyn.simulate.simulator", "simulate")
