"""Paper 003: observers of a four-bar linkage in natural coordinates."""
