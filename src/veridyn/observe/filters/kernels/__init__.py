"""Compiled filter code: the same equations as the Python filter, which stays the reference, over plain arrays."""
