"""Hosts: their hardware, and the cost of each elementary operation on it."""
