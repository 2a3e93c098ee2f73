"""Machine code for mechanisms: linear systems of a fixed pattern, terms of the equations, and their derivatives."""
