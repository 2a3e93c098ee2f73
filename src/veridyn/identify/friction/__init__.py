"""Which terms of friction a machine has: a ladder of terms, judged on held-out data."""
