"""Consistency of a filter: innovations against their stated size, faulty sensors, observability, and noise tuned from data."""
