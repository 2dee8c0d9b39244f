"""Which flow goes over which plane: the thesis' three allocations and our own."""
