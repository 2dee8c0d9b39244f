"""Studies that measure a real router on the wire, calibrate its model and predict what they measure next."""
