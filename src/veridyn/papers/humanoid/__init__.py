"""Paper 004: a humanoid identified from its base link and a force plate."""
