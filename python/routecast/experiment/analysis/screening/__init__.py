"""Which factors matter most, of factorial designs and of samples."""
