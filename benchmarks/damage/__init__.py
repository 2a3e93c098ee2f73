"""Damaged logs with a score, of a simulated arm and of measured robots."""
