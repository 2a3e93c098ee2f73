"""Filters for a user's own equations: systems of plain or compiled functions, runs and streams of filters, tuning and fitting."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
