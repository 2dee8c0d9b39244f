"""What the fabric burns: energy by the hop at one voltage, and routers whose power a table states."""
