"""Filters: settings, results and virtual sensors of observed machines, and systems, runs, streams and tuning for a user's own equations."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
