"""A tree over its independent coordinates: states, trapezoidal steps and their exact derivatives, as compiled kernels over one record."""
