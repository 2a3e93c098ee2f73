"""The way from logs to a judged fit: recordings, their preparation, equations, estimate, findings, validation and verdict."""
