"""Mechanisms in points and unit vectors: what they are, what must hold of them, and the way from machines to them and back."""
