"""Cars of a few numbers under filters: the lateral motion, its parameters from drives, and the way of the car."""
