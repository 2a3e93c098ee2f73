"""Beside `identify`: settings, results, choice of motions, payloads, and what explains a fit."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
