"""Dynamics in JAX's programs (extra jax): functions of arrays with exact gradients by states, inputs and all parameters."""

from veridyn.training.jax_functions import forward_dynamics as forward_dynamics
from veridyn.training.jax_functions import forward_kinematics as forward_kinematics
from veridyn.training.jax_functions import inverse_dynamics as inverse_dynamics
from veridyn.training.jax_functions import mass_matrix as mass_matrix
from veridyn.training.jax_functions import regressor as regressor
from veridyn.training.jax_functions import run as run
from veridyn.training.jax_functions import step as step
