"""What machines are led through in a simulation, and what real sensors do to a signal."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
