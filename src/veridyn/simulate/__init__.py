"""Everything known: a machine, a manoeuvre and sensors make the same log type that a real machine makes."""
