"""Rotations, transforms, spatial inertia and small linear algebra, over numbers or expressions."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
