"""Studies of a router of many machines: its throughput, latency and failures, predicted first and then measured."""
