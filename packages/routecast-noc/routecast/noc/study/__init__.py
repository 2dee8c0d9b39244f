"""Studies of networks on chip: power of routings and allocations, the optimum, and the flit level."""
