"""Studies that run designed experiments and compare the statements of a source with the results."""
