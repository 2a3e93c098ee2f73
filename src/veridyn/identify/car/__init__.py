"""Cars of a few numbers: their parameters from the log of a drive, by the innovations of their observer."""
