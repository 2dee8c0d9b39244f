"""The answers of the commands: power, optimum, simulation and their comparison."""
