"""The formulation of a car described by a few numbers: two axles, tyre curves, and the speed as an input."""
