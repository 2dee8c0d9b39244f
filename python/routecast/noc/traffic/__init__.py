"""Who sends how much to whom: patterns, task graphs mapped to tiles, matrices from files, the normalised load."""
