"""Studies that estimate network functions from their operations, run the functions, and refine the estimates."""
