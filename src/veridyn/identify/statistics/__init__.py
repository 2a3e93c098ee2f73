"""How sure estimates are: spectra of residuals, and the covariances that follow from them."""
