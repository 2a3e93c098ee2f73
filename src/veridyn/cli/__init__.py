"""The command line: it puts the other rooms together."""
