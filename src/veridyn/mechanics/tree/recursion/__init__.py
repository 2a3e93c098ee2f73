"""One recursion over bodies, stated once over scalars of any kind: numbers, blocks of samples, symbols."""
