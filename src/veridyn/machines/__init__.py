"""The machines veridyn knows by name, one model file each."""
