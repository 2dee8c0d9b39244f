"""Traffic series as equal steps: reading of samples and counters, demand matrices, days made of them."""
