"""Studies that predict the latency of devices on this machine from rows at two loads, and measure it between them."""
