"""Estimation by simulation: runs of a log, their sensitivities, and the search for parameters that reproduce them."""
