"""How sure estimates are: spectra of residuals, the covariances that follow from them, and errors on samples held out."""
