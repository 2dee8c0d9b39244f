"""Studies of networks on chip: power of routings and of allocations to planes beside the optimum, and the flits."""
