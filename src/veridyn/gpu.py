"""Batches on an NVIDIA GPU (extra gpu): dynamics, regressors and simulations of many states and sets of parameters; arrays by DLPack."""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
