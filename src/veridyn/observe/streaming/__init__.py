"""Observers beside a running program: readings as they come, the state at once."""
