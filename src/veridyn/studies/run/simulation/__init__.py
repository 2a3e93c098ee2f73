"""Simulations as study files describe them: what drives a machine, its run, and what is kept of it."""
