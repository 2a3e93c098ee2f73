"""Measured time: clocks, filters, derivatives, spectra, and what is wrong with a log. No files and no printing here."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
