"""Studies that measure a router on the wire, calibrate its model on some points and predict the others."""
