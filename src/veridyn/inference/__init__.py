"""What residuals say, whoever has them: measures of errors, findings, agreement of parts, one search of parameters, and the verdict."""
