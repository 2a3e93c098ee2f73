"""Batches on an NVIDIA GPU (extra gpu): dynamics, regressors and simulations of many states and sets of parameters; arrays by DLPack."""

from veridyn.mechanics.tree.dynamics.gpu import DeviceBase as DeviceBase
from veridyn.mechanics.tree.dynamics.gpu import DeviceMotion as DeviceMotion
from veridyn.mechanics.tree.dynamics.gpu import DeviceRuns as DeviceRuns
from veridyn.mechanics.tree.dynamics.gpu import forward_dynamics as forward_dynamics
from veridyn.mechanics.tree.dynamics.gpu import integrate as integrate
from veridyn.mechanics.tree.dynamics.gpu import inverse_derivatives as inverse_derivatives
from veridyn.mechanics.tree.dynamics.gpu import inverse_dynamics as inverse_dynamics
from veridyn.mechanics.tree.dynamics.gpu import mass_matrix as mass_matrix
from veridyn.mechanics.tree.dynamics.gpu import regressor as regressor
