"""Expressions and the way from them to machine code."""
