"""Dynamics in JAX's programs (extra jax): functions of arrays with exact gradients by states, inputs and all parameters.

Examples
--------
>>> import veridyn.jax as vj
>>> sorted(name for name in dir(vj) if name.endswith("dynamics"))  # the names of vd.dynamics, for arrays of JAX
['forward_dynamics', 'inverse_dynamics']
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
