"""One reproducible run: its settings, seeds and inputs, and what came of it."""
