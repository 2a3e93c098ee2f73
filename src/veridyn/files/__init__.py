"""Every file format: models, logs, results, and their units."""
