"""Network functions as sequences of elementary operations, and what they cost on a host."""
