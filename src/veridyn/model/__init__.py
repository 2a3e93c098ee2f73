"""What a machine is, and the data types that travel through the rooms: trees, parameters, motions, experiments."""
