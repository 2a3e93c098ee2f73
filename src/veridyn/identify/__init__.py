"""Unknown parameters: base parameters, streaming least squares, their deviations, and validation."""
