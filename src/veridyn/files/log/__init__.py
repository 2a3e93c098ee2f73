"""Logs: tables, arrays, measurement files and bags, read as one Experiment in SI units."""
