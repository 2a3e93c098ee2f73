"""A car in all detail, driven along a road."""
