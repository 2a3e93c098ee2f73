"""Mechanisms over time: explicit and index-3 steps, steps over independent coordinates or over the freedoms of a base, and motions."""
