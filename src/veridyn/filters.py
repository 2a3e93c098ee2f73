"""Filters: settings, results and virtual sensors of observed machines, and systems, runs, streams and tuning for a user's own equations.

Examples
--------
>>> import numpy as np
>>> import veridyn as vd
>>> stay, read = (lambda x, u, t, dt: x), (lambda x, u, t: x)
>>> walk = vd.filters.Discrete(("x",), ("y",), stay, read, [1e-4], [0.01])  # a number that walks, and one sensor
>>> log = vd.filters.Measurements(0.1 * np.arange(50), np.full(50, 2.0), ("y",))
>>> found = vd.filters.run(vd.filters.UKF(), walk, log, vd.filters.Belief(np.zeros(1), np.ones(1)))
>>> bool(abs(found.x[-1, 0] - 2.0) < 0.01)
True
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
