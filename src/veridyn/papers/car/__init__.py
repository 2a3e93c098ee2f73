"""The car of papers 000 and 001."""
