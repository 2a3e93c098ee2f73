"""The recursion compiled and called on motions: inverse and forward dynamics, regressors, derivatives, on CPU and GPU."""
