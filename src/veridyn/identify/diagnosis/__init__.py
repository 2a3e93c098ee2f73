"""What could be wrong with a log or a model although it fits: looked for, and named."""
