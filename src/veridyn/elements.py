"""Elements of a machine: springs, dampers, friction, motor inertias, drive gains and drag, and the kinds there are."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
