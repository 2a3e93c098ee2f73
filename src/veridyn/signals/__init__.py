"""Measured time: clocks, filters, derivatives, spectra, and what is wrong with a log. No files and no printing here.

Examples
--------
>>> import numpy as np
>>> import veridyn as vd
>>> t = 0.001 * np.arange(2000)
>>> slow, fast = np.sin(2 * np.pi * t), 0.1 * np.sin(2 * np.pi * 200.0 * t)
>>> smooth = vd.signals.zero_phase(slow + fast, 1000.0, vd.signals.Butterworth(20.0))
>>> bool(np.abs(smooth - slow)[200:-200].max() < 1e-3)  # the fast part is gone, the slow one not delayed
True
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
