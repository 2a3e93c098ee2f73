"""Paper 003: observers of a buggy with 18 bodies."""
