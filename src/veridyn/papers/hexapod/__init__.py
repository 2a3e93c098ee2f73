"""Paper 002: excitation, estimators and control of a parallel machine with six legs."""
