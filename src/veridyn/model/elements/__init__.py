"""Elements: springs, dampers, frictions, motors; their kinds, laws, constants and transmissions."""
