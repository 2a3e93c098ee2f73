"""Study files: their settings, their text and their reference."""
