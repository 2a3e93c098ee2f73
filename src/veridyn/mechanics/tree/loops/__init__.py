"""Trees with closed loops: what keeps them closed, how they are put together, and their equations of motion."""
