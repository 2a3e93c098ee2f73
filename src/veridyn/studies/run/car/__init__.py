"""Studies of cars of a few numbers: the log of a drive, what it identifies, and what is observed along it."""
