"""Unknown parameters: base parameters, streaming least squares, their deviations, and validation."""

from veridyn.verbs import speak

speak(__name__, "veridyn.identify.estimate", "identify")
