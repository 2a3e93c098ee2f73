"""Mechanisms in natural coordinates: constraints that are quadratic, constant masses, dynamics in several forms, derivatives."""
