"""Trees of bodies as dynamic systems: their motion equations, the exact tangent of them, and compiled steps."""
