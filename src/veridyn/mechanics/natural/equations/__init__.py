"""The equations of a mechanism: geometry, constraints, mass, forces, positions and accelerations, in NumPy and as machine code."""
