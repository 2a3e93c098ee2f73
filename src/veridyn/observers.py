"""Beside `observe`: observers that run in a program, virtual sensors and results."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
