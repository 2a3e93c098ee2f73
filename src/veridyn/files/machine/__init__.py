"""The model file of a machine: one format, read, written and described by a schema."""
