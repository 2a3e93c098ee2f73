"""One reproducible run: its settings, seeds and inputs, and what came of it."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
