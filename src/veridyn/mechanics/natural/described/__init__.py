"""Bodies and joints found in a description by points and unit vectors."""
