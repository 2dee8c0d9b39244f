"""The fabric flit by flit: latency, throughput, energy and link loads with their intervals."""
