"""What a machine is, and the data types that travel through the rooms: machines, parameters, motions, experiments."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
