"""Every file format: models, logs, results, and their units."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
