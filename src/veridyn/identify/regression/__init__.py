"""Samples become equations, and equations the small R factors that least squares needs."""
