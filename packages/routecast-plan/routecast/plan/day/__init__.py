"""A day of a router, frame by frame: one simulated trajectory at the loads of a traffic series."""
