"""What the commands answer for a network on chip: its power, the optimum, the flits, and all of it side by side."""
