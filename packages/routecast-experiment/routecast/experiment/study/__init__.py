"""Studies that run designed experiments and compare the results with the statements of a source."""
