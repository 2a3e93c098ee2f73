"""Measured time: clocks, filters, derivatives, spectra, and what is wrong with a log. No files and no printing here."""
