"""Experiments designed: the information of a motion, within the limits of a machine."""
