"""The vehicle of paper 003, observed."""
