"""Published latencies over the load: what they teach, and how well a curve predicts those that it has not seen."""
