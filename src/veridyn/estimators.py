"""Estimators and what stands beside `identify`: base parameters, plans of experiments, diagnoses, payloads, fleets and results."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
