"""The equations of a mechanism: geometry, constraints, mass and forces, position problems, and accelerations in several forms."""
