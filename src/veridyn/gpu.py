"""Batches on an NVIDIA GPU (extra gpu): dynamics, regressors and simulations of many states and sets of parameters; arrays by DLPack.

Examples
--------
>>> import veridyn as vd
>>> sorted(name for name in dir(vd.gpu) if name.endswith("dynamics"))  # the names of vd.dynamics, for arrays on the GPU
['forward_dynamics', 'inverse_dynamics']
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
