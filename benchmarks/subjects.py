"""The machines measured, and the same machines in Pinocchio."""

from __future__ import annotations

from benchmarks.made_logs import arm, car, motion
from strangers.pinocchio_oracle import PinModel

__all__ = ["PinModel", "arm", "car", "motion"]
