"""Filters: how a belief is predicted, how readings correct it, and how a run over a log, or over time, is stepped."""
