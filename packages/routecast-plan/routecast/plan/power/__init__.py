"""The watts of a router over a day, and its operating point: the setting that keeps targets with the fewest."""
