"""Network functions as sequences of elementary operations, and their cost on a host."""
