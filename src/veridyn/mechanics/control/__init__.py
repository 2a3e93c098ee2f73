"""Control laws of machines: the laws themselves, their running at their own rates, their stability, and their table for compiled runs."""
