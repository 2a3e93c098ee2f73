"""Functions of a machine as nodes of other programs' graphs, with exact vector–Jacobian products: PyTorch and JAX."""
