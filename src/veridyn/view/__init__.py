"""Three-dimensional scenes and animations."""
