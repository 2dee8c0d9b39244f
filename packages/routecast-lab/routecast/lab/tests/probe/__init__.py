"""The probe of a host: fits, noise, levels, refusals."""
