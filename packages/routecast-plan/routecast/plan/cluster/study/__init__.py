"""Studies that design clusters of routers for the least energy, and switch them on and off over a trace."""
