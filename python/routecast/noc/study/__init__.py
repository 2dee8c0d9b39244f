"""Studies of networks on chip: power of routings and allocations, its optimum, and the flit level."""
