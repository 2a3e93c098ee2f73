"""Runs from study files, whatever the machine: identify, observe, simulate and excite, and the folder that keeps what came of it."""
