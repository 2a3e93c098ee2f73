"""Experiments designed: what a motion would tell, within what a machine may do."""
