"""Drives from encoders alone: armature, friction, zeros, delays and gains by simulation of the closed loop."""
