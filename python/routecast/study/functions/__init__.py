"""Studies that estimate network functions from their operations, run the same functions, and refine the estimates."""
