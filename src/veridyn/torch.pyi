"""Dynamics in PyTorch's graph (extra torch): functions of tensors with exact gradients by states, inputs and all parameters."""

from veridyn.training.torch_functions import forward_dynamics as forward_dynamics
from veridyn.training.torch_functions import forward_kinematics as forward_kinematics
from veridyn.training.torch_functions import inverse_dynamics as inverse_dynamics
from veridyn.training.torch_functions import mass_matrix as mass_matrix
from veridyn.training.torch_functions import regressor as regressor
from veridyn.training.torch_functions import run as run
from veridyn.training.torch_functions import step as step
