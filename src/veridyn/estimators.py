"""Estimators and what stands beside `identify`: base parameters, plans of experiments, diagnoses, payloads, fleets and results.

Examples
--------
>>> import veridyn as vd
>>> vd.estimators.Robust(loss="tukey").c, vd.estimators.OLS().title  # each is an argument of vd.identify
(4.685, 'ordinary least squares')
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
