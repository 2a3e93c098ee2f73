"""Ways from equations to parameters, each with the deviations that belong to it."""
