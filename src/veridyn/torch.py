"""Dynamics in PyTorch's graph (extra torch): functions of tensors with exact gradients by states, inputs and all parameters.

Examples
--------
>>> import veridyn.torch as vt
>>> sorted(name for name in dir(vt) if name.endswith("dynamics"))  # the names of vd.dynamics, for tensors
['forward_dynamics', 'inverse_dynamics']
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
