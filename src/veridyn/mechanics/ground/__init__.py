"""What a wheel stands on, and what its tyre makes of it."""
