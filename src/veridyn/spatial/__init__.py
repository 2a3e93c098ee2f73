"""Rotations, transforms, spatial inertia and small linear algebra, over numbers or expressions."""
