"""Routings: the paths of flows and their shares, the loads of links, and freedom from deadlock."""
