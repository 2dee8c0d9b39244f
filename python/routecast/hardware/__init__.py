"""Hosts as data: their hardware, and the cost of each elementary operation."""
