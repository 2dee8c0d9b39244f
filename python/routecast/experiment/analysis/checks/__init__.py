"""Whether the analysis may be believed: what the residuals say, and what to do next."""
