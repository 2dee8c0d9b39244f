"""Planning: energy-efficient clusters, mappings onto network processors, placements of functions on servers."""
